#pragma once

#include <optional>
#include <string_view>

namespace core {

// The parameters that a name speaks of, such as 7e9 of "OLMo-7B-run-038", 1.6e8 of "160M", 3.5e8 of
// "smollm_350m.log", 1.3e9 of "1p3b": one number with K, M or B behind it that stands between
// separators. Nothing where there is none, where two differ, or for "8x7b", which says how many
// experts of what.
std::optional<double> size_in_name(std::string_view name);

}  // namespace core
