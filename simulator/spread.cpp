#include "simulator/spread.h"

#include <boost/math/special_functions/erf.hpp>
#include <numbers>

#include "core/error.h"
#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace simulator {

const Spread& spread() {
  static const Spread value = [] {
    const auto document = core::Document::read_json_file(core::data_dir() / "spread.json");
    document.reject_unknown({"kernel_sigma"});
    core::Figures::Sources sources;
    core::Figures figures(document, sources);
    Spread s;
    s.kernel_sigma = figures.positive("kernel_sigma");
    s.source = sources.front().second.source;
    return s;
  }();
  return value;
}

double expected_maximum(std::int64_t n) {
  CORE_ASSERT(n >= 1);
  const double count = static_cast<double>(n), quantile = (count - 0.375) / (count + 0.25);
  return std::numbers::sqrt2 * boost::math::erf_inv(2.0 * quantile - 1.0);
}

double slowest_of(std::int64_t n) { return 1.0 + spread().kernel_sigma * expected_maximum(n); }

}  // namespace simulator
