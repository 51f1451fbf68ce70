#include "simulator/uncertainty.h"

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace simulator {

const Uncertainty& uncertainty() {
  static const Uncertainty value = [] {
    const auto document = core::Document::read_json_file(core::data_dir() / "uncertainty.json");
    document.reject_unknown({"step_time_low", "step_time_high"});
    core::Figures::Sources sources;
    core::Figures figures(document, sources);
    Uncertainty u;
    u.low = figures.positive("step_time_low");
    u.high = figures.positive("step_time_high");
    u.source = sources.front().second.source;
    return u;
  }();
  return value;
}

}  // namespace simulator
