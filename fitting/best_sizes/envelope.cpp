#include "fitting/best_sizes/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "fitting/solver/random_rows.h"

namespace fitting {
namespace {

constexpr double as_large = 1.01;         // sizes that differ by less are one
constexpr double end_of_schedule = 0.15;  // Hoffmann et al. 2022: what of a cosine schedule is as good as its end
constexpr double none = std::numeric_limits<double>::infinity();

// Means over as many points on either side, fewer near the ends.
std::vector<double> smoothed(const std::vector<double>& L, std::size_t points) {
  std::vector<double> means;
  for (std::size_t i = 0; i < L.size(); ++i) {
    const auto side = std::min({(points - 1) / 2, i, L.size() - 1 - i});
    double sum = 0.0;
    for (std::size_t j = i - side; j <= i + side; ++j) sum += L[j];
    means.push_back(sum / static_cast<double>(2 * side + 1));
  }
  return means;
}

class Envelope {
 public:
  Envelope(std::vector<LossCurve> curves, const EnvelopeOptions& options) : curves_(std::move(curves)), options_(options) {
    double low = none, high = 0.0;
    for (auto& curve : curves_) {
      CORE_ASSERT(!curve.C.empty() && curve.C.size() == curve.D.size() && curve.C.size() == curve.L.size());
      curve.L = smoothed(curve.L, options.smooth);
      begins_.push_back(begin_of(curve));
      low = std::min(low, curve.C[begins_.back()]), high = std::max(high, curve.C.back());
    }
    const auto n = options.computes;
    for (std::size_t i = 0; i < n; ++i) computes_.push_back(low * std::pow(high / low, (static_cast<double>(i) + 0.5) / static_cast<double>(n)));
    points_.resize(computes_.size());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < curves_.size(); ++k) points_[i].push_back(point(k, computes_[i]));
    }
  }

  EnvelopeFit run() {
    std::vector<bool> all(curves_.size(), true);
    fit_.envelope = envelope_of(all);
    auto& sizes = fit_.sizes;
    set_points();
    if (sizes.points.size() < 2 || !several_sizes(fit_.envelope)) {
      throw core::InputError(fmt::format("chinchilla-envelope: found {} sizes of least loss with smaller and larger runs beside them, expected two or more",
                                         fit_.envelope.empty() ? 0 : 1));
    }
    const auto best = laws_of(fit_.envelope);
    std::vector<PowerLaws> draws;
    for (std::int64_t i = 0; i < options_.bootstrap; ++i) {
      auto random = generator(options_.seed, static_cast<std::uint64_t>(i));
      std::vector<bool> drawn(curves_.size(), false);
      for (std::size_t k = 0; k < curves_.size(); ++k) drawn[row_of(random, curves_.size())] = true;
      const auto envelope = envelope_of(drawn);
      if (several_sizes(envelope)) draws.push_back(laws_of(envelope));
      else ++sizes.draws_failed;
    }
    sizes.draws = options_.bootstrap;
    sizes.rows = static_cast<std::int64_t>(curves_.size());
    for (const auto& p : fit_.envelope) sizes.objective += std::pow(std::log(curves_[p.curve].N) - best.ln_N - best.a * std::log(p.C), 2);
    sizes.objective_kind = "sum of squares of ln N about its line, over the envelope's computes";
    set_estimates(sizes, best, draws, options_.confidence);
    warn();
    return std::move(fit_);
  }

 private:
  // The first point of a run that is used.
  std::size_t begin_of(const LossCurve& curve) const {
    const double from = (1.0 - options_.last) * curve.D.back();
    return static_cast<std::size_t>(std::find_if(curve.D.begin(), curve.D.end() - 1, [&](double D) { return D >= from; }) - curve.D.begin());
  }

  // A run at a compute; its loss is infinite where it has none.
  EnvelopePoint point(std::size_t k, double C) const {
    const auto& curve = curves_[k];
    if (C < curve.C[begins_[k]] || C > curve.C.back() || begins_[k] + 1 >= curve.C.size()) return {k, C, 0.0, none};
    auto after = static_cast<std::size_t>(std::upper_bound(curve.C.begin(), curve.C.end(), C) - curve.C.begin());
    after = std::clamp(after, begins_[k] + 1, curve.C.size() - 1);
    const double share = std::log(C / curve.C[after - 1]) / std::log(curve.C[after] / curve.C[after - 1]);
    const auto between = [&](const std::vector<double>& v) { return v[after - 1] * std::pow(v[after] / v[after - 1], share); };
    return {k, C, between(curve.D), between(curve.L)};
  }

