#pragma once

#include <functional>

namespace CLI {
class App;
}

// The options of `plan budget`. What comes back runs it with what was parsed and gives the exit status.
std::function<int()> add_budget(CLI::App& budget);
