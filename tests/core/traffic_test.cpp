// Bytes that context, expert and sharded data parallelism move in a step, collective by collective, against the formulas of
// their papers: on every rank, folded and not, and in sum at each grain.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/graph/lower.h"
#include "core/graph/step_work.h"
#include "tests/core/plans.h"

namespace core {
namespace {

constexpr double sixteen_bits = 2.0, fp32 = 4.0;

// Bytes of a rank's collectives of one kind over groups of one shape, in one phase.
struct Moved {
  Phase phase;
  OpKind kind;
  GroupShape group;
  double bytes;
};

using Key = std::tuple<Phase, OpKind, GroupShape>;
std::map<Key, double> moved_by(const StepGraph& graph, std::int32_t rank) {
  std::map<Key, double> out;
  for (OpId op = 0; op < graph.size(); ++op) {
    const auto& spec = graph.specs[graph.spec[op]];
    if (!is_collective(spec.kind) || graph.key[op].phase == Phase::gradient_norm) continue;
    bool mine = false;
    for (auto q = graph.queue_begin[op]; q < graph.queue_begin[op + 1]; ++q) {
      mine = mine || static_cast<std::int32_t>(graph.queues[q]) / streams_per_rank == rank;
    }
    const auto& group = graph.groups[static_cast<std::size_t>(spec.group)];
    if (mine) out[{graph.key[op].phase, spec.kind, {group.stride, group.size}}] += spec.bytes.value;
  }
  return out;
}

void expect_moved(const StepWork& work, const std::vector<Moved>& expected) {
  SCOPED_TRACE(to_text(work.plan));
  std::map<Key, double> by_key;
  std::map<OpKind, double> by_kind;
  by_kind[OpKind::all_reduce] = fp32;  // of the gradient norm
  for (const auto& m : expected) by_key[{m.phase, m.kind, m.group}] += m.bytes, by_kind[m.kind] += m.bytes;
  for (const auto fold : {Fold::yes, Fold::no}) {
    for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
      const auto graph = lower(work, plans::table(work.plan), grain, fold);
      for (std::int32_t r = 0; r < graph.ranks; ++r) {
        for (const auto kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all,
                                OpKind::send_receive}) {
          EXPECT_DOUBLE_EQ(graph.bytes(r, kind).value, by_kind[kind]) << name_of(kind) << " at " << name_of(grain);
        }
        if (grain != Grain::op) continue;
        const auto moved = moved_by(graph, r);
        EXPECT_EQ(moved.size(), by_key.size());
        for (const auto& [key, bytes] : moved) {
          const auto& [phase, kind, group] = key;
          const auto found = by_key.find(key);
          ASSERT_NE(found, by_key.end()) << name_of(phase) << " " << name_of(kind) << " over " << group.size << " by "
                                         << group.stride;
          EXPECT_NEAR(bytes / found->second, 1.0, 1e-12) << name_of(phase) << " " << name_of(kind) << " over "
                                                         << group.size << " by " << group.stride;
        }
      }
    }
  }
}

StepWork step(const ModelSpec& model, const std::string& text, std::int64_t seq) {
  return plans::step(model, plans::plan(text), seq);
}

// The first layers of a model.
ModelSpec first_layers(const std::string& name, std::size_t layers) {
  auto model = load_model(name);
  model.layer_kind.resize(layers);
  return model;
}

double parameters_of(const ModelSpec& model) { return static_cast<double>(count_parameters(model).total); }

// --- context parallel ------------------------------------------------------------------------------

// tiny-llama: 4 layers of 8 heads with 2 key-value heads of 8; b = 2, s = 64, 3 micro-batches.
constexpr double L = 4, b = 2, s = 64, h = 64, m = 3, head = 8, kv_heads = 2;
constexpr double keys_and_values = sixteen_bits * b * s * 2 * kv_heads * head;  // of all ranks

// Without sharding all gradients are reduced over the cp dp ranks that hold a copy of the parameters.
Moved gradients(std::int64_t tp, std::int64_t replicas, double parameters) {
  return {Phase::gradient_reduce, OpKind::all_reduce, {tp, replicas}, fp32 * parameters};
}

