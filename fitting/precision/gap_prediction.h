#pragma once

#include <optional>
#include <string>
#include <variant>

#include "fitting/precision/gap_laws.h"
#include "fitting/precision/gap_rows.h"
#include "fitting/precision/precision_floor.h"

namespace fitting {

// What a recipe costs at a size, in the units that what predicts it has.
struct PredictedGap {
  std::string by;       // effect (`fit gaps --list recipes`), constants of a law, or choice (--list post-training)
  std::string base;     // constants of the law under it, "" for none
  std::string group;    // rows that are summed up together
  std::string note;     // what was assumed
  std::string flag;     // what to know before using it
  std::optional<GapRange> nats, percent, points;   // a token; of the baseline's loss; of a task
  std::optional<LawsSideBySide> laws;
  std::optional<Floor> floor;                      // of weights and activations, in training
};

// Of a row's recipe, method, N, D and baseline; its gap is not looked at. Else why nothing predicts it.
std::variant<PredictedGap, std::string> predict_gap(const GapRow& row);

}  // namespace fitting
