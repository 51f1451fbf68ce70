#pragma once

#include <filesystem>
#include <string>

// A copy of data/ that a test may spoil, in the test's folder for temporary files.
std::filesystem::path copy_of_data(const std::string& name);

std::string text_of(const std::filesystem::path& file);
