#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/io/document.h"

namespace core {

// The way from the root to a value. The root's key is the name of the file.
struct DocumentPath {
  std::shared_ptr<const DocumentPath> parent;
  std::string key;
  std::optional<std::size_t> index;  // of an element of a list
};

// What a Document points to. Readers of a format fill it; only the marks change afterwards.
struct Document::Node {
  Kind kind = Kind::null;
  int line = 0;
  std::shared_ptr<const DocumentPath> path;

  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0.0;
  std::string text;
  std::vector<Document> list;
  std::vector<std::pair<std::string, Document>> members;

  mutable bool used = false;   // a value that was read, or a list or object that was looked into
  mutable bool whole = false;  // read with all that is below
};

}  // namespace core
