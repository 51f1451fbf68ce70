// A GEMM [m, k] x [k, n], `batch` times, by tiles and waves:
//
//   tiles  = ceil(m / Tm) ceil(n / Tn) batch, each cut `s` times along k (split-K)
//   waves  = x + w (ceil(x) - x),  x = max(1, tiles s / SMs)
//   t_tile = 2 Tm Tn (k / s + k0) (1 + c (1/Tm + 1/Tn - 1/128 - 1/256)) / (efficiency peak / SMs)
//   t      = t0 + max(min over (Tm, Tn), s of waves t_tile + partial sums / bandwidth + a sum bytes / bandwidth,
//                     bytes / bandwidth)
//
// Sum bytes: a weight gradient that is added to a sum in a wider format reads and writes that sum where the output's write
// would be; a share `a` of what it moves beyond that write is not hidden behind other tiles.
//
// The wave count is that of Lee et al. 2025 (NeuSight); w below 1 softens the steps, since
// tiles of a last, partial wave run at a higher clock and share less bandwidth. c is the loss of
// small tiles, which load more operands for each multiplication. Numbers and what they were fitted
// on: data/curves. No term for fused epilogues.
//
// Grouped (one kernel over `batch` experts of m rows each): tiles never span experts, so each
// expert's last tile may be partly empty; no split-K; and prologue and epilogue of a tile are not
// hidden behind its neighbour's, a k0 of its own, in bytes of an operand's row. It is what DeepGEMM's
// grouped fp8 kernels lose from k = 7168 to 2048 (1297 to 1099 TFLOP/s on H800), and makes fp8,
// whose rows are shorter in bytes, gain less at the narrow GEMMs of small experts. Where a library launches a GEMM for each
// expert instead (Transformer Engine on streams of cuBLAS), each costs a further fixed time: the host's, which a CUDA graph that
// holds the experts leaves out.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

struct FormatFacts {
  std::string_view efficiency_key;
  double input_bytes, output_bytes;
  std::int64_t aligned_elements;  // 16 bytes of contiguous elements
};

constexpr FormatFacts facts[] = {
    {"gemm.fp32.efficiency", 4, 4, 4},
    {"gemm.tf32.efficiency", 4, 4, 4},
    {"gemm.fp16.efficiency", 2, 2, 8},
    {"gemm.bf16.efficiency", 2, 2, 8},
    {"gemm.fp8.efficiency", 1, 2, 16},
    {"gemm.fp4.efficiency", 0.5, 2, 32},
};

const FormatFacts& facts_of(core::Format format) { return facts[static_cast<std::size_t>(format)]; }

double as_double(std::int64_t n) { return static_cast<double>(n); }

double minimum_bytes(const core::OpSpec& op) {
  const FormatFacts& format = facts_of(op.format);
  const double m = as_double(op.m), n = as_double(op.n), k = as_double(op.k);
  return as_double(op.batch) * ((m * k + k * n) * format.input_bytes + m * n * format.output_bytes);
}

// k and n are the contiguous axes of the operands and of the result.
double alignment_slowdown(const core::OpSpec& op, const Curves& curves) {
  const std::int64_t elements = facts_of(op.format).aligned_elements;
  if (op.n % elements == 0 && op.k % elements == 0) {
    return 1.0;
  }
  const bool batched = op.batch > 1 && !op.grouped;
  return curves.at(batched ? "gemm.unaligned_batched_slowdown" : "gemm.unaligned_slowdown");
}

// How a GEMM is cut.
struct Tiling {
  double rows = 0.0, columns = 0.0, splits = 1.0, waves = 0.0, tile_s = 0.0, partial_sums_s = 0.0;
};

void note(const Tiling& t) {
  Recording::note("tile rows", t.rows);
  Recording::note("tile columns", t.columns);
  if (t.splits > 1.0) Recording::note("parts along k", t.splits);
  Recording::note("waves of tiles, the last one softened", t.waves);
  Recording::note("a tile", t.tile_s * 1e6, "us");
  if (t.splits > 1.0) Recording::note("partial sums", t.partial_sums_s * 1e6, "us");
}

