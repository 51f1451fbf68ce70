#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/measured/measured_run.h"

namespace core {

// A run of Megatron-LM (or Megatron-DeepSpeed) as it speaks of itself: its arguments and what it
// printed of each step.
struct MegatronRun {
  std::string name;  // of the file
  std::map<std::string, std::string>
      arguments;  // names with underscores; None and empty ones left out, switches "True"
  std::vector<double> step_s;   // of the iterations that were printed, in order
  std::vector<double> batches;  // sequences of each of them; 0 where its line does not say
  std::optional<double> allocated_GiB,
      peak_GiB;  // PyTorch's allocator: now, at most; the greatest of the ranks that print it
  bool last_rank = false;  // the memory is the last rank's
};

// Whether a text is the output of a run: it has an iteration line.
bool is_megatron_log(std::string_view text);

// Reads the arguments that a run prints at its start (name ....... value) and its iteration and
// memory lines, whatever stands before them on a line. Throws InputError where there are no
// arguments, or no iteration.
MegatronRun parse_megatron_log(std::string_view text, std::string name);

// Reads the golden values of a functional test (JSON), and the arguments of its model_config.yaml
// (--name: value). Throws InputError that names the file and what is missing.
MegatronRun parse_megatron_golden(std::string_view golden,
                                  std::string name,
                                  std::string_view arguments,
                                  std::string arguments_name);

// What the arguments do not say.
struct MegatronMachine {
  std::string gpu;                   // a name of data/gpus
  std::optional<std::int64_t> gpus;  // else the run's world size
  std::optional<std::int64_t> gpus_per_node;
};

// The run as a row of a table of measured runs. Its batch is that of its last iteration, its step
// time the median of the iterations with that batch after their first quarter. Throws InputError
// where the arguments do not fix it (no number of GPUs, an argument that is not a number).
MeasuredRun measured_run_of(const MegatronRun& run, const MegatronMachine& machine);

}  // namespace core
