#pragma once

#include "fitting/runs/runs.h"

namespace fitting {

// What looks wrong about rows before any fit: numbers in another unit than the law's, a perplexity or bits a byte in place of
// nats, points along runs in place of their ends.
std::vector<std::string> warnings_of_rows(const Law& law, const Rows& rows);

}  // namespace fitting
