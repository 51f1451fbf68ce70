#pragma once

#include "core/hardware/hardware.h"
#include "core/measured/measured_run.h"
#include "core/recipe.h"
#include "simulator/check/notes.h"
#include "simulator/check/sources.h"

namespace simulator {

// The numeric recipe of a measured run: the shipped one of its precision, with the formats of
// gradients, main weights and moments that the row states, and what its source says elsewhere of
// attention and the output layer. Throws InputError for a precision that no recipe stands for, or
// that the GPU does not have.
core::Recipe recipe_of(const core::MeasuredRun& run,
                       const SourceFacts& facts,
                       const core::Gpu& gpu,
                       Notes& notes);

}  // namespace simulator
