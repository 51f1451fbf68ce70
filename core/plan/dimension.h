#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/model.h"

namespace core {

struct ParallelPlan;

// A parallel dimension: one file in core/plan/dimensions.
struct Dimension {
  std::string_view name;      // "tp"
  std::string_view meaning;   // "tensor parallel: divides heads, ffn and vocabulary"
  std::string_view axes;      // the axes it divides
  // Why this degree cannot run with the model ("24 heads do not divide by tp=16"), or nothing. Also judges
  // what hangs together with the rest of the plan (batch, stages).
  std::optional<std::string> (*why_not)(const ModelSpec& model, const ParallelPlan& plan, std::int64_t seq);
};

namespace dimensions {
std::span<const Dimension* const> all();
}

}  // namespace core
