#include "core/graph/op.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

namespace {

constexpr std::array<std::string_view, 15> kind_names = {"cell",
                                                        "gemm",
                                                        "attention",
                                                        "memory_bound",
                                                        "optimizer",
                                                        "all_reduce",
                                                        "all_gather",
                                                        "reduce_scatter",
                                                        "send_receive",
                                                        "host",
                                                        "scan",
                                                        "all_to_all",
                                                        "copy_to_host",
                                                        "copy_to_device",
                                                        "host_optimizer"};
constexpr std::array<std::string_view, 6> format_names = {
    "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
constexpr std::array<std::string_view, 4> attention_names = {
    "unfused", "flash1", "flash2", "flash3"};

constexpr std::array<std::string_view, 3> mover_names = {"none", "kernels", "copy_engine"};

template <class Names>
std::size_t index_of(const Names& names, std::string_view name, std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::string known;
    for (const std::string_view each : names) {
      known.append(known.empty() ? "" : ", ").append(each);
    }
    throw InputError(std::string(what) + ": expected one of " + known + ", found \"" +
                     printable(name) + "\"");
  }
  return static_cast<std::size_t>(found - names.begin());
}

// Query-key pairs of one head that a fused kernel computes. Queries are the last m of n positions
// when causal; a query at position p then meets min(p, window) keys (in the continuous limit, so
// that m = n without a window is half of the matrix).
double fused_pairs(const OpSpec& op) {
  const double n = static_cast<double>(op.n);
  const double m = static_cast<double>(op.m);
  const double window = op.window > 0 ? std::min(static_cast<double>(op.window), n) : n;
  if (!op.causal) {
    return m * window;
  }
  const double first = std::max(n - m, 0.0);
  const auto pairs_up_to = [&](double p) {
    return p <= window ? p * p / 2.0 : window * window / 2.0 + (p - window) * window;
  };
  return pairs_up_to(n) - pairs_up_to(first);
}

}  // namespace

std::string_view name_of(OpKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

bool is_collective(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather ||
         kind == OpKind::reduce_scatter || kind == OpKind::send_receive ||
         kind == OpKind::all_to_all;
}

std::string_view name_of(Format format) { return format_names[static_cast<std::size_t>(format)]; }

Format format_of(std::string_view name) {
  return static_cast<Format>(index_of(format_names, name, "format"));
}

std::string_view name_of(AttentionKernel kernel) {
  return attention_names[static_cast<std::size_t>(kernel)];
}

AttentionKernel attention_kernel_of(std::string_view name) {
  return static_cast<AttentionKernel>(index_of(attention_names, name, "attention kernel"));
}

std::string_view name_of(Mover mover) { return mover_names[static_cast<std::size_t>(mover)]; }

Flops attention_flops(const OpSpec& op) {
  const bool fused = op.kernel != AttentionKernel::unfused;
  const double pairs =
      fused ? fused_pairs(op) : static_cast<double>(op.m) * static_cast<double>(op.n);
  const double widths = static_cast<double>(op.k + (op.v_dim > 0 ? op.v_dim : op.k));
  const double forward = 2.0 * pairs * widths * static_cast<double>(op.batch);
  if (op.direction == Direction::forward) {
    return Flops{forward};
  }
  return Flops{forward * (fused ? 2.5 : 2.0)};
}

}  // namespace core
