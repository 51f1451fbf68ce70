#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/units.h"

namespace core {

// What an operation does; decides which cost file prices it.
enum class OpKind : std::uint8_t {
  cell,            // a whole schedule cell, a bucket of one, or another lump of a known duration
  gemm,            // [m, k] x [k, n], `batch` times
  attention,       // softmax(q k^T) v, forward or backward; see AttentionAxes
  memory_bound,    // norms, activations, residuals, rope, softmax, embedding, casts, loss: `bytes` of traffic
  optimizer,       // Adam over `m` parameters: `bytes` of traffic
  all_reduce,      // collectives: `bytes` as nccl-tests counts them (the whole buffer)
  all_gather,      //   the gathered buffer
  reduce_scatter,  //   the buffer before it is scattered
  send_receive,    // point to point: the message
  host,            // the GPU waits for the host, which makes the `m` launches of chain `n`
  scan,            // chunked linear attention or state-space scan: `flops` in GEMMs of chunks, `bytes` of traffic
  all_to_all,      // collective: the buffer that a rank sends, its own share included
  // Over PCIe or C2C, to and from pinned host memory: `bytes`. With n > 0 it runs beside chain n - 1, from its start, and is
  // the wait for what outlasts the chain.
  copy_to_host,
  copy_to_device,
  host_optimizer,  // the optimizer by the CPU over states in host memory: `bytes` of its traffic
};
// Whether the operation is priced by the links of its group.
bool is_collective(OpKind kind);
// A copy between a rank and its host.
inline bool is_copy(OpKind kind) { return kind == OpKind::copy_to_host || kind == OpKind::copy_to_device; }

enum class Format : std::uint8_t { fp32, tf32, fp16, bf16, fp8, fp4 };
std::string_view name_of(OpKind kind);
std::string_view name_of(Format format);
Format format_of(std::string_view name);  // throws InputError

enum class AttentionKernel : std::uint8_t { unfused, flash1, flash2, flash3 };
std::string_view name_of(AttentionKernel kernel);  // "unfused", "flash1", ...
AttentionKernel attention_kernel_of(std::string_view name);  // throws InputError

// What moves the bytes of a transfer that is made to run beside a kernel: kernels that hold SMs, or copy engines.
enum class Mover : std::uint8_t { none, kernels, copy_engine };
std::string_view name_of(Mover mover);  // "none", "kernels", "copy_engine"

enum class Direction : std::uint8_t { forward, backward };

// The name of an operation or tensor, held in place: a search makes and copies millions of them.
class OpName {
 public:
  static constexpr std::size_t longest = 62;
  OpName() = default;
  OpName(std::string_view text) : size_(static_cast<std::uint8_t>(text.size())) {
    CORE_ASSERT(text.size() <= longest);
    std::copy(text.begin(), text.end(), text_.begin());
  }
  OpName(const std::string& text) : OpName(std::string_view(text)) {}
  OpName(const char* text) : OpName(std::string_view(text)) {}
  operator std::string_view() const { return {text_.data(), size_}; }
  bool empty() const { return size_ == 0; }
  std::string str() const { return std::string(std::string_view(*this)); }
  bool operator==(const OpName&) const = default;  // what is beyond the text is zero in both
  friend bool operator==(const OpName& a, std::string_view b) { return std::string_view(a) == b; }
  friend bool operator==(const OpName& a, const std::string& b) { return std::string_view(a) == b; }
  friend bool operator==(const OpName& a, const char* b) { return std::string_view(a) == b; }
  friend std::string operator+(const std::string& a, const OpName& b) { return a + b.str(); }
  friend std::string operator+(const OpName& a, const std::string& b) { return a.str() + b; }

 private:
  std::uint8_t size_ = 0;
  std::array<char, longest> text_{};
};

// Shape of an operation, free of rank, layer and micro-batch: everything its cost depends on. Many
// operations of a step share one.
struct OpSpec {
  OpKind kind = OpKind::memory_bound;
  OpName name;              // "qkv", "mlp_up", "core_attention", "norm", ...
  Format format = Format::bf16;
  Direction direction = Direction::forward;
  AttentionKernel kernel = AttentionKernel::flash2;
  bool causal = true;       // attention: half of the score matrix is work (flash kernels only)
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  // gemm axes; attention: m = query length, n = key
                                                // length, k = head size, batch = sequences x heads
  std::int64_t kv_batch = 0;                    // attention: sequences x key-value heads
  std::int64_t window = 0;                      // attention: sliding window in tokens, 0 = none
  std::int64_t v_dim = 0;                       // attention: width of values where it is not k (MLA), 0 = k
  bool grouped = false;                         // gemm: one kernel over `batch` experts of m tokens each
  bool captured = false;                        // grouped gemm: inside a CUDA graph, so that the host launches no expert
  bool sparse = false;                          // attention: `window` keys chosen by an indexer, gathered
  // all_to_all of experts' tokens: each token has n copies in `bytes`, to ranks of at most k domains (0 = any number).
  // One-sided (DeepEP, NVSHMEM): one copy crosses to each domain and is forwarded inside it.
  bool one_sided = false;
  // A part of a GEMM, and the part of a tensor-parallel collective that runs beside it, both slowed by the other.
  Mover beside = Mover::none;
  // all_gather, reduce_scatter over several NVLink domains: k = 0 one ring through all members (NCCL), 1 two levels one after
  // the other (ZeRO++), 2 the rings of both levels at once (PaRO).
  Flops flops;              // work that is counted (2 m n k batch; attention: see below)
  Bytes bytes;              // memory traffic, or bytes of the collective
  std::int16_t group = -1;  // collectives: index into StepGraph::groups

  bool operator==(const OpSpec&) const = default;
};

// A wait on the compute queue at the end of a chain, in which no kernel runs: for the host, or for a copy beside the chain.
inline bool is_wait(const OpSpec& op) { return op.kind == OpKind::host || (is_copy(op.kind) && op.n > 0); }

// FLOPs of attention, 2 m n (k + v_dim) batch forward for the full score matrix, half of it when causal (n = m), and
// clipped to the window; backward 2.5 times forward for flash kernels (recomputes scores), else 2 times.
Flops attention_flops(const OpSpec& op);

}  // namespace core
