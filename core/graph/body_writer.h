#pragma once

#include <string>

#include "core/graph/body.h"

namespace core {

// Appends operations to a body in the vocabulary of the blocks. Sizes are those of one rank.
class BodyWriter {
 public:
  BodyWriter(Body& body, const BodyContext& context) : body_(body), context_(context) {}

  // A linear layer y = x w: x [tokens, in], w [in, out]. Writes the forward GEMM, and the input-gradient and
  // weight-gradient GEMMs to `backward`; with fp8, the casts of inputs and gradients.
  struct Linear {
    std::string name;
    double tokens = 0;
    std::int64_t in = 0, out = 0;
    bool output_layer = false;  // kept in the recipe's gemm_output format
  };
  void linear_forward(const Linear& l);
  void linear_input_gradient(const Linear& l);
  void linear_weight_gradient(const Linear& l);

  void memory_bound(std::string name, Direction direction, double bytes);
  // A tensor-parallel collective over `bytes` (nothing at tp=1).
  void tensor_collective(OpKind kind, std::string name, Direction direction, double bytes, bool overlaps_next = false);
  void attention(const OpSpec& spec);
  void save(std::string name, double bytes, SavedTensor::DroppedBy dropped_by = SavedTensor::DroppedBy::full);
  void parameters(double elements, double gemm_elements);

 private:
  void gemm(const std::string& name, Direction direction, std::int64_t m, std::int64_t n, std::int64_t k,
            Format format, double bytes);
  void cast(const std::string& name, Direction direction, double elements, Format format);
  std::vector<BodyOp>& list(Direction direction) {
    return direction == Direction::forward ? body_.forward : body_.backward;
  }
  Body& body_;
  const BodyContext& context_;
};

// The collectives around a pair of column- and row-parallel linear layers (arXiv 2205.05198, figures 4 and 5).
// `bytes`: the whole activation [b, s, h].
void enter_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes);
void leave_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes);

}  // namespace core
