#pragma once

#include <map>
#include <string>
#include <vector>

namespace fitting {

// "--N 70e9 --D=1.4T" as values by name; the law says which names there are. Throws InputError for a word that is no flag, a value
// that is no number, and a name that stands twice.
std::map<std::string, double> named_values(const std::vector<std::string>& words);

}  // namespace fitting
