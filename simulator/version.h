#pragma once

#include <string_view>

namespace simulator {

std::string_view version();

}  // namespace simulator
