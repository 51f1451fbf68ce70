#pragma once

#include "core/framework.h"
#include "core/graph/op.h"
#include "core/hardware/hardware.h"
#include "core/measured/measured_run.h"
#include "core/plan/plan.h"
#include "simulator/check/notes.h"
#include "simulator/check/sources.h"

namespace simulator {

// The stacks that data/frameworks knows, to which the many names of tables belong.
enum class Stack : std::uint8_t { megatron, fsdp, deepspeed };
std::string_view name_of(Stack stack);
Stack stack_of(const core::MeasuredRun& run);
// The file of data/frameworks that a run's costs are taken from: of Megatron, the branch and the age.
std::string_view framework_file_of(const core::MeasuredRun& run);

// Whether gradients and weights travel beside compute where a row does not say so: stacks that
// gather weights and what came after 2022 do, the Megatron-LM of 2021 and 2022 does not.
bool overlaps_by_default(const core::MeasuredRun& run);

// Whether a run fuses its loss as Transformer Engine does; "native" is Megatron-Core's own way.
bool fuses_loss(const core::MeasuredRun& run);

// The framework's figures for a run on a GPU: vocabulary as padded in the row, tensors in place of
// gradients as old as the release, the loss and the workspaces that its arguments ask for, and what
// its source says besides.
core::Framework framework_of(const core::MeasuredRun& run, const SourceFacts& facts, std::string_view name, const core::Gpu& gpu,
                             Notes& notes);

// The attention kernel of a run on a GPU.
core::AttentionKernel attention_of(const core::MeasuredRun& run,
                                   const core::Gpu& gpu,
                                   Notes& notes);

}  // namespace simulator
