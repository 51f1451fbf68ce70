#pragma once

#include <string>
#include <vector>

// `simulate calibrate --intervals`: how far measured runs lie from their predictions as data/ makes them now.
struct IntervalOptions {
  std::vector<std::string> files;  // tables of measured runs
  std::string format, output;      // table or json
  bool write = false, quiet = false;
};

// Returns the exit status; throws InputError.
int intervals_main(const IntervalOptions& options);