// Ring Attention, arXiv 2310.01889, section 3: keys and values of s / cp tokens go to the neighbour cp - 1 times, so that each
// rank sees those of all s once. Backward they go around once more, with their gradients: twice that. Repeating core attention
// repeats the forward round.
TEST(ContextParallel, RingPassesKeysAndValuesAroundAndTheirGradientsBack) {
  const auto model = load_model("tiny-llama");
  const double whole = parameters_of(model);
  for (const std::int64_t cp : {2, 4, 8}) {
    const auto cp_text = "cp=" + std::to_string(cp);
    const double ranks = static_cast<double>(cp), round = m * L * keys_and_values / ranks * (ranks - 1.0);
    const GroupShape group{1, cp};
    for (const std::string how : {":ring", ":ring:unbalanced"}) {
      const auto forward = Moved{Phase::forward, OpKind::send_receive, group, round};
      const auto backward = Moved{Phase::backward, OpKind::send_receive, group, 2 * round};
      const auto reduced = gradients(1, cp, whole);
      expect_moved(step(model, cp_text + how + " mb=2 gbs=6", 64), {forward, backward, reduced});
      for (const std::string recompute : {" recompute=full", " recompute=selective"}) {
        expect_moved(step(model, cp_text + how + " mb=2 gbs=6" + recompute, 64),
                     {forward, backward, reduced, {Phase::recompute, OpKind::send_receive, group, round}});
      }
    }
  }
}

// Llama 3, arXiv 2407.21783, section 3.3.2: keys and values are gathered before attention; backward gathers them again and
// scatters the sums of their gradients.
TEST(ContextParallel, AllGatherGathersTwiceAndScattersGradients) {
  const auto model = load_model("tiny-llama");
  const double gathered = m * L * keys_and_values;
  const GroupShape group{1, 4};
  expect_moved(step(model, "cp=4:all-gather mb=2 gbs=6", 64),
               {{Phase::forward, OpKind::all_gather, group, gathered},
                {Phase::backward, OpKind::all_gather, group, gathered},
                {Phase::backward, OpKind::reduce_scatter, group, gathered},
                gradients(1, 4, parameters_of(model))});
}

// DeepSpeed-Ulysses, arXiv 2309.14509, section 3.2: all-to-alls of queries, keys and values (3 N h elements of N tokens) before
// and of the output (N h) after attention, of which each of P ranks has 1 / P: 4 N h / P, and as much backward.
TEST(ContextParallel, UlyssesMovesFourHiddenSizesATokenByItsPart) {
  const auto model = load_model("tiny-gpt");
  const double layers = static_cast<double>(model.layers()), hidden = static_cast<double>(model.hidden);
  for (const std::int64_t cp : {2, 4}) {
    const double moved = m * layers * sixteen_bits * 4 * b * s * hidden / static_cast<double>(cp);
    expect_moved(step(model, "cp=" + std::to_string(cp) + ":ulysses mb=2 gbs=6", 64),
                 {{Phase::forward, OpKind::all_to_all, {1, cp}, moved},
                  {Phase::backward, OpKind::all_to_all, {1, cp}, moved},
                  gradients(1, cp, parameters_of(model))});
  }
}

// Grouped queries: keys and values have fewer heads; where fewer than ranks, each rank needs one, and a head is sent to all
// ranks whose queries meet it.
TEST(ContextParallel, UlyssesSendsSharedKeyValueHeadsToEachRankThatMeetsThem) {
  const auto model = load_model("tiny-llama");
  for (const std::int64_t cp : {2, 4, 8}) {
    const double ranks = static_cast<double>(cp), heads = std::max(kv_heads, ranks);
    const double moved = m * L * sixteen_bits * b * s / ranks * (2 * h + 2 * heads * head);
    expect_moved(step(model, "cp=" + std::to_string(cp) + ":ulysses mb=2 gbs=6", 64),
                 {{Phase::forward, OpKind::all_to_all, {1, cp}, moved},
                  {Phase::backward, OpKind::all_to_all, {1, cp}, moved},
                  gradients(1, cp, parameters_of(model))});
  }
}