  std::vector<EnvelopePoint> envelope_of(const std::vector<bool>& present) const {
    std::vector<EnvelopePoint> envelope;
    for (const auto& at : points_) {
      const EnvelopePoint* best = nullptr;
      double smallest = none, largest = 0.0;
      for (const auto& p : at) {
        if (!present[p.curve] || p.L == none) continue;
        smallest = std::min(smallest, curves_[p.curve].N), largest = std::max(largest, curves_[p.curve].N);
        if (best == nullptr || p.L < best->L) best = &p;
      }
      if (best == nullptr) continue;
      const double N = curves_[best->curve].N;
      if (N > as_large * smallest && largest > as_large * N) envelope.push_back(*best);
    }
    return envelope;
  }

  bool several_sizes(const std::vector<EnvelopePoint>& envelope) const {
    return std::any_of(envelope.begin(), envelope.end(), [&](const auto& p) {
      return std::fabs(std::log(curves_[p.curve].N / curves_[envelope.front().curve].N)) > std::log(as_large);
    });
  }

  PowerLaws laws_of(const std::vector<EnvelopePoint>& envelope) const {
    std::vector<BestAt> points;
    for (const auto& p : envelope) points.push_back({p.C, curves_[p.curve].N, p.D, p.L, 1, std::nullopt});
    return power_laws(points);
  }

  void set_points() {
    std::map<std::size_t, std::vector<EnvelopePoint>> of_curve;
    for (const auto& p : fit_.envelope) of_curve[p.curve].push_back(p);
    auto& points = fit_.sizes.points;
    for (const auto& [k, won] : of_curve) {
      const auto& middle = won[won.size() / 2];
      points.push_back({middle.C, curves_[k].N, middle.D, middle.L, static_cast<std::int64_t>(won.size()), std::nullopt});
    }
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.C < b.C; });
    const auto left = computes_.size() - fit_.envelope.size();
    if (left > 0) {
      fit_.sizes.refused.push_back({fmt::format("{} of {} computes", left, computes_.size()), "the run of least loss is the smallest or the largest that has a loss there"});
    }
  }

  void warn() {
    auto& sizes = fit_.sizes;
    const auto early = std::count_if(fit_.envelope.begin(), fit_.envelope.end(), [&](const auto& p) { return p.D < (1.0 - end_of_schedule) * curves_[p.curve].D.back(); });
    if (early > 0) {
      sizes.warnings.push_back(fmt::format("{:.0f} % of the envelope lies before the last 15 % of its runs: along a cosine schedule losses there are higher than those of "
                                                "runs that end there, which favours small sizes; --last 0.15 leaves them out",
                                                100.0 * static_cast<double>(early) / static_cast<double>(fit_.envelope.size())));
    }
    if (sizes.points.size() < 4) sizes.warnings.push_back(fmt::format("only {} runs are on the envelope", sizes.points.size()));
    warn_of_exponents(sizes);
  }

  std::vector<LossCurve> curves_;  // smoothed
  const EnvelopeOptions& options_;
  std::vector<std::size_t> begins_;
  std::vector<double> computes_;
  std::vector<std::vector<EnvelopePoint>> points_;  // [compute][curve]
  EnvelopeFit fit_;
};

}  // namespace

EnvelopeFit fit_envelope(const std::vector<LossCurve>& curves, const EnvelopeOptions& options) {
  if (curves.size() < 3) throw core::InputError(fmt::format("chinchilla-envelope: found {} runs with losses along training, expected three or more", curves.size()));
  auto fit = Envelope(curves, options).run();
  fit.sizes.law = "chinchilla-envelope";
  fit.sizes.source = "Hoffmann et al. 2022, arXiv 2203.15556, approach 1 (section 3.1)";
  return fit;
}

}  // namespace fitting
