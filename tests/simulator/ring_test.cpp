// Time of ring attention: a step takes the longer of its kernel and of the exchange for the next one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/graph/core_attention.h"
#include "simulator/cost/prices.h"
#include "tests/core/block_bodies.h"

namespace simulator {
namespace {

using core::OpKind;
using core::SimTime;

struct Ring {
  SimTime own = 0, others = 0, exchange = 0, merge = 0, all = 0;
};

// Core attention alone of a ring over `cp` ranks, `stride` apart on H100 nodes.
Ring ring_of(std::int64_t cp, std::int64_t stride, std::int64_t seq, core::Direction direction) {
  const core::Topology topology(core::make_cluster("h100-sxm", cp * stride));
  const auto curves = Curves::load(core::load_gpu("h100-sxm"));
  const Machine machine{topology, curves};
  const auto model = core::load_model("llama-3.1-8b");
  const block_bodies::Setting setting(model, "cp=" + std::to_string(cp) + " gbs=1", seq);
  core::CoreAttention attention;
  attention.heads = 32, attention.kv_heads = 8, attention.qk_dim = attention.v_dim = 128;
  core::Body body;
  core::BodyWriter writer(body, setting.context);
  core::write_core_attention(writer, attention, setting.context, direction);
  std::vector<core::ChainOp> chain;
  std::vector<SimTime> durations;
  Ring ring;
  for (auto op : direction == core::Direction::forward ? body.forward : body.backward) {
    const bool sent = op.scope == core::Scope::context;
    if (sent) op.spec.group = 0;
    const auto time = price_of(op.spec, {{"cp", 0, stride, cp}}, machine).duration;
    const auto mark = sent ? chain_mark(core::Stream::context) : 0;
    chain.push_back({static_cast<std::uint32_t>(chain.size()) | mark, false, op.overlaps_next});
    durations.push_back(time);
    (sent ? ring.exchange : op.spec.kind == OpKind::memory_bound ? ring.merge : op.spec.causal ? ring.own : ring.others) = time;
  }
  ring.all = chain_time(chain, durations, {});
  return ring;
}

TEST(Ring, ExposesWhatAnExchangeOutlastsItsStep) {
  for (const std::int64_t cp : {2, 4, 8, 16}) {
    for (const std::int64_t stride : {1, 8}) {
      for (const std::int64_t seq : {8192, 131072}) {
        for (const auto direction : {core::Direction::forward, core::Direction::backward}) {
          const auto r = ring_of(cp, stride, seq, direction);
          const auto exposed = [&](SimTime kernel) { return std::max<SimTime>(0, r.exchange - kernel); };
          EXPECT_EQ(r.all, r.own + (cp - 1) * (r.others + r.merge) + exposed(r.own) + (cp - 2) * exposed(r.others))
              << cp << " ranks, " << stride << " apart, " << seq << " tokens";
        }
      }
    }
  }
}

// Long sequences hide the exchange (arXiv 2310.01889, section 3: arithmetic grows with the square of a block, bytes with it);
// short ones over the network do not.
TEST(Ring, HidesTheExchangeOfLongSequencesOnly) {
  const auto forward = core::Direction::forward;
  const auto longer = ring_of(8, 8, 131072, forward), shorter = ring_of(8, 8, 8192, forward);
  EXPECT_LT(longer.exchange, longer.others);
  EXPECT_GT(shorter.exchange, shorter.others);
}

}  // namespace
}  // namespace simulator
