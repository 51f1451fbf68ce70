#pragma once

#include <string>
#include <vector>

#include "simulator/request.h"

namespace CLI {
class App;
}

// --calibrate-with of `plan` and `simulate`.
void add_calibrate_with(CLI::App& app, std::vector<std::string>& arguments);

// Calibrates a setting with the runs that the arguments name and keeps what they tell in the profile database under the
// question's GPU, framework and cluster; or, where the one argument is "stored", with what is kept there. Says on stderr what
// was kept, and warns of runs that are not comparable. Throws InputError.
void calibrate_with(const std::string& program,
                    const std::vector<std::string>& arguments,
                    const simulator::Request& request,
                    simulator::Setting& setting,
                    bool quiet);

// What the profile database keeps, one system a line.
std::string calibrations_listing();
