// Attention, forward or backward.
//
// Fused kernels (FlashAttention 1, 2, 3; cuDNN's on Blackwell):
//   t = t0 + max(FLOPs (1 + r / s) max(1, SMs / blocks) / (rate(d) peak), bytes / bandwidth)
// FLOPs as core::attention_flops counts them (half when causal, within the window, backward 2.5
// times forward); s the keys a query meets at most, r a ramp by mask and direction (short sequences
// fill tiles badly, causal ones more so), rate(d) a fraction of peak by head size, straight between
// the sizes listed; head sizes are padded to a multiple of 32. blocks = ceil(m / block) batch. Dao
// 2023 (FlashAttention-2) and Shah et al. 2024 (FlashAttention-3) have the measurements. Where keys
// and values differ in width (MLA: 192 and 128) d is their mean.
//
// In fp8 (cuDNN's MXFP8 kernels on Blackwell) rates are fractions of that peak, and a backward kernel
// with a window works on all scores that it would have without: from 2,048 to 32,768 tokens its time
// grows with their square (data/measured/attention_mxfp8.csv), which in bf16 it does not.
//
// Sparse (DeepSeek-V3.2, FlashMLA): `window` keys of each query, chosen elsewhere and gathered; the
// same formula with a rate of its own, flat in d, which holds what gathering costs, and no ramp: there
// are no tiles that a mask leaves half empty.
//
// Unfused: two batched GEMMs over the whole score matrix forward and four backward, each priced by
// gemm.cpp, plus the traffic of mask, softmax and dropout: a number of bytes for each score.

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator {

namespace {

// Where "flash2" stands for the fused kernel that frameworks use: FlashAttention-2 itself, cuDNN's on
// Blackwell, Composable Kernel's on AMD, those of the vendors' libraries elsewhere.
constexpr std::array<std::string_view, 11> archs_with_flash2 = {"ampere",
                                                               "ada",
                                                               "hopper",
                                                               "blackwell",
                                                               "blackwell-rtx",
                                                               "cdna2",
                                                               "cdna3",
                                                               "cdna4",
                                                               "gaudi",
                                                               "tpu",
                                                               "trainium"};

}  // namespace

bool attention_available(core::AttentionKernel kernel, std::string_view arch) {
  switch (kernel) {
    case core::AttentionKernel::unfused:
      return true;
    case core::AttentionKernel::flash1:
      return arch == "volta" || arch == "ampere" || arch == "hopper";
    case core::AttentionKernel::flash2:
      return std::ranges::find(archs_with_flash2, arch) != archs_with_flash2.end();
    case core::AttentionKernel::flash3:
      return arch == "hopper";
  }
  return false;
}

core::AttentionKernel best_attention(std::string_view arch) {
  using core::AttentionKernel;
  for (const AttentionKernel kernel :
       {AttentionKernel::flash3, AttentionKernel::flash2, AttentionKernel::flash1}) {
    if (attention_available(kernel, arch)) {
      return kernel;
    }
  }
  return AttentionKernel::unfused;
}

namespace kernels {

extern const KernelCost gemm;

namespace {

using core::AttentionKernel;
using core::Direction;
using core::OpSpec;

// Keys of a fused kernel, and of one direction of it.
struct DirectionKeys {
  std::string_view rate, full_ramp, causal_ramp;
};
struct FusedKeys {
  std::string_view head_sizes;
  DirectionKeys forward, backward;
};

constexpr FusedKeys flash_keys[] = {
    {"attention.flash1.head_sizes",
     {"attention.flash1.forward_rate",
      "attention.flash1.forward_ramp_full",
      "attention.flash1.forward_ramp_causal"},
     {"attention.flash1.backward_rate",
      "attention.flash1.backward_ramp_full",
      "attention.flash1.backward_ramp_causal"}},
    {"attention.flash2.head_sizes",
     {"attention.flash2.forward_rate",
      "attention.flash2.forward_ramp_full",
      "attention.flash2.forward_ramp_causal"},
     {"attention.flash2.backward_rate",
      "attention.flash2.backward_ramp_full",
      "attention.flash2.backward_ramp_causal"}},
    {"attention.flash3.head_sizes",
     {"attention.flash3.forward_rate",
      "attention.flash3.forward_ramp_full",
      "attention.flash3.forward_ramp_causal"},
     {"attention.flash3.backward_rate",
      "attention.flash3.backward_ramp_full",
      "attention.flash3.backward_ramp_causal"}},
};

// One scale for each 32 elements; kernels with one a tensor take 10 to 25 % less and are not modelled.
constexpr FusedKeys mxfp8_keys = {"attention.mxfp8.head_sizes",
                                  {"attention.mxfp8.forward_rate",
                                   "attention.mxfp8.forward_ramp_full",
                                   "attention.mxfp8.forward_ramp_causal"},
                                  {"attention.mxfp8.backward_rate",
                                   "attention.mxfp8.backward_ramp_full",
                                   "attention.mxfp8.backward_ramp_causal"}};

double as_double(std::int64_t n) { return static_cast<double>(n); }

// Unfused products run in 16 bits.
core::Format sixteen_bits(core::Format format) {
  const bool narrow = format == core::Format::fp8 || format == core::Format::fp4;
  return narrow ? core::Format::bf16 : format;
}

double value_width(const OpSpec& op) { return as_double(op.v_dim > 0 ? op.v_dim : op.k); }

double padded(double width) { return std::ceil(width / 32.0) * 32.0; }

double element_bytes(core::Format format) {
  return format == core::Format::fp32 || format == core::Format::tf32 ? 4.0 : 2.0;
}

// Rate at a head size: straight between the listed sizes, constant above, proportional below.
double rate_at(const std::vector<double>& sizes, const std::vector<double>& rates, double size) {
  CORE_ASSERT(sizes.size() == rates.size());
  if (size <= sizes.front()) {
    return rates.front() * size / sizes.front();
  }
  const auto above = std::lower_bound(sizes.begin(), sizes.end(), size);
  if (above == sizes.end()) {
    return rates.back();
  }
  const auto i = static_cast<std::size_t>(above - sizes.begin());
  const double part = (size - sizes[i - 1]) / (sizes[i] - sizes[i - 1]);
  return rates[i - 1] + part * (rates[i] - rates[i - 1]);
}

// Forward reads q, k, v and writes the output; backward reads these four and the output's gradient
// and writes three gradients.
double fused_bytes(const OpSpec& op) {
  const double queries = as_double(op.m) * as_double(op.batch);
  const double keys = as_double(op.n) * as_double(op.kv_batch > 0 ? op.kv_batch : op.batch);
  const double passes = op.direction == Direction::forward ? 1.0 : 2.0;
  return passes * (queries + keys) * (as_double(op.k) + value_width(op)) * element_bytes(op.format);
}

// Fraction of peak that the inner loop of the kernel reaches.
double efficiency(const OpSpec& op, const Curves& curves, const FusedKeys& keys) {
  const bool forward = op.direction == Direction::forward;
  if (op.sparse) {
    return curves.needed(
        forward ? "attention.sparse.forward_rate" : "attention.sparse.backward_rate",
        "sparse attention");
  }
  const double mean = (padded(as_double(op.k)) + padded(value_width(op))) / 2.0;
  const DirectionKeys& direction = forward ? keys.forward : keys.backward;
  return rate_at(curves.list(keys.head_sizes), curves.list(direction.rate), mean);
}

bool in_fp8(const OpSpec& op) { return op.format == core::Format::fp8; }

// The scores that a kernel works on, which may be more than it has to.
OpSpec worked_on(const OpSpec& op) {
  OpSpec worked = op;
  const bool windowed = op.window > 0 && op.window < op.n;
  if (in_fp8(op) && windowed && op.direction == Direction::backward) {
    worked.window = 0;
  }
  return worked;
}

core::Seconds fused_time(const OpSpec& asked, const Curves& curves, const FusedKeys& keys) {
  const OpSpec op = worked_on(asked);
  const DirectionKeys& direction =
      op.direction == Direction::forward ? keys.forward : keys.backward;
  const auto peak = curves.gpu().peak(core::name_of(in_fp8(op) ? op.format : sixteen_bits(op.format)));
  CORE_ASSERT(peak.has_value());
  const double widths = as_double(op.k) + value_width(op);
  const double padding = (padded(as_double(op.k)) + padded(value_width(op))) / widths;
  const double rate = efficiency(op, curves, keys) * peak->value;
  const double met = as_double(op.window > 0 ? std::min(op.window, op.n) : op.n);
  const double ramp =
      op.sparse ? 1.0
                : 1.0 + curves.at(op.causal ? direction.causal_ramp : direction.full_ramp) / met;
  const double blocks =
      std::ceil(as_double(op.m) / curves.at("attention.query_block")) * as_double(op.batch);
  const double idle = std::max(1.0, curves.gpu().sms / blocks);
  const double compute = core::attention_flops(op).value * padding * ramp * idle / rate;
  const double memory = fused_bytes(op) / (curves.at("memory_bound.efficiency") *
                                           curves.gpu().memory_bandwidth.value);
  Recording::note("fraction of peak at this head size", rate / peak->value);
  Recording::note("padding of the head size", padding, "times");
  Recording::note("ramp of a short sequence", ramp, "times");
  Recording::note("SMs without a block", idle, "times");
  Recording::note("tensor cores", compute * 1e6, "us");
  Recording::note("memory traffic, beside them", memory * 1e6, "us");
  Recording::note("fixed", curves.at("attention.fixed_us"), "us");
  return core::Seconds{std::max(compute, memory) + curves.at("attention.fixed_us") * 1e-6};
}

OpSpec score_gemm(const OpSpec& op, std::int64_t m, std::int64_t n, std::int64_t k) {
  OpSpec gemm_op;
  gemm_op.kind = core::OpKind::gemm;
  gemm_op.format = sixteen_bits(op.format);
  gemm_op.m = m;
  gemm_op.n = n;
  gemm_op.k = k;
  gemm_op.batch = op.batch;
  return gemm_op;
}

core::Seconds unfused_time(const OpSpec& op, const Curves& curves) {
  const auto priced = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm.time(score_gemm(op, m, n, k), curves).time;
  };
  const std::int64_t values = op.v_dim > 0 ? op.v_dim : op.k;
  core::Seconds gemms;
  std::string_view bytes_key;
  if (op.direction == Direction::forward) {
    gemms = priced(op.m, op.n, op.k) + priced(op.m, values, op.n);
    bytes_key = op.causal ? "attention.unfused.causal_bytes_forward"
                          : "attention.unfused.full_bytes_forward";
  } else {  // gradients of the scores and of q, then of k and v
    gemms = priced(op.m, op.n, values) + priced(op.m, op.k, op.n) + priced(op.n, op.k, op.m) +
            priced(op.n, values, op.m);
    bytes_key = op.causal ? "attention.unfused.causal_bytes_backward"
                          : "attention.unfused.full_bytes_backward";
  }
  const double scores = as_double(op.m) * as_double(op.n) * as_double(op.batch);
  const core::BytesPerSecond bandwidth =
      curves.gpu().memory_bandwidth * curves.at("memory_bound.efficiency");
  const auto elementwise = core::Bytes{scores * curves.at(bytes_key)} / bandwidth;
  Recording::note("all batched GEMMs", 1e6 * gemms.value, "us");
  Recording::note("mask, softmax and dropout", 1e6 * elementwise.value, "us");
  return gemms + elementwise;
}

Cost time(const OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.m >= 1 && op.n >= 1 && op.k >= 1 && op.batch >= 1);
  CORE_ASSERT(attention_available(op.kernel, curves.gpu().arch));
  const Origin origin = curves.origin_of("attention");
  if (op.kernel == AttentionKernel::unfused) {
    return {unfused_time(op, curves), origin};
  }
  if (in_fp8(op)) {
    curves.needed(mxfp8_keys.forward.causal_ramp, "attention in fp8");
    return {fused_time(op, curves, mxfp8_keys), origin};
  }
  const std::size_t flash = static_cast<std::size_t>(op.kernel) - 1;
  return {fused_time(op, curves, flash_keys[flash]), origin};
}

}  // namespace

extern const KernelCost attention;
const KernelCost attention = {
    "attention", [](core::OpKind kind) { return kind == core::OpKind::attention; }, time};

}  // namespace kernels
}  // namespace simulator
