#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace core {

// The folder of our data files: FORETRAIN_DATA, else <prefix>/share/foretrain/data of the running
// program, else the source tree. Throws InputError when none exists.
const std::filesystem::path& data_dir();

// Names of a kind ("gpus", "models", ...): the files' names without ".json", sorted.
std::vector<std::string> data_names(std::string_view kind);

// The file of a name. Throws InputError with the nearest known name when there is none:
//   --gpu h100-smx: not known; did you mean h100-sxm?
// `flag` is how the user named it ("--gpu").
std::filesystem::path data_file(std::string_view kind,
                                std::string_view name,
                                std::string_view flag);

}  // namespace core
