#pragma once

#include <string>

namespace planner {

// `plan --list KIND`: the names of a kind, a line each. Throws InputError for an unknown kind.
std::string listing(const std::string& kind);

// `plan model NAME`: what a model is, as a table or JSON.
std::string model_table(const std::string& name_or_path);
std::string model_json(const std::string& name_or_path);

}  // namespace planner
