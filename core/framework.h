#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"

namespace core {

// What a training framework adds to the bare arithmetic, as in data/frameworks/NAME.json. Every figure has its source
// there.
struct Framework {
  std::string name;                    // "megatron", "fsdp"
  std::int64_t vocab_multiple = 1;     // vocabulary padded to a multiple of this times tp
  double logits_saved_bytes = 0;       // per logit, kept from forward to backward
  double logits_transient_bytes = 0;   // per logit, inside the loss only
  double loss_traffic_forward = 0, loss_traffic_backward = 0;  // memory traffic, bytes per logit
  double bucket_parameters = 0;        // gradients are reduced in buckets of at least this many parameters,
  double bucket_parameters_per_rank = 0;  // and at least this many times the data-parallel size
  Bytes context;                       // CUDA context and libraries
  Bytes workspace;                     // GEMM workspaces
  Bytes communicator;                  // a communicator's buffers, for each group a rank is in
  Bytes allocation_unit;               // large blocks are rounded up to this
  double fragmentation = 0;            // share of short-lived memory lost between blocks
  Seconds host_per_kernel;             // host time to launch a kernel; the step is no faster than the host
  Seconds step_overhead;               // once a step: data, logging, gradient scaling
  std::vector<std::pair<std::string, std::string>> sources;
};

// Throws InputError.
Framework load_framework(std::string_view name);

}  // namespace core
