#pragma once

#include <string>
#include <vector>

#include "core/framework.h"
#include "core/graph/body_writer.h"
#include "core/graph/step_work.h"
#include "core/model/block_kind.h"
#include "core/model/model.h"
#include "tests/core/plans.h"

// What the tests of single blocks share: a block's own body, and sums over it.
namespace block_bodies {

struct Setting {
  core::Recipe recipe = core::load_recipe("bf16");
  core::BodyContext context;
  explicit Setting(const core::ModelSpec& model, const std::string& plan, std::int64_t seq)
      : context(core::body_context(plans::plan(plan),
                                   recipe,
                                   core::load_framework("megatron", "hopper"),
                                   model,
                                   seq,
                                   core::AttentionKernel::flash2)) {
    context.recipe = &recipe;
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
};

inline const core::Block& block_of(const core::ModelSpec& model, std::string_view kind) {
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (block.kind == kind) return block;
    }
  }
  throw std::out_of_range("no such block");
}

inline core::Body body(const core::ModelSpec& model, std::string_view kind, const core::BodyContext& context) {
  const auto& block = block_of(model, kind);
  core::Body out;
  core::block_kind(block.kind).lower(block, model, context, out);
  return out;
}

inline double flops(const std::vector<core::BodyOp>& ops, core::OpKind kind) {
  double sum = 0.0;
  for (const auto& op : ops) sum += op.spec.kind == kind ? op.spec.flops.value : 0.0;
  return sum;
}

inline double gemm_flops(const std::vector<core::BodyOp>& ops) { return flops(ops, core::OpKind::gemm); }

inline double bytes(const std::vector<core::BodyOp>& ops, core::OpKind kind) {
  double sum = 0.0;
  for (const auto& op : ops) sum += op.spec.kind == kind ? op.spec.bytes.value : 0.0;
  return sum;
}

inline double saved(const core::Body& body) {
  double sum = 0.0;
  for (const auto& tensor : body.saved) sum += tensor.bytes.value;
  return sum;
}

inline const core::OpSpec* find(const std::vector<core::BodyOp>& ops, std::string_view name) {
  for (const auto& op : ops) {
    if (op.spec.name == name) return &op.spec;
  }
  return nullptr;
}

}  // namespace block_bodies
