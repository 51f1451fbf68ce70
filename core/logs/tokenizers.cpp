#include "core/logs/tokenizers.h"

#include <map>
#include <string>

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

namespace {

using Vocabularies = std::map<std::string, std::int64_t, std::less<>>;

constexpr std::int64_t largest = std::int64_t{1} << 24;

Vocabularies read_vocabularies() {
  const auto document = Document::read_json_file(data_dir() / "tokenizers.json");
  document.reject_unknown({"title", "tokenizers"});
  const Document& tokenizers = document.at("tokenizers");
  Figures::Sources sources;
  Figures figures(tokenizers, sources);
  Vocabularies sizes;
  for (const auto& [name, figure] : tokenizers.as_object()) sizes[name] = figures.count(name, 1, largest);
  return sizes;
}

}  // namespace

std::optional<std::int64_t> tokenizer_vocabulary(std::string_view name) {
  static const Vocabularies sizes = read_vocabularies();
  auto found = sizes.find(name);
  if (found == sizes.end()) found = sizes.find(name.substr(name.rfind('/') + 1));
  if (found == sizes.end()) return std::nullopt;
  return found->second;
}

}  // namespace core
