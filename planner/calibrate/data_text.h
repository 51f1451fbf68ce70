#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/io/document.h"

namespace planner {

// The member of a tree at a dotted key, or null where there is none.
const core::Document* member_at(const core::Document& root, std::string_view key);

// A JSON text in which the figure at a dotted key has other numbers, `source` and status "derived";
// all else stays as it is, byte for byte. One number is written as "value", a list as "values" (as
// the figure has it). Throws InputError naming `name` and the key where there is no such figure.
std::string with_figure(std::string_view text,
                        std::string_view name,
                        std::string_view key,
                        const std::vector<double>& numbers,
                        std::string_view source);

}  // namespace planner
