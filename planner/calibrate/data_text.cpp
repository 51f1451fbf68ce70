#include "planner/calibrate/data_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "core/error.h"
#include "core/io/json_writer.h"

namespace planner {

namespace {

// Walks a JSON text that has been read as valid before.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  struct Span {
    std::size_t begin = 0, end = 0;
  };

  // Where the value of a member of the object at `from` stands; nothing where it has no such
  // member.
  std::optional<Span> member(std::size_t from, std::string_view name) {
    at_ = from;
    blanks();
    if (text_[at_] != '{') return std::nullopt;
    ++at_;
    for (blanks(); text_[at_] != '}'; blanks()) {
      const auto key = string();
      blanks();
      ++at_;  // the colon
      blanks();
      const auto begin = at_;
      value();
      if (key == name) return Span{begin, at_};
      blanks();
      if (text_[at_] == ',') ++at_;
    }
    return std::nullopt;
  }

 private:
  void blanks() {
    while (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')
      ++at_;
  }

  // Between the quotes, escapes as they stand: our keys have none.
  std::string_view string() {
    const auto begin = ++at_;
    for (; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    return text_.substr(begin, at_++ - begin);
  }

  void value() {
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (depth == 0 && c != '}' && c != ']') {  // a bare number or word
        at_ = text_.find_first_of(",}] \n\r\t", at_);
        return;
      }
      ++at_;
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const core::Document* member_at(const core::Document& root, std::string_view key) {
  const core::Document* at = &root;
  while (at != nullptr && !key.empty()) {
    if (!at->is_object()) return nullptr;
    const auto dot = key.find('.');
    at = at->find(key.substr(0, dot));
    key = dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
  }
  return at;
}

std::string with_figure(std::string_view text,
                        std::string_view name,
                        std::string_view key,
                        const std::vector<double>& numbers,
                        std::string_view source) {
  const auto root = core::Document::parse_json(text, std::string(name));
  const auto* leaf = member_at(root, key);
  if (leaf == nullptr || !leaf->is_object() || !(leaf->has("value") || leaf->has("values")))
    throw core::InputError(fmt::format("{}: {}: expected a figure", name, key));
  const bool list = leaf->has("values");
  CORE_ASSERT(list || numbers.size() == 1);
  Scanner scanner(text);
  Scanner::Span span;
  while (!key.empty()) {
    const auto dot = key.find('.');
    span = *scanner.member(span.begin, key.substr(0, dot));
    key = dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
  }
  const auto value = list ? fmt::format("\"values\": [{}]", fmt::join(numbers, ", "))
                          : fmt::format("\"value\": {}", numbers.front());
  return fmt::format("{}{{{}, \"source\": {}, \"checked\": \"derived\"}}{}",
                     text.substr(0, span.begin),
                     value,
                     core::json_quoted(source),
                     text.substr(span.end));
}

}  // namespace planner
