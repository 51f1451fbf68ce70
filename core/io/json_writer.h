#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace core {

// Writes JSON as it goes: keys in the order they are given, numbers in the shortest form that reads back, so that the same
// report is the same bytes. Not-a-number and infinity are written as null.
class JsonWriter {
 public:
  explicit JsonWriter(int indent = 2) : indent_(indent) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_list();
  JsonWriter& end_list();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(bool truth);
  JsonWriter& null();
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // The document so far, with a final newline.
  std::string text() const { return text_ + "\n"; }

 private:
  void before_value();
  void open(char bracket);
  void close(char bracket);
  void new_line();

  int indent_;
  std::string text_;
  std::vector<bool> empty_;  // by open bracket: nothing written in it yet
  bool after_key_ = false;
};

std::string json_quoted(std::string_view text);

}  // namespace core
