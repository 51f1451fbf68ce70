// Tensor-parallel collectives in parts beside their GEMMs (overlap=tensor): what is computed and moved, part by part.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/core/block_bodies.h"

namespace core {
namespace {

using block_bodies::body;
using block_bodies::Setting;

std::vector<const BodyOp*> all_of(const std::vector<BodyOp>& ops, std::string_view prefix) {
  std::vector<const BodyOp*> out;
  for (const auto& op : ops) {
    if (std::string_view(op.spec.name).starts_with(prefix)) out.push_back(&op);
  }
  return out;
}

std::string kinds_of(const std::vector<BodyOp>& ops) {
  std::string out;
  for (const auto& op : ops) out += std::string(name_of(op.spec.kind)) + (op.overlaps_next ? "* " : " ");
  return out;
}

// llama-3.1-8b: h 4096, F 14336; b = 2 of 8192 tokens.
constexpr double tokens = 16384, h = 4096, F = 14336;
const std::string split = "tp=4 sp mb=2 gbs=2";

// Transformer Engine: a gather before a GEMM goes round in tp parts, the rank's own first; the reduce-scatter after one is in
// four, that of a part beside the next one's GEMM.
TEST(TensorParts, OfMegatronAreARingBeforeAndAPipelineAfterAGemm) {
  const auto model = load_model("llama-3.1-8b");
  const Setting setting(model, split + " overlap=both+tensor", 8192);
  const auto ops = body(model, "mlp", setting.context);
  EXPECT_EQ(kinds_of(ops.forward),
            "send_receive* gemm send_receive* gemm send_receive* gemm gemm memory_bound "
            "gemm reduce_scatter* gemm reduce_scatter* gemm reduce_scatter* gemm reduce_scatter memory_bound ");
  const auto up = all_of(ops.forward, "mlp_up"), down = all_of(ops.forward, "mlp_down");
  ASSERT_EQ(up.size(), 4u);
  ASSERT_EQ(down.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(up[i]->spec.m, 4096);
    EXPECT_EQ(up[i]->spec.n, 7168);
    EXPECT_EQ(down[i]->spec.m, 4096);
    EXPECT_EQ(up[i]->spec.beside, i < 3 ? Mover::copy_engine : Mover::none);
    EXPECT_EQ(down[i]->spec.beside, i > 0 ? Mover::kernels : Mover::none);
    // A part reads its own rows and all of the weight, and writes its own rows.
    EXPECT_DOUBLE_EQ(up[i]->spec.bytes.value, 2.0 * (tokens / 4 * h + h * 2 * F / 4 + tokens / 4 * 2 * F / 4));
  }
  for (const auto* sent : all_of(ops.forward, "tp_all_gather")) EXPECT_DOUBLE_EQ(sent->spec.bytes.value, 2.0 * tokens * h / 4);
  for (const auto* part : all_of(ops.forward, "tp_reduce_scatter")) {
    EXPECT_DOUBLE_EQ(part->spec.bytes.value, 2.0 * tokens * h / 4);
    EXPECT_EQ(part->spec.beside, part->overlaps_next ? Mover::kernels : Mover::none);
  }
}

// Asynchronous tensor parallelism of PyTorch copies parts to the ranks that need them; each adds up what came.
TEST(TensorParts, OfFsdpAreCopiedBothWays) {
  const auto model = load_model("llama-3.1-8b");
  Setting setting(model, split + " overlap=both+tensor", 8192);
  setting.context.tensor_parts = load_framework("fsdp", "hopper").tensor_parts;
  const auto ops = body(model, "mlp", setting.context);
  EXPECT_EQ(kinds_of(ops.forward),
            "send_receive* gemm send_receive* gemm send_receive* gemm gemm memory_bound "
            "gemm send_receive* gemm send_receive* gemm send_receive* gemm memory_bound memory_bound ");
  const auto sum = all_of(ops.forward, "tp_reduce_scatter_sum");
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_DOUBLE_EQ(sum[0]->spec.bytes.value, 2.0 * tokens * h * (1.0 + 0.25));
}

// All parts together do the work and move the bytes of the whole: of a gather what a rank lacks, (tp - 1) / tp of it. Weight
// gradients, experts, the output layer and the embedding stay whole.
TEST(TensorParts, AddUpToTheWhole) {
  for (const std::string name : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "kimi-linear-48b-a3b", "gpt2-xl"}) {
    const auto model = load_model(name);
    for (const std::string framework : {"megatron", "fsdp"}) {
      const auto bodies = [&](const std::string& plan) {
        Setting setting(model, plan, 4096);
        setting.context.tensor_parts = load_framework(framework, "hopper").tensor_parts;
        auto all = bodies_of(model, setting.context);
        all.kinds.push_back(all.embedding), all.kinds.push_back(all.output);
        return all.kinds;
      };
      const auto whole = bodies("tp=2 sp gbs=1"), parts = bodies("tp=2 sp gbs=1 overlap=both+tensor");
      ASSERT_EQ(whole.size(), parts.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const bool forward : {true, false}) {
          const auto& a = forward ? whole[i].forward : whole[i].backward;
          const auto& b = forward ? parts[i].forward : parts[i].backward;
          const auto rows_of = [](const std::vector<BodyOp>& ops) {
            std::map<std::string, std::int64_t> rows;
            for (const auto& op : ops) {
              if (op.spec.kind == OpKind::gemm) rows[op.spec.name.str()] += op.spec.m * op.spec.batch;
            }
            return rows;
          };
          EXPECT_EQ(rows_of(a), rows_of(b)) << name;
          EXPECT_NEAR(block_bodies::gemm_flops(b), block_bodies::gemm_flops(a), 1e-12 * block_bodies::gemm_flops(a)) << name;
          const auto received = [](const std::vector<BodyOp>& ops) {
            double bytes = 0.0;
            for (const auto& op : ops) {
              if (op.scope != Scope::tensor) continue;
              bytes += op.spec.bytes.value * (op.spec.kind == OpKind::send_receive ? 1.0 : op.spec.kind == OpKind::all_reduce ? 1.0 : 0.5);
            }
            return bytes;
          };
          EXPECT_NEAR(received(b), received(a), 1e-9 * received(a)) << name;
          for (const auto& op : b) {
            const bool in_part = op.spec.beside != Mover::none;
            EXPECT_FALSE(in_part && (op.weight_gradient || op.spec.grouped || std::string_view(op.spec.name).starts_with("logits")))
                << op.spec.name.str();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace core
