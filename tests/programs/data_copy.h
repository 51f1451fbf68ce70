#pragma once

#include <filesystem>
#include <string>

// A folder of this process alone (tests run beside each other), removed at its end.
const std::filesystem::path& own_folder();

// A copy of data/ that a test may spoil, in that folder.
std::filesystem::path copy_of_data(const std::string& name);

std::string text_of(const std::filesystem::path& file);
