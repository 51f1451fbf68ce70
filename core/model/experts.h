#pragma once

#include <cstdint>

#include "core/model/config_reader.h"
#include "core/model/model.h"

namespace core {

// A mixture of experts as the families describe it, under one name each.
struct Experts {
  std::int64_t count = 0;
  std::int64_t top_k = 0;
  std::int64_t ffn = 0;  // of one expert
  bool gated = true;
  Activation activation = Activation::silu;
  bool bias = false;            // of the experts' linear layers
  bool router_bias = false;     // of the router's linear layer
  bool selection_bias = false;  // added to the scores when experts are chosen (arXiv 2408.15664): one number an expert
  std::int64_t shared_ffn = 0;  // width of all shared experts together, 0 = none
  bool shared_gate = false;     // a gate of one number a token on the shared experts
  std::int64_t groups = 0;            // of experts, for group-limited routing; 0 = none
  std::int64_t groups_per_token = 0;  // from which one token's experts come
};

// Reads the sizes of routed experts under the keys given. Throws InputError where a token uses more experts than there are,
// or all of them are wider than we read.
void read_routed(ConfigReader& in, Experts& experts, Keys count, Keys top_k, Keys ffn);

// The width of all shared experts together: as many as `count` says, each as wide as a routed one; 0 where there are none.
std::int64_t read_shared_ffn(ConfigReader& in, Keys count, std::int64_t ffn);

// Reads group-limited routing (DeepSeek-V2, arXiv 2405.04434, section 2.2.2): `groups` of which a token uses `per_token`.
// One group is no limit. `count`: the key of the number of experts.
void read_groups(ConfigReader& in, Experts& experts, Keys count, Keys groups, Keys per_token);

Block moe_block(const Experts& experts);

}  // namespace core
