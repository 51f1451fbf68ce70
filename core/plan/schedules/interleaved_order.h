#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/schedules/program.h"

namespace core::schedules {

// Interleaved 1F1B sends groups of N micro-batches through a rank's stages, stage after stage. Megatron-LM
// (--microbatch-group-size-per-virtual-pipeline-stage) takes p <= N <= m, and a last group that is whole or of p or more: with
// fewer the next stage would wait for the first. The least such N: p where p divides m, and something below 2 p or, where
// nothing smaller leaves enough, m. Requires m >= p.
inline std::int64_t interleaved_group(std::int64_t pp, std::int64_t m) {
  for (auto n = pp; n < m; ++n) {
    if (m % n == 0 || m % n >= pp) return n;
  }
  return m;
}

// The cells of one kind of a rank, in the order of their groups. Backwards take the stages in reverse.
class InterleavedCells {
 public:
  InterleavedCells(std::int64_t pp, std::int64_t vpp, std::int64_t m, std::int64_t rank, Action::Kind kind)
      : pp_(pp), vpp_(vpp), m_(m), rank_(rank), kind_(kind), n_(interleaved_group(pp, m)), size_(std::min(n_, m)) {}

  std::int64_t done() const { return done_; }
  Action next() {
    const auto chunk = kind_ == Action::Kind::forward ? chunk_ : vpp_ - 1 - chunk_;
    const Action cell{static_cast<std::uint16_t>(chunk * pp_ + rank_), kind_, static_cast<std::uint32_t>(group_ + in_group_)};
    ++done_;
    if (++in_group_ < size_) return cell;
    in_group_ = 0;
    if (++chunk_ < vpp_) return cell;
    chunk_ = 0;
    group_ += size_;
    size_ = std::min(n_, m_ - group_);
    return cell;
  }

 private:
  std::int64_t pp_, vpp_, m_, rank_;
  Action::Kind kind_;
  std::int64_t n_, size_;  // micro-batches of a group, of this one
  std::int64_t group_ = 0, chunk_ = 0, in_group_ = 0, done_ = 0;
};

inline std::optional<std::string> why_not_interleaved(
    std::string_view name, std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  if (vpp < 2) return fmt::format("schedule {} needs vpp of 2 or more", name);
  if (pp < 2) return fmt::format("schedule {} needs pp of 2 or more", name);
  if (m < pp) return fmt::format("{} micro-batches are fewer than pp={} (schedule {})", m, pp, name);
  return std::nullopt;
}

// Forwards of rank r before its first backward, less the one that goes just before it.
inline std::int64_t interleaved_warm_up(std::int64_t pp, std::int64_t vpp, std::int64_t m, std::int64_t r) {
  return 2 * (pp - r - 1) + (vpp - 1) * interleaved_group(pp, m);
}

}  // namespace core::schedules
