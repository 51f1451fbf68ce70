#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fitting {

// "--N 70e9 --D=1.4T" as values by name; the law says which names there are. Throws InputError for a word that is no flag, a value
// that is no number, and a name that stands twice; `check`, with each "--N" before its value is read, for one that is not known.
std::map<std::string, double> named_values(const std::vector<std::string>& words,
                                           const std::function<void(const std::string& flag)>& check = {});

}  // namespace fitting
