#include "core/model/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/model/config_keys.h"

namespace core {
namespace {

// Whether a key is off: null, false, 0 or "".
bool is_off(const Document& value) {
  switch (value.kind()) {
    case Document::Kind::null:
      return true;
    case Document::Kind::boolean:
      return !value.as_bool();
    case Document::Kind::integer:
    case Document::Kind::real:
      return value.as_real() == 0.0;
    case Document::Kind::text:
      return value.as_text().empty();
    case Document::Kind::list:
      return value.as_list().empty();
    case Document::Kind::object:
      return false;
  }
  return false;
}

bool differ_as_integers(const Document& a, const Document& b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const bool both = a.kind() == Document::Kind::integer && b.kind() == Document::Kind::integer;
  return both && a.as_int(-most, most) != b.as_int(-most, most);
}

// A limit that means "none" where it is infinite (Mamba's step).
constexpr std::string_view may_be_infinite = "time_step_limit";

void refuse_non_finite(const Document& value) {
  if (value.is_number()) {
    value.as_real();
  } else if (value.is_list()) {
    std::ranges::for_each(value.as_list(), refuse_non_finite);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      if (key != may_be_infinite) {
        refuse_non_finite(member);
      }
    }
  }
}

std::optional<Activation> activation_of(std::string_view name) {
  using Named = std::pair<std::string_view, Activation>;
  static constexpr Named names[] = {
      {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu},
      {"gelu_fast", Activation::gelu},
      {"gelu_python", Activation::gelu},
      {"gelu_pytorch_tanh", Activation::gelu},
      {"quick_gelu", Activation::gelu},
      {"relu", Activation::relu},
      {"relu2", Activation::squared_relu},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
  };
  const auto found = std::ranges::find(names, name, &Named::first);
  return found == std::end(names) ? std::nullopt : std::optional(found->second);
}

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    case Activation::squared_relu:
      return "relu2";
  }
  return "";
}

double read_rate(const Document& value) {
  const double rate = value.is_number() ? value.as_real() : -1.0;
  if (rate < 0.0 || rate >= 1.0) {
    value.complain("a rate from 0 to 1");
  }
  return rate;
}

std::int64_t read_size(const Document& value, std::int64_t most) {
  if (value.as_positive_int() > most) {
    value.complain(fmt::format("a positive integer up to {}", most));
  }
  return value.as_positive_int();
}

}  // namespace

const Document* ConfigReader::look_up(std::string_view key) const {
  const Document* value = &config_;
  while (value != nullptr) {
    const std::size_t dot = key.find('.');
    value = value->find(key.substr(0, dot));
    if (dot == std::string_view::npos || (value != nullptr && value->is_null())) {
      break;
    }
    key.remove_prefix(dot + 1);
  }
  return value;
}

const Document* ConfigReader::find(Keys keys) {
  for (const std::string_view key : keys) {
    const Document* value = look_up(key);
    if (value != nullptr && !value->is_null()) {
      take_other_spellings(keys, key, *value);
      return value;
    }
  }
  for (const std::string_view key : keys) {
    if (look_up(key) == nullptr) {
      absent_.emplace_back(key);
    }
  }
  return nullptr;
}

// Some files give a size under two names.
void ConfigReader::take_other_spellings(Keys keys, std::string_view key, const Document& value) {
  for (const std::string_view other : keys) {
    const Document* same = other == key ? nullptr : look_up(other);
    if (same == nullptr) {
      continue;
    }
    same->mark_used();
    if (differ_as_integers(value, *same)) {
      warn(fmt::format("{}: has no effect; {} counts", other, key));
    }
  }
}

