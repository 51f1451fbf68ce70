#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace fitting {

enum class Grade : std::uint8_t { ok, flag, refuse };
std::string_view name_of(Grade grade);

struct Floor {
  Grade grade = Grade::refuse;
  std::string why;   // "" where nothing is to be said
};

// Values that share a scale where one scale is a whole tensor's.
inline constexpr double whole_tensor = std::numeric_limits<double>::infinity();

// What data/precision_floors.json says of a tensor (linear, gradient, sensitive, accumulator, master, moments, reduction, kv, base,
// ptq) in so many bits, `block` values of which share a scale. Throws InputError for a tensor it does not know.
Floor floor_of(std::string_view tensor, double bits, double block);

// All lines of the table, as text.
std::string floors_text();

}  // namespace fitting
