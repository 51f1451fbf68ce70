#pragma once

#include <filesystem>

namespace profiler {

// The file of the profile database: FORETRAIN_DB, else ~/.local/share/foretrain/profiles.sqlite. Throws InputError where
// neither FORETRAIN_DB nor HOME is set.
std::filesystem::path database_file();

}  // namespace profiler