// Beside tensor parallelism each rank passes on its own heads only, to the ranks tp apart.
TEST(ContextParallel, OfTensorParallelRanksMovesTheirOwnHeads) {
  const auto model = load_model("tiny-llama");
  const auto work = step(model, "tp=2 cp=4:all-gather mb=2 gbs=6", 64);
  const double whole = sixteen_bits * b * s / 4 * h, gathered = m * L * keys_and_values / 2;
  const double held = work.parameters_of_rank(0).all();
  expect_moved(work, {{Phase::forward, OpKind::all_gather, {2, 4}, gathered},
                      {Phase::backward, OpKind::all_gather, {2, 4}, gathered},
                      {Phase::backward, OpKind::reduce_scatter, {2, 4}, gathered},
                      // Two all-reduces a layer and direction (arXiv 1909.08053), of this rank's tokens; the tables' and the loss's.
                      {Phase::forward, OpKind::all_reduce, {1, 2}, m * ((2 * L + 1) * whole + 3 * fp32 * b * s / 4)},
                      {Phase::backward, OpKind::all_reduce, {1, 2}, m * (2 * L + 1) * whole},
                      gradients(2, 4, held)});
}

// --- experts ---------------------------------------------------------------------------------------

// Mixtral 8x7B: h 4096, 8 experts of 14336, 2 a token; 3 layers.
constexpr double H = 4096, top_k = 2, experts = 8, F = 14336;

// GShard, arXiv 2006.16668, section 3.2: each of top_k copies of a token's T = b s / cp tokens a rank is sent to its expert and
// back, forward and backward: 4 all-to-alls of T top_k h a layer. Repeating experts repeats the two of forward.
TEST(ExpertParallel, SendsEachCopyThereAndBackInBothDirections) {
  const auto model = first_layers("mixtral-8x7b", 3);
  const double copies = 2 * 3 * 2 * sixteen_bits * 512 * top_k * H;  // 2 micro-batches, 3 layers, there and back
  for (const std::int64_t ep : {2, 4, 8}) {
    const auto text = "dp=8 gbs=16 ep=" + std::to_string(ep);
    const GroupShape group{1, ep};
    for (const std::string recompute : {"", " recompute=moe", " recompute=full"}) {
      const auto work = step(model, text + recompute, 512);
      const auto n = work.parameters_of_rank(0);
      std::vector<Moved> expected = {{Phase::forward, OpKind::all_to_all, group, copies},
                                     {Phase::backward, OpKind::all_to_all, group, copies},
                                     {Phase::gradient_reduce, OpKind::all_reduce, {1, 8}, fp32 * n.dense}};
      if (ep < 8) expected.push_back({Phase::gradient_reduce, OpKind::all_reduce, {ep, 8 / ep}, fp32 * n.experts});
      if (!recompute.empty()) expected.push_back({Phase::recompute, OpKind::all_to_all, group, copies});
      expect_moved(work, expected);
      EXPECT_DOUBLE_EQ(n.experts, 3 * 3 * H * F * experts / static_cast<double>(ep));
    }
  }
}

// A capacity factor pads each expert's share (GShard, section 3.2; Switch, arXiv 2101.03961, equation 3): c times the copies.
TEST(ExpertParallel, CapacityPadsWhatTravels) {
  const auto model = first_layers("mixtral-8x7b", 3);
  const auto plan = plans::plan("dp=8 gbs=16 ep=8");
  const auto recipe = load_recipe("bf16");
  const auto framework = load_framework("megatron", "hopper");
  auto context = body_context(plan, recipe, framework, model, 512, AttentionKernel::flash2);
  for (const double c : {1.0, 1.25, 2.0}) {
    context.capacity = c;
    const auto work = step_work(model, bodies_of(model, context), plan, recipe, framework, 512);
    const double copies = 2 * 3 * 2 * sixteen_bits * 512 * top_k * c * H;
    expect_moved(work, {{Phase::forward, OpKind::all_to_all, {1, 8}, copies},
                        {Phase::backward, OpKind::all_to_all, {1, 8}, copies},
                        {Phase::gradient_reduce, OpKind::all_reduce, {1, 8}, fp32 * work.parameters_of_rank(0).dense}});
  }
}

