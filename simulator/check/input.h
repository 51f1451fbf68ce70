#pragma once

#include <filesystem>

#include "core/logs/megatron.h"
#include "core/measured/table.h"

namespace simulator {

// Measured runs of a file, whose kind is recognised by its content: a table of runs, a log of
// Megatron-LM, or (.json) the golden values of one of its functional tests with its
// model_config.yaml beside it. `machine` says what logs do not; tables need nothing of it. Throws
// InputError naming the file, or the flag that is missing.
core::MeasuredTable read_measured_input(const std::filesystem::path& file,
                                        const core::MegatronMachine& machine);

}  // namespace simulator
