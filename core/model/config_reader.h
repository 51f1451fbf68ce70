#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/document.h"
#include "core/model/model.h"

namespace core {

inline constexpr std::string_view class_default =
    "the default of Hugging Face's configuration class";

// Spellings of one key; the first that stands in the file counts, and a warning tells of another
// that disagrees. A dot leads into an object
// ("attn_config.alibi").
using Keys = std::initializer_list<std::string_view>;

// Reads a Hugging Face configuration key by key and collects what its user should be told: values
// that were assumed, and keys that cost training time but are not modelled or that nobody reads.
//
// A key is required unless the function says otherwise. `null` counts as missing where a key is
// optional, as in the configuration classes, and is an InputError where it is required.
class ConfigReader {
 public:
  explicit ConfigReader(const Document& config) : config_(config) {}

  // A positive size, at most `most`.
  std::int64_t size(Keys keys, std::int64_t most);
  // The same, or `otherwise` where the class derives the value when the key is missing.
  std::int64_t size_or(Keys keys, std::int64_t otherwise, std::int64_t most);
  // The same, with a warning that says what was assumed and why.
  std::int64_t size_or_assume(Keys keys,
                              std::int64_t otherwise,
                              std::int64_t most,
                              std::string_view why);
  // A number of things that may be none: 0 up to `most`, or `otherwise` where the key is missing.
  std::int64_t count_or(Keys keys, std::int64_t otherwise, std::int64_t most);
  // A list of integers from 0 to `most`; nothing where the key is missing.
  std::optional<std::vector<std::int64_t>> integers(Keys keys, std::int64_t most);
  // A switch, or the default of the configuration class.
  bool flag(Keys keys, bool otherwise);
  // A dropout rate in 0 .. 1, or 0 when missing.
  double rate(Keys keys);
  // The same, where the class's default is not 0: said in a warning.
  double rate_or_assume(Keys keys, double otherwise);
  // An activation function by its Hugging Face name, or the class's default, which a warning names.
  Activation activation(Keys keys, Activation otherwise);
  std::string text_or(Keys keys, std::string_view otherwise);
  // The value, or null where it is missing or JSON null.
  const Document* find(Keys keys);
  bool has(Keys keys) { return find(keys) != nullptr; }
  // Takes the keys as read: what they say is said by another key.
  void ignore(Keys keys);

  // Throws InputError unless `whole` is a multiple of `part`, naming the keys they were read from.
  void require_multiple(Keys whole_keys, std::int64_t whole, Keys part_keys, std::int64_t part);
  [[noreturn]] void missing(std::string_view key) const;
  std::string where() const { return config_.where(); }

  void warn(std::string warning);

  // The warnings, with those about keys that were not read (unless they switch something off).
  // Throws InputError for a number anywhere in the file that is not finite.
  std::vector<std::string> finish();

 private:
  void take_other_spellings(Keys keys, std::string_view key, const Document& value);
  template <typename Value>
  void warn_assumed(Keys keys, const Value& value, std::string_view why);
  const Document* look_up(std::string_view key) const;
  const Document& require(Keys keys);
  std::string_view spelling(Keys keys) const;

  const Document& config_;
  std::vector<std::string> absent_;  // keys asked for that are not there
  std::vector<std::string> warnings_;
};

}  // namespace core