// MoE parallel folding, arXiv 2504.14960, section 3: tp 4 with sequence parallel, cp 2; experts share the 16 ranks out as etp 2,
// ep 4, edp 2. A rank routes T = b s / (cp tp) tokens; the etp ranks gather each other's copies and scatter what they add up to.
TEST(ExpertParallel, GathersCopiesOverExpertTensorRanksAndFoldsTheRest) {
  const auto model = first_layers("mixtral-8x7b", 3);
  const auto work = step(model, "tp=4 sp cp=2:all-gather dp=2 etp=2 ep=4 gbs=4", 512);
  const double micro_batches = 2, layers = 3, tokens = 512.0 / 8, each = micro_batches * layers * sixteen_bits;
  const double copies = each * tokens * top_k * H, activation = micro_batches * sixteen_bits * 512 / 2 * H;
  const double keys = each * 512 * 2 * 1024 / 4;
  const auto n = work.parameters_of_rank(0);
  expect_moved(work,
               {{Phase::forward, OpKind::all_to_all, {2, 4}, 2 * copies},
                {Phase::backward, OpKind::all_to_all, {2, 4}, 2 * copies},
                {Phase::forward, OpKind::all_gather, {1, 2}, 2 * copies},
                {Phase::forward, OpKind::reduce_scatter, {1, 2}, 2 * copies},
                {Phase::backward, OpKind::all_gather, {1, 2}, 2 * copies},
                {Phase::backward, OpKind::reduce_scatter, {1, 2}, 2 * copies},
                // Attention alone is tensor-parallel (arXiv 2205.05198): a gather and a scatter a layer forward; two and one back.
                // The embedding scatters, the output gathers, then the reverse and the output once more.
                {Phase::forward, OpKind::all_gather, {1, 4}, (layers + 1) * activation},
                {Phase::forward, OpKind::reduce_scatter, {1, 4}, (layers + 1) * activation},
                {Phase::backward, OpKind::all_gather, {1, 4}, (2 * layers + 2) * activation},
                {Phase::backward, OpKind::reduce_scatter, {1, 4}, (layers + 1) * activation},
                {Phase::forward, OpKind::all_reduce, {1, 4}, micro_batches * 3 * fp32 * 512 / 2},
                {Phase::forward, OpKind::all_gather, {4, 2}, keys},
                {Phase::backward, OpKind::all_gather, {4, 2}, keys},
                {Phase::backward, OpKind::reduce_scatter, {4, 2}, keys},
                {Phase::gradient_reduce, OpKind::all_reduce, {4, 4}, fp32 * n.dense},
                {Phase::gradient_reduce, OpKind::all_reduce, {8, 2}, fp32 * n.experts}});
  EXPECT_DOUBLE_EQ(n.experts, layers * 3 * H * F * experts / 8);
}

// --- sharding over groups --------------------------------------------------------------------------

// Llama 3, arXiv 2407.21783, section 3.3.2: consecutive micro-batches of a stage are reduced once. 1F1B has one run of them;
// interleaved, a rank takes its stages by turns of pp micro-batches: m / pp runs of each.
TEST(Sharding, OfRunsReducesOnceForConsecutiveMicroBatches) {
  const auto model = load_model("tiny-llama");
  const double n = parameters_of(model);
  for (const auto& [how, times] : {std::pair<std::string, double>{"", m}, {" reduce=runs", 1.0}}) {
    expect_moved(step(model, "dp=4 zero=2 mb=2 gbs=24" + how, 64),
                 {{Phase::gradient_reduce, OpKind::reduce_scatter, {1, 4}, times * fp32 * n},
                  {Phase::parameter_gather, OpKind::all_gather, {1, 4}, sixteen_bits * n}});
  }
  for (const auto& [how, times] : {std::pair<std::string, double>{"", 6.0}, {" reduce=runs", 3.0}}) {
    const auto work = step(model, "pp=2x2 dp=2 zero=2 gbs=12 schedule=interleaved" + how, 64);
    for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
      const auto graph = lower(work, plans::table(work.plan), grain);
      for (std::int32_t r = 0; r < graph.ranks; ++r) {
        EXPECT_DOUBLE_EQ(graph.bytes(r, OpKind::reduce_scatter).value, times * fp32 * work.parameters_of_rank(r).all())
            << to_text(work.plan) << " at " << name_of(grain);
      }
    }
  }
}

