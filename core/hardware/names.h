#pragma once

#include <string_view>

namespace core {

// Throws InputError when `name` is no file of the kind but the common beginning of several ("h100"
// of h100-sxm, h100-pcie, h100-nvl), which differ too much to choose for the user: lists them in
// one line.
void refuse_family_name(std::string_view kind, std::string_view name, std::string_view flag);

}  // namespace core