void ConfigReader::warn(std::string warning) {
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

template <typename Value>
void ConfigReader::warn_assumed(Keys keys, const Value& value, std::string_view why) {
  const std::string_view key = spelling(keys);
  warn(fmt::format(
      "{}: {}; assumed {}, {}", key, look_up(key) == nullptr ? "missing" : "null", value, why));
}

void ConfigReader::ignore(Keys keys) {
  for (const std::string_view key : keys) {
    if (const Document* value = look_up(key)) {
      value->mark_used();
    }
  }
}

std::string_view ConfigReader::spelling(Keys keys) const {
  for (const std::string_view key : keys) {
    if (look_up(key) != nullptr) {
      return key;
    }
  }
  return *keys.begin();
}

const Document& ConfigReader::require(Keys keys) {
  if (const Document* value = find(keys)) {
    return *value;
  }
  const std::string_view key = spelling(keys);
  if (const Document* null = look_up(key)) {
    return *null;
  }
  missing(key);
}

void ConfigReader::missing(std::string_view key) const {
  throw InputError(fmt::format("{}: {}: missing key", config_.where(), key));
}

std::int64_t ConfigReader::size(Keys keys, std::int64_t most) {
  return read_size(require(keys), most);
}

std::int64_t ConfigReader::size_or(Keys keys, std::int64_t otherwise, std::int64_t most) {
  const Document* value = find(keys);
  return value == nullptr ? otherwise : read_size(*value, most);
}

std::int64_t ConfigReader::size_or_assume(Keys keys,
                                          std::int64_t otherwise,
                                          std::int64_t most,
                                          std::string_view why) {
  if (const Document* value = find(keys)) {
    return read_size(*value, most);
  }
  warn_assumed(keys, otherwise, why);
  return otherwise;
}

std::int64_t ConfigReader::count_or(Keys keys, std::int64_t otherwise, std::int64_t most) {
  const Document* value = find(keys);
  return value == nullptr ? otherwise : value->as_int(0, most);
}

std::optional<std::vector<std::int64_t>> ConfigReader::integers(Keys keys, std::int64_t most) {
  const Document* value = find(keys);
  if (value == nullptr) {
    return std::nullopt;
  }
  std::vector<std::int64_t> numbers;
  for (const Document& number : value->as_list()) {
    numbers.push_back(number.as_int(0, most));
  }
  return numbers;
}

bool ConfigReader::flag(Keys keys, bool otherwise) {
  const Document* value = find(keys);
  return value == nullptr ? otherwise : value->as_bool();
}

double ConfigReader::rate(Keys keys) {
  const Document* value = find(keys);
  return value == nullptr ? 0.0 : read_rate(*value);
}

double ConfigReader::rate_or_assume(Keys keys, double otherwise) {
  if (const Document* value = find(keys)) {
    return read_rate(*value);
  }
  warn_assumed(keys, otherwise, class_default);
  return otherwise;
}

Activation ConfigReader::activation(Keys keys, Activation otherwise) {
  const Document* value = find(keys);
  if (value == nullptr) {
    warn_assumed(keys, name_of(otherwise), class_default);
    return otherwise;
  }
  const auto activation = activation_of(value->as_text());
  if (!activation) {
    value->complain("gelu, gelu_new, gelu_pytorch_tanh, relu, relu2 or silu");
  }
  return *activation;
}

std::string ConfigReader::text_or(Keys keys, std::string_view otherwise) {
  const Document* value = find(keys);
  return value == nullptr ? std::string(otherwise) : value->as_text();
}

void ConfigReader::require_multiple(Keys whole_keys,
                                    std::int64_t whole,
                                    Keys part_keys,
                                    std::int64_t part) {
  if (whole % part != 0) {
    throw InputError(fmt::format("{}: {}: expected a multiple of {} = {}, found {}",
                                 config_.where(),
                                 spelling(whole_keys),
                                 spelling(part_keys),
                                 part,
                                 whole));
  }
}

std::vector<std::string> ConfigReader::finish() {
  const std::vector<std::string> unread = config_.unused();
  refuse_non_finite(config_);
  for (const UnmodelledKey& key : unmodelled_keys()) {
    const Document* value = look_up(key.key);
    if (value != nullptr && !is_off(*value)) {
      warn(fmt::format("{}: has no effect; {}", key.key, key.consequence));
    }
  }
  for (const std::string& path : unread) {
    if (is_without_cost(path) || std::ranges::find(unmodelled_keys(), path, &UnmodelledKey::key) !=
                                     unmodelled_keys().end()) {
      continue;
    }
    const auto near = nearest_name(path, absent_);
    if (const Document* value = look_up(path); !near && value != nullptr && is_off(*value)) {
      continue;
    }
    warn(fmt::format("{}: has no effect{}", path, near ? "; did you mean " + *near + "?" : ""));
  }
  return std::exchange(warnings_, {});
}

}  // namespace core
