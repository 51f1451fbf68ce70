#pragma once

#include <string>

namespace fitting {

// `fit --list KIND`: laws with their formulas, or constants with their sources; a line or two each.
std::string listing(const std::string& kind);

}  // namespace fitting