// HSDP (PyTorch FSDP, arXiv 2304.11277, section 3.2.2): groups of F = 4 of W = 8 ranks share parameters, gradients and states. Each
// micro-batch gathers twice and reduce-scatters once inside a group; once a step the shards are all-reduced over the W / F groups.
TEST(Sharding, HybridGathersInsideAGroupAndReducesBetweenGroups) {
  const auto model = load_model("tiny-llama");
  const double n = parameters_of(model);
  const GroupShape inside{1, 4}, between{4, 2};
  for (const std::string overlap : {"both", "none"}) {
    expect_moved(step(model, "dp=8 gbs=24 shard=p:4,g:4,o:4 overlap=" + overlap, 64),
                 {{Phase::parameter_gather, OpKind::all_gather, inside, m * 2 * sixteen_bits * n},
                  {Phase::gradient_reduce, OpKind::reduce_scatter, inside, m * fp32 * n},
                  {Phase::gradient_reduce, OpKind::all_reduce, between, fp32 * n / 4}});
  }
}

// Distributed Muon, arXiv 2502.16982, section 2.3: with sharded states matrices that parts cut are gathered in 16 bits before the
// optimizer. Of n elements in 4 parts, matrices of e elements lack 3/4 sum(e^2) / n a rank. tiny-llama has in each layer two of
// 64 x 64, two of 64 x 16 and three of 64 x 192; the experts of a rank are cut among their own replicas.
TEST(Sharding, OfMuonGathersMatricesBeforeTheOptimizer) {
  const auto model = load_model("tiny-llama");
  const double n = parameters_of(model), squares = L * (2.0 * 4096 * 4096 + 2.0 * 1024 * 1024 + 3.0 * 12288 * 12288);
  const auto work = plans::step(model, plans::plan("dp=4 zero=1 mb=2 gbs=24"), 64, AttentionKernel::flash2, "bf16-muon");
  expect_moved(work, {{Phase::gradient_reduce, OpKind::reduce_scatter, {1, 4}, fp32 * n},
                      {Phase::parameter_gather, OpKind::all_gather, {1, 4}, sixteen_bits * n},
                      {Phase::optimizer, OpKind::all_gather, {1, 4}, sixteen_bits * squares / n}});
  const auto mixtral = first_layers("mixtral-8x7b", 2);
  const auto graph = lower(plans::step(mixtral, plans::plan("dp=8 ep=2 gbs=8 zero=1"), 64, AttentionKernel::flash2, "bf16-muon"),
                           plans::table(plans::plan("dp=8 ep=2 gbs=8 zero=1")), Grain::op);
  // Of each layer 4 experts with three matrices of 4096 x 14336, and nothing else.
  const double expert = 4096.0 * 14336.0, n_experts = 2.0 * 4 * 3 * expert;
  const auto moved = moved_by(graph, 0);
  const auto found = moved.find({Phase::optimizer, OpKind::all_gather, {2, 4}});
  ASSERT_NE(found, moved.end());
  EXPECT_DOUBLE_EQ(found->second, sixteen_bits * (2.0 * 4 * 3 * expert * expert) / n_experts);
}