double fastest_tiling(const core::OpSpec& op, const Curves& curves, double peak) {
  const double sms = curves.gpu().sms;
  const double sm_rate = curves.at(facts_of(op.format).efficiency_key) * peak / sms;
  const double hardness = curves.at("gemm.wave_hardness");
  const double k_ramp = op.grouped ? curves.at("gemm.grouped.k_ramp_bytes") / facts_of(op.format).input_bytes
                                   : curves.at("gemm.k_ramp");
  const double perimeter = curves.at("gemm.tile_perimeter");
  const double split_bandwidth =
      curves.at("gemm.split_bandwidth_efficiency") * curves.gpu().memory_bandwidth.value;
  const double m = as_double(op.m), n = as_double(op.n), k = as_double(op.k);
  const double batch = as_double(op.batch);
  const std::vector<double>& tiles = curves.list("gemm.tiles");
  const std::vector<double>& splits = curves.list("gemm.splits");
  double fastest = std::numeric_limits<double>::infinity();
  Tiling best;
  for (std::size_t i = 0; i + 1 < tiles.size(); i += 2) {
    const double tm = tiles[i], tn = tiles[i + 1];
    const double grid = std::ceil(m / tm) * std::ceil(n / tn) * batch;
    const double small_tile = 1.0 + perimeter * (1.0 / tm + 1.0 / tn - 1.0 / 128 - 1.0 / 256);
    for (const double split : splits) {
      if (op.grouped && split > 1.0) continue;
      const double x = grid * split / sms;
      const double full = std::max(x, 1.0);
      const double waves = full + hardness * (std::ceil(x) - full);
      const double tile_time = 2.0 * tm * tn * (k / split + k_ramp) * small_tile / sm_rate;
      // fp32 partial sums are written once and read once.
      const double partial_bytes = split > 1.0 ? 8.0 * split * m * n * batch : 0.0;
      const double time = waves * tile_time + partial_bytes / split_bandwidth;
      if (time < fastest) {
        fastest = time;
        best = {tm, tn, split, waves, tile_time, partial_bytes / split_bandwidth};
      }
    }
  }
  note(best);
  return fastest;
}

// What an output that is added to a sum moves beyond its own write.
double sum_bytes(const core::OpSpec& op) {
  return op.direction == core::Direction::backward ? std::max(0.0, op.bytes.value - minimum_bytes(op)) : 0.0;
}

// Beyond the first GEMM of a launch for each expert.
double expert_launches_us(const core::OpSpec& op, const Curves& curves) {
  return op.grouped && !op.captured ? as_double(op.batch - 1) * curves.find("gemm.grouped.fixed_us").value_or(0.0) : 0.0;
}

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.m >= 1 && op.n >= 1 && op.k >= 1 && op.batch >= 1);
  const auto peak = curves.gpu().peak(core::name_of(op.format));
  CORE_ASSERT(peak.has_value());
  const double bandwidth = curves.at("gemm.bandwidth_efficiency") * curves.gpu().memory_bandwidth.value;
  const double slowdown = alignment_slowdown(op, curves);
  const double added = curves.find("gemm.sum_exposed").value_or(0.0) * sum_bytes(op) / bandwidth;
  const double compute = fastest_tiling(op, curves, peak->value) * slowdown + added;
  const double bytes = op.bytes.value > 0.0 ? op.bytes.value : minimum_bytes(op);
  const double launches_us = expert_launches_us(op, curves);
  if (slowdown != 1.0) Recording::note("slower for its alignment", slowdown, "times");
  Recording::note("tensor cores", (compute - added) * 1e6, "us");
  if (added > 0.0) Recording::note("sum of gradients that no tile hides", added * 1e6, "us");
  Recording::note("memory traffic, beside them", bytes / bandwidth * 1e6, "us");
  if (launches_us > 0.0) Recording::note("a launch for each expert", launches_us, "us");
  Recording::note("fixed", curves.at("gemm.fixed_us"), "us");
  const double fixed_us = curves.at("gemm.fixed_us") + launches_us;
  return {core::Seconds{std::max(compute, bytes / bandwidth) + fixed_us * 1e-6},
          curves.origin_of("gemm")};
}

}  // namespace

extern const KernelCost gemm;
const KernelCost gemm = {
    "gemm", [](core::OpKind kind) { return kind == core::OpKind::gemm; }, time};

}  // namespace simulator::kernels
