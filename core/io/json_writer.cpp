#include "core/io/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace core {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else out += c;
    }
  }
  return out + '"';
}

void JsonWriter::new_line() {
  if (indent_ <= 0) return;
  text_ += '\n';
  text_.append(empty_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (empty_.empty()) return;
  if (!empty_.back()) text_ += ',';
  empty_.back() = false;
  new_line();
}

void JsonWriter::open(char bracket) {
  before_value();
  text_ += bracket;
  empty_.push_back(true);
}

void JsonWriter::close(char bracket) {
  CORE_ASSERT(!empty_.empty());
  const bool empty = empty_.back();
  empty_.pop_back();
  if (!empty) new_line();
  text_ += bracket;
}

JsonWriter& JsonWriter::begin_object() { return open('{'), *this; }
JsonWriter& JsonWriter::end_object() { return close('}'), *this; }
JsonWriter& JsonWriter::begin_list() { return open('['), *this; }
JsonWriter& JsonWriter::end_list() { return close(']'), *this; }

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  text_ += json_quoted(name);
  text_ += indent_ > 0 ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  text_ += json_quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  text_ += fmt::format("{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  before_value();
  text_ += fmt::format("{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  before_value();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  text_ += "null";
  return *this;
}

}  // namespace core
