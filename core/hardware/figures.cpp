#include "core/hardware/figures.h"

#include <algorithm>
#include <array>

namespace core {
namespace {

const std::vector<std::string_view> keys_of_a_figure = {"value", "source", "checked"};
constexpr std::array<std::string_view, 4> ways_of_checking = {
    "seen", "recalled", "derived", "estimate"};

std::string checked_of(const Document& figure) {
  const Document& checked = figure.at("checked");
  const bool known =
      std::ranges::find(ways_of_checking, checked.as_text()) != ways_of_checking.end();
  if (!known) checked.complain("seen, recalled, derived or estimate");
  return checked.as_text();
}

}  // namespace

Figures::Figures(const Document& object, Sources& sources) : object_(object), sources_(sources) {
  object.as_object();
}

double Figures::positive(std::string_view key) {
  const Document& value = value_of(key);
  return sources_.back().second.value = value.as_positive_real();
}

double Figures::positive_or(std::string_view key, double otherwise) {
  return has(key) ? positive(key) : otherwise;
}

double Figures::not_negative(std::string_view key) {
  const Document& value = value_of(key);
  const double number = value.as_real();
  if (number < 0.0) value.complain("a number of at least 0");
  return sources_.back().second.value = number;
}

std::int64_t Figures::count(std::string_view key, std::int64_t low, std::int64_t high) {
  const Document& value = value_of(key);
  const std::int64_t number = value.as_int(low, high);
  sources_.back().second.value = static_cast<double>(number);
  return number;
}

std::int64_t Figures::count_or(std::string_view key,
                               std::int64_t low,
                               std::int64_t high,
                               std::int64_t otherwise) {
  return has(key) ? count(key, low, high) : otherwise;
}

Sourced Figures::sourced(std::string_view key) {
  positive(key);
  return sources_.back().second;
}

const Document& Figures::value_of(std::string_view key) {
  const Document& figure = object_.at(key);
  if (!figure.is_object()) {
    sources_.emplace_back(key, Sourced{0.0, figure.where(), "given"});
    return figure;
  }
  figure.reject_unknown(keys_of_a_figure);
  sources_.emplace_back(key, Sourced{0.0, figure.at("source").as_text(), checked_of(figure)});
  return figure.at("value");
}

}  // namespace core
