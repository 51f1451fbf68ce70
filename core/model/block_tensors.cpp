#include "core/model/block_tensors.h"

#include <string_view>

#include "core/model/tensor_list.h"

namespace core {
namespace {

using Split = Tensor::Split;

void add_qk_norm(const Attributes& shape, TensorList& out) {
  const std::int64_t head_dim = shape.at("head_dim");
  const bool bias = shape.at("qk_norm_bias") != 0;
  if (shape.at("qk_norm") == 1) {
    for (const std::string name : {"q_norm", "k_norm"}) {
      out.vector_if(true, name + ".weight", head_dim, Split::none);
      out.vector_if(bias, name + ".bias", head_dim, Split::none);
    }
  } else if (shape.at("qk_norm") == 2) {
    const std::int64_t q = shape.at("heads") * head_dim;
    const std::int64_t k = shape.at("kv_heads") * head_dim;
    out.vector_if(true, "q_norm.weight", q, Split::heads);
    out.vector_if(bias, "q_norm.bias", q, Split::heads);
    out.vector_if(true, "k_norm.weight", k, Split::kv_heads);
    out.vector_if(bias, "k_norm.bias", k, Split::kv_heads);
  }
}

}  // namespace

std::vector<Tensor> norm_tensors(const Block& block, const ModelSpec&) {
  const std::int64_t dim = block.shape.at("dim");
  TensorList out;
  out.vector_if(block.shape.at("weight") != 0, "norm.weight", dim, Split::none);
  out.vector_if(block.shape.at("bias") != 0, "norm.bias", dim, Split::none);
  return out.take();
}

std::vector<Tensor> attention_tensors(const Block& block, const ModelSpec& model) {
  const Attributes& shape = block.shape;
  const std::int64_t q = shape.at("heads") * shape.at("head_dim");
  const std::int64_t kv = shape.at("kv_heads") * shape.at("head_dim");
  const bool qkv_bias = shape.at("qkv_bias") != 0;
  TensorList out;
  out.matrix("q.weight", model.hidden, q, Split::heads);
  out.vector_if(qkv_bias, "q.bias", q, Split::heads);
  out.matrix("k.weight", model.hidden, kv, Split::kv_heads);
  out.vector_if(qkv_bias, "k.bias", kv, Split::kv_heads);
  out.matrix("v.weight", model.hidden, kv, Split::kv_heads);
  out.vector_if(qkv_bias, "v.bias", kv, Split::kv_heads);
  if (shape.get("gate", 0) != 0) {
    out.matrix("gate.weight", model.hidden, q, Split::heads);
    out.vector_if(qkv_bias, "gate.bias", q, Split::heads);
  }
  add_qk_norm(shape, out);
  out.vector_if(shape.get("sinks", 0) != 0, "sinks", shape.at("heads"), Split::heads);
  out.matrix("out.weight", q, model.hidden, Split::rows);
  out.vector_if(shape.at("out_bias") != 0, "out.bias", model.hidden, Split::none);
  return out.take();
}

std::vector<Tensor> mlp_tensors(const Block& block, const ModelSpec& model) {
  const Attributes& shape = block.shape;
  const std::int64_t ffn = shape.at("ffn");
  const bool up_bias = shape.at("up_bias") != 0;
  TensorList out;
  if (shape.at("gated") != 0) {
    out.matrix("gate.weight", model.hidden, ffn, Split::columns);
    out.vector_if(up_bias, "gate.bias", ffn, Split::rows);
  }
  out.matrix("up.weight", model.hidden, ffn, Split::columns);
  out.vector_if(up_bias, "up.bias", ffn, Split::rows);
  out.matrix("down.weight", ffn, model.hidden, Split::rows);
  out.vector_if(shape.at("down_bias") != 0, "down.bias", model.hidden, Split::none);
  return out.take();
}

std::vector<Tensor> embedding_tensors(const Block& block, const ModelSpec& model) {
  const Attributes& shape = block.shape;
  const std::int64_t dim = shape.at("dim");
  TensorList out;
  out.matrix("tokens.weight", shape.at("vocab"), dim, Split::rows);
  if (shape.at("positions") != 0) {
    out.matrix("positions.weight", shape.at("positions"), model.hidden, Split::none);
  }
  if (dim != model.hidden) {
    out.matrix("project_in.weight", dim, model.hidden, Split::none);
  }
  return out.take();
}

std::vector<Tensor> output_tensors(const Block& block, const ModelSpec& model) {
  const Attributes& shape = block.shape;
  const std::int64_t dim = shape.at("dim");
  TensorList out;
  if (dim != model.hidden) {
    out.matrix("project_out.weight", model.hidden, dim, Split::none);
  }
  if (shape.at("tied") == 0) {
    out.matrix("output.weight", shape.at("vocab"), dim, Split::rows);
  }
  out.vector_if(shape.at("bias") != 0, "output.bias", shape.at("vocab"), Split::rows);
  return out.take();
}

}  // namespace core
