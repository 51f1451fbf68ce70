#pragma once

#include <optional>
#include <string>

#include "core/graph/body.h"

namespace core {

// Appends operations to a body in the vocabulary of the blocks. Sizes are those of one rank.
class BodyWriter {
 public:
  BodyWriter(Body& body, const BodyContext& context) : body_(body), context_(context) {
    // Room for the operations of most layers.
    body_.forward.reserve(32), body_.backward.reserve(64), body_.saved.reserve(32);
  }

  // A linear layer y = x w: x [tokens, in], w [in, out]. Writes the forward GEMM, and the input-gradient and
  // weight-gradient GEMMs to `backward`, each after the kernels that make its operands in the recipe's formats (casts,
  // transposes, amax passes, Hadamard transforms).
  struct Linear {
    std::string name;
    double tokens = 0;
    std::int64_t in = 0, out = 0;
    bool output_layer = false;  // LinearKind::output
    // Experts: how many GEMMs of `tokens` rows each run as one grouped kernel.
    std::int64_t experts = 0;
    Modules repeated_by = 0;  // recompute of any of these modules repeats the forward GEMM
    LinearKind kind = LinearKind::linear;  // of those that are neither output layer nor experts
  };
  void linear_forward(const Linear& l);
  void linear_input_gradient(const Linear& l);
  void linear_weight_gradient(const Linear& l);
  // The two gradient GEMMs as work of the forward pass, the weight's added to a sum of `sum_bytes` an element; and the
  // forward GEMM once more in the backward pass. For a loss that goes by chunks: plain operands, no passes.
  void linear_gradients_in_forward(const Linear& l, double sum_bytes);
  void linear_forward_again(const Linear& l);

  void memory_bound(std::string name, Direction direction, double bytes, Modules repeated_by = 0);
  // A collective of the ranks of a scope over `bytes`, as OpKind counts them; nothing where the scope has one rank.
  void collective(Scope scope, OpKind kind, std::string name, Direction direction, double bytes,
                  bool overlaps_next = false, Modules repeated_by = 0);
  // The same over the tensor-parallel ranks.
  void tensor_collective(OpKind kind, std::string name, Direction direction, double bytes, bool overlaps_next = false);
  // The all-to-all of experts' tokens over Scope::expert: `bytes` hold `copies` of each token, which go to ranks of at most
  // `domains` domains (0 = any number).
  void expert_all_to_all(std::string name, Direction direction, double bytes, std::int64_t copies, std::int64_t domains,
                         bool overlaps_next = false, Modules repeated_by = 0);
  // A gather of tensor-parallel ranks before the next GEMM, or a reduce-scatter after the last one. With overlap of that
  // communication both run in parts of their rows (Wang et al. 2023, "Overlap Communication with Dependent Computation"), each
  // part of the GEMM a kernel of its own shape:
  //   gather           tp parts; while one is computed, the next comes from the neighbour. The rank's own is first
  //   by copy engines  tp parts, the rank's own last; while one is computed, the one before goes to its rank, which in the end
  //                    adds up what came
  //   by kernels       parts of BodyContext::tensor_parts; the reduce-scatter of one beside the next, that of the last exposed
  // Where another operation than the GEMM's casts stands between, or it is the output layer's or of experts, all is in one.
  enum class Beside : std::uint8_t { next, last };
  void tensor_collective_in_parts(OpKind kind, const std::string& name, Direction direction, double bytes, Beside gemm,
                                  Modules repeated_by = 0);
  // Any other kernel, as it stands.
  void op(OpSpec spec, Modules repeated_by = 0);
  void save(std::string name, double bytes, Modules dropped_by = 0);
  // The input of a GEMM: kept in the recipe's format (gemm_input_bytes) by the caller's count, and by W of a split
  // backward.
  void save_gemm_input(std::string name, double bytes, Modules dropped_by = 0);

 private:
  struct Gather {
    OpKind kind = OpKind::all_gather;
    std::string name;
    Direction direction = Direction::forward;
    double bytes = 0.0;
    Modules repeated_by = 0;
  };
  BodyOp& append(OpSpec spec, Modules repeated_by);
  BodyOp& push(OpSpec spec, Modules repeated_by);
  void push_collective(Scope scope, OpSpec spec, bool overlaps_next, Modules repeated_by);
  void gather_at_once();
  BodyOp& gemm_beside_gather(const OpSpec& whole, Modules repeated_by);
  void scatter_beside_gemm(OpKind kind, const std::string& name, Direction direction, double bytes, Modules repeated_by);
  OpSpec collective_spec(OpKind kind, std::string name, Direction direction, double bytes) const;
  static double weight_bytes(const Linear& l, const GemmRecipe& g);
  double forward_bytes(const Linear& l, const GemmRecipe& g) const;
  double input_gradient_bytes(const Linear& l, const GemmRecipe& g) const;
  double weight_gradient_bytes(const Linear& l, const GemmRecipe& g, double sum_bytes) const;
  BodyOp& gemm(const std::string& name, Direction direction, std::int64_t m, std::int64_t n, std::int64_t k,
               Format format, double bytes, std::optional<double> fixed_bytes, const Linear& l);
  const LinearRecipe& recipe_of(const Linear& l) const;
  void passes(const Linear& l, CastPass::When when);
  void pass(const Linear& l, const CastPass& pass, Direction direction);
  static std::int64_t rows(const Linear& l);
  Body& body_;
  const BodyContext& context_;
  std::optional<Gather> gather_;    // waits for its GEMM
  std::optional<double> last_fixed_bytes_;  // of the last GEMM, those that do not grow with its rows; nothing: not in parts
};

// Ranks of a scope under a context.
std::int64_t ranks_of(Scope scope, const BodyContext& context);

// The collectives around a pair of column- and row-parallel linear layers (arXiv 2205.05198, figures 4 and 5).
// `bytes`: the whole activation [b, s, h].
void enter_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes, Modules repeated_by = 0);
void leave_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes, Modules repeated_by = 0);

}  // namespace core
