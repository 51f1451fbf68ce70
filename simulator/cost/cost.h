#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/hardware/hardware.h"
#include "core/hardware/topology.h"
#include "core/io/document.h"
#include "core/units.h"

namespace simulator {

// Where a duration rests: measured on this GPU, a shipped curve fitted to measurements of it, or the
// roofline (peak and bandwidth with the efficiency of its architecture or a near relative).
enum class Origin : std::uint8_t { measured, fitted, roofline };
std::string_view name_of(Origin origin);

struct Cost {
  core::Seconds time;
  Origin origin = Origin::roofline;
};

// Numbers of data/curves for one GPU: efficiency curves of its kernels, latency and bandwidth of its
// collectives, slowdown under overlap. Every number has a source in the file.
class Curves {
 public:
  // Curves of a GPU: data/curves/<gpu>.json where there is one, else data/curves/<arch>.json (then what
  // depends on the exact part is scaled by its peaks and counts as roofline).
  static Curves load(const core::Gpu& gpu);
  // The same from trees already read, each overriding the ones before it; the last `overrides` of them
  // may repeat keys. Throws InputError for a malformed entry or a missing number.
  static Curves from_documents(const core::Gpu& gpu,
                               const std::vector<core::Document>& documents,
                               std::size_t overrides = 0);

  double at(std::string_view key) const;  // a number; CORE_ASSERTs that it is there
  // A number that not every architecture has: throws InputError naming GPU, key and what needs it.
  double needed(std::string_view key, std::string_view what) const;
  std::optional<double> find(std::string_view key) const;
  const std::vector<double>& list(std::string_view key) const;
  Origin origin_of(std::string_view section) const;      // section: "gemm", "attention", ...
  std::string source_of(std::string_view key) const;     // the `source` beside a number
  std::string checked_of(std::string_view key) const;    // seen, recalled, derived or estimate
  std::vector<double> values_of(std::string_view key) const;  // of a number or a list
  const core::Gpu& gpu() const { return gpu_; }
  // The same curves with other numbers at a key that is there: as many as it has. For calibrations.
  Curves with(std::string_view key, const std::vector<double>& values) const;
  // All dotted keys, sorted; numbers and lists.
  std::vector<std::string> keys() const;

 private:
  void add(const core::Document& document, bool overrides);
  void add_sections(const core::Document& sections);
  void add_entry(const core::Document& entry, const std::string& key, bool overrides);
  void add_leaf(const core::Document& leaf, const std::string& key);
  void require_all() const;

  core::Gpu gpu_;
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, std::vector<double>, std::less<>> lists_;
  std::map<std::string, std::string, std::less<>> sources_, checked_;
  std::map<std::string, Origin, std::less<>> origins_;
};

// A kernel cost: one file in simulator/cost/kernels.
struct KernelCost {
  std::string_view name;
  bool (*prices)(core::OpKind kind);
  // Time on the GPU, launch gap not included. The file head states formula and source.
  Cost (*time)(const core::OpSpec& op, const Curves& curves);
};
namespace kernels {
std::span<const KernelCost* const> all();
}

// How an all-gather or reduce-scatter passes several domains: in one ring through all members (NCCL);
// in two levels one after the other, between domains and inside them (ZeRO++, arXiv 2306.10209); in
// both rings at once (PaRO's hierarchical overlapping ring, arXiv 2310.06003).
enum class Levels : std::uint8_t { one, two, overlapping };

// What a collective does: all of an OpSpec that its time depends on besides the links.
struct Collective {
  core::OpKind kind = core::OpKind::all_reduce;
  core::Bytes bytes;       // as nccl-tests counts them: of all_to_all the buffer a rank sends
  bool one_sided = false;  // all_to_all: one-sided copies (DeepEP) instead of NCCL's sends
  std::int64_t copies = 1;        // one_sided: of each token in `bytes`
  std::int64_t most_domains = 0;  // one_sided: that the copies of a token go to, 0 = any number
  Levels levels = Levels::one;    // all_gather, reduce_scatter
};

// The collective of an operation: an all-gather or reduce-scatter with k = 1 is in two levels, with
// k = 2 in overlapping ones. Requires is_collective(op.kind).
Collective collective_of(const core::OpSpec& op);

// A collective algorithm: one file in simulator/cost/collectives.
struct CollectiveCost {
  std::string_view name;  // "ring", "tree", "hierarchical", "nvls", "send_receive", "all_to_all", ...
  // Time of the operation over these links, or nothing where the algorithm does not apply (NVLS
  // outside an NVSwitch domain, tree for all-gather, ...).
  std::optional<Cost> (*time)(const Collective& collective,
                              const core::GroupLinks& links,
                              const Curves& curves);
};
namespace collectives {
std::span<const CollectiveCost* const> all();
}

struct CollectiveChoice {
  Cost cost;
  std::string_view algorithm;
};

// Attention kernels exist for some architectures only: flash1 from Volta, flash2 from Ampere, flash3 on
// Hopper. On Blackwell and on other vendors' devices "flash2" stands for the fused kernel that
// frameworks use there.
bool attention_available(core::AttentionKernel kernel, std::string_view arch);
// The fastest of those.
core::AttentionKernel best_attention(std::string_view arch);

// The time of a kernel (its own file's). The launch gap is Curves "launch.kernel_gap_us", added by lowering.
Cost kernel_time(const core::OpSpec& op, const Curves& curves);

// The fastest algorithm that applies, as NCCL's tuner chooses. A group of one costs nothing. Throws
// InputError where the curves of the GPU lack a number that only this kind needs (one-sided
// all-to-all on a GPU that has none).
CollectiveChoice collective_time(const Collective& collective,
                                 const core::GroupLinks& links,
                                 const Curves& curves);
// The same for a kind that its bytes describe.
CollectiveChoice collective_time(core::OpKind kind,
                                 core::Bytes bytes,
                                 const core::GroupLinks& links,
                                 const Curves& curves);

// What moves the bytes of a collective: NCCL's kernels hold SMs, one-sided kernels (DeepEP) fewer,
// copy engines none.
enum class Transport : std::uint8_t { nccl, copy_engine, one_sided };
std::string_view name_of(Transport transport);  // "nccl", "copy_engine", "one_sided"
// That of an operation: copies to and from the host take the copy engines.
Transport transport_of(const core::OpSpec& op);

// What a transport takes from kernels that run beside it, and they from it.
struct Interference {
  double sms = 0.0;               // that it holds
  double compute_slowdown = 0.0;  // share by which a kernel's rate falls
  double comm_slowdown = 0.0;     // share by which the transfer's rate falls
};
Interference interference_of(Transport transport, const Curves& curves);

}  // namespace simulator