// PaRO, arXiv 2310.06003, table 1: each state over a group of its own, p = 2, g = 4, o = 8 of D = 16. Forward and backward gather
// n over p; each backward scatters n over g; the last one n / g over o / g, and adds n / o up over D / o; after the optimizer
// the n / p that each group holds are gathered over o / p.
TEST(Sharding, OfEachStateOverItsOwnGroup) {
  const auto model = load_model("tiny-llama");
  const double n = parameters_of(model);
  const auto gather = [&](double bytes, GroupShape group) {
    return Moved{Phase::parameter_gather, OpKind::all_gather, group, sixteen_bits * bytes};
  };
  const auto scatter = [&](double bytes, GroupShape group) {
    return Moved{Phase::gradient_reduce, OpKind::reduce_scatter, group, fp32 * bytes};
  };
  const auto reduce = [&](double bytes, GroupShape group) {
    return Moved{Phase::gradient_reduce, OpKind::all_reduce, group, fp32 * bytes};
  };
  expect_moved(step(model, "dp=16 gbs=48 shard=p:2,g:4,o:8", 64),
               {gather(m * 2 * n, {1, 2}), scatter(m * n, {1, 4}), scatter(n / 4, {4, 2}), reduce(n / 8, {8, 2}),
                gather(n / 2, {2, 4})});
  // Parameters whole on each rank (ZeRO-2 in groups), and states alone shared out.
  expect_moved(step(model, "dp=16 gbs=48 shard=p:none,g:4,o:all", 64),
               {scatter(m * n, {1, 4}), scatter(n / 4, {4, 4}), gather(n, {1, 16})});
  expect_moved(step(model, "dp=16 gbs=48 shard=p:none,g:none,o:4", 64),
               {scatter(n, {1, 4}), reduce(n / 4, {4, 4}), gather(n, {1, 4})});
  // ZeRO++'s secondary partition (arXiv 2306.10209, section 4.2) as PaRO writes it: parameters in a node, the rest over all.
  expect_moved(step(model, "dp=16 gbs=48 shard=p:4,g:all,o:all", 64),
               {gather(m * 2 * n, {1, 4}), scatter(m * n, {1, 16}), gather(n / 4, {4, 4})});
}

// The plan's way through nodes is that of gathers and scatters of states alone: not of reductions, nor of tokens and activations.
TEST(Sharding, CollectivesOfStatesAreInThePlansLevels) {
  const auto model = first_layers("mixtral-8x7b", 2);
  for (const auto& [text, levels] : {std::pair<std::string, std::int64_t>{"flat", 0}, {"hierarchical", 1}, {"overlapping", 2}}) {
    const auto work = step(model, "tp=2 sp dp=8 ep=2 gbs=8 shard=p:2,g:2,o:4 collectives=" + text, 64);
    const auto graph = lower(work, plans::table(work.plan), Grain::op);
    int gathers = 0;
    for (OpId op = 0; op < graph.size(); ++op) {
      const auto& spec = graph.specs[graph.spec[op]];
      if (spec.kind != OpKind::all_gather && spec.kind != OpKind::reduce_scatter) continue;
      const auto phase = graph.key[op].phase;
      const bool of_states = phase == Phase::parameter_gather || phase == Phase::gradient_reduce;
      EXPECT_EQ(spec.k, of_states ? levels : 0) << spec.name.str();
      gathers += of_states ? 1 : 0;
    }
    EXPECT_GT(gathers, 10);
  }
}

// Experts' states over groups of their own replicas: ep = 2 of 8 ranks leaves 4, whose groups are 2 ranks apart.
TEST(Sharding, OfExpertsOverTheirOwnReplicas) {
  const auto model = first_layers("mixtral-8x7b", 2);
  const double copies = 2 * 2 * sixteen_bits * 64 * top_k * H;  // 2 layers, there and back
  const auto work = step(model, "dp=8 ep=2 gbs=8 shard=p:none,g:none,o:all expert-shard=p:none,g:2,o:4", 64);
  const auto n = work.parameters_of_rank(0);
  expect_moved(work, {{Phase::forward, OpKind::all_to_all, {1, 2}, copies},
                      {Phase::backward, OpKind::all_to_all, {1, 2}, copies},
                      {Phase::gradient_reduce, OpKind::reduce_scatter, {1, 8}, fp32 * n.dense},
                      {Phase::gradient_reduce, OpKind::reduce_scatter, {2, 2}, fp32 * n.experts},
                      {Phase::gradient_reduce, OpKind::reduce_scatter, {4, 2}, fp32 * n.experts / 2},
                      {Phase::parameter_gather, OpKind::all_gather, {1, 8}, sixteen_bits * n.dense},
                      {Phase::parameter_gather, OpKind::all_gather, {2, 4}, sixteen_bits * n.experts}});
  EXPECT_DOUBLE_EQ(n.dense + 2 * n.experts, parameters_of(model));
}

}  // namespace
}  // namespace core
