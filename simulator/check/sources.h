#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/measured/measured_run.h"

namespace simulator {

// What a source says of its runs elsewhere than in its table (data/measured/sources.json).
struct SourceFacts {
  std::string gpu, node;  // of ours, "" = as the row says
  std::optional<std::string> cross_entropy_fusion;
  std::optional<std::int64_t> deferred_output_gradients;
  bool launches_wait = false, divides_checkpoints = false;
  bool fp8_attention = false, fp8_output = false;  // products of attention, output layer, in MXFP8 as the other layers
  std::vector<std::string> says;  // a sentence for each that holds
};

// All that holds for a run; where two say the same thing, the later one. Throws InputError for a file that is not in order.
SourceFacts facts_of(const core::MeasuredRun& run);

}  // namespace simulator
