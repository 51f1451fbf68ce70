#include "fitting/choose.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace fitting {
namespace {

struct Candidate {
  const Law* law = nullptr;
  double error = std::numeric_limits<double>::infinity();
  std::string line;
};

// Laws of a loss that all variables of can be columns of runs.
bool takes_part(const Law& law) {
  return law.output == "L" && !law.parameters.empty() && !law.training_flops.empty();
}

Candidate tried(const Law& law, const std::vector<std::filesystem::path>& files, const RunOptions& options, FitOptions fit_options) {
  Candidate candidate{&law, std::numeric_limits<double>::infinity(), {}};
  try {
    const auto runs = read_runs(law, files, options);
    if (!runs.assumed.empty()) {  // what is the same in all rows tells nothing of the law
      candidate.line = fmt::format("{:<18} not fitted: no column has {}", law.name, fmt::join(runs.assumed, ", "));
      return candidate;
    }
    fit_options.held_out = runs.held_out;
    fit_options.bootstrap = 0;
    fit_options.profile.clear();
    fit_options.starts = std::min<std::int64_t>(fit_options.starts, 32);  // enough to compare; the law chosen gets all
    const auto report = fit(law, runs.rows, fit_options);
    if (!report.held_out || report.held_out->rows == 0) {
      candidate.line = fmt::format("{:<18} no run to hold out", law.name);
      return candidate;
    }
    candidate.error = report.held_out->median_abs_error;
    candidate.line = fmt::format("{:<18} held-out error {:.3f} % ({} runs: {}), {} parameters", law.name, 100.0 * candidate.error,
                                 report.held_out->rows, report.held_out->which, law.parameters.size());
  } catch (const core::InputError& error) {
    candidate.line = fmt::format("{:<18} not fitted: {}", law.name, error.what());
  }
  return candidate;
}

}  // namespace

Choice choose(const std::vector<std::filesystem::path>& files, const RunOptions& options, const FitOptions& fit) {
  std::vector<Candidate> candidates;
  for (const auto* law : laws::all()) {
    if (takes_part(*law)) candidates.push_back(tried(*law, files, options, fit));
  }
  CORE_ASSERT(!candidates.empty());
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.error < b.error; });
  // Among laws that predict as well as the best, to a tenth of its error, the one of the fewest parameters.
  const double good = 1.1 * candidates.front().error + 1e-5;
  const auto simplest = std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    const auto size = [&](const auto& c) { return c.error <= good ? c.law->parameters.size() : std::size_t{1000}; };
    return size(a) < size(b);
  });
  std::rotate(candidates.begin(), simplest, simplest + 1);
  Choice choice;
  for (const auto& candidate : candidates) choice.compared.push_back(candidate.line);
  if (candidates.front().error == std::numeric_limits<double>::infinity()) {
    throw core::InputError(fmt::format("auto: found no law that these runs can be held against, expected one; {}",
                                       choice.compared.front()));
  }
  choice.law = *candidates.front().law;
  return choice;
}

}  // namespace fitting
