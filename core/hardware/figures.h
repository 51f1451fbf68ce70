#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hardware/hardware.h"
#include "core/io/document.h"

namespace core {

// Reads the numbers of one object of a data file. A number is {"value": 1, "source": "...",
// "checked": "seen"}, or plain in a user's own file (then its source is the file). Each complaint
// names file and key.
class Figures {
 public:
  using Sources = std::vector<std::pair<std::string, Sourced>>;

  // `sources` receives each figure that is read, under its key.
  Figures(const Document& object, Sources& sources);

  bool has(std::string_view key) const { return object_.has(key); }
  double positive(std::string_view key);
  double positive_or(std::string_view key, double otherwise);
  double not_negative(std::string_view key);
  // A whole number low .. high.
  std::int64_t count(std::string_view key, std::int64_t low, std::int64_t high);
  std::int64_t count_or(std::string_view key,
                        std::int64_t low,
                        std::int64_t high,
                        std::int64_t otherwise);
  Sourced sourced(std::string_view key);

 private:
  const Document& value_of(std::string_view key);

  const Document& object_;
  Sources& sources_;
};

}  // namespace core
