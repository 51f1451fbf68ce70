#pragma once

#include <string>

#include "planner/budget/loss.h"

namespace planner {

// A law of data/laws, or of a file that `fit --save` wrote, as a budget uses it. Throws InputError where there is none, and
// where its loss is not one of parameters and tokens alone.
LossModel loss_model_of(const std::string& name);

}  // namespace planner
