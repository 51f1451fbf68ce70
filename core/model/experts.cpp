#include "core/model/experts.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/model/decoder.h"

namespace core {

void read_routed(ConfigReader& in, Experts& experts, Keys count, Keys top_k, Keys ffn) {
  experts.count = in.size(count, Largest::experts);
  experts.top_k = in.size(top_k, Largest::experts);
  experts.ffn = in.size(ffn, Largest::ffn);
  if (experts.top_k > experts.count) {
    throw InputError(fmt::format("{}: {}: expected at most {} = {}, found {}", in.where(), *top_k.begin(),
                                 *count.begin(), experts.count, experts.top_k));
  }
  if (experts.count * experts.ffn > Largest::experts_width) {
    throw InputError(fmt::format("{}: {} experts of {}: expected a width of at most {} together", in.where(),
                                 experts.count, experts.ffn, Largest::experts_width));
  }
}

std::int64_t read_shared_ffn(ConfigReader& in, Keys count, std::int64_t ffn) {
  const std::int64_t shared = in.count_or(count, 0, Largest::experts);
  if (shared * ffn > Largest::ffn) {
    in.find(count)->complain(fmt::format("shared experts of {} that are at most {} wide together", ffn, Largest::ffn));
  }
  return shared * ffn;
}

void read_groups(ConfigReader& in, Experts& experts, Keys count, Keys groups, Keys per_token) {
  const std::int64_t all = in.count_or(groups, 0, Largest::experts);
  const std::int64_t used = in.count_or(per_token, 0, Largest::experts);
  if (all <= 1) return;
  in.require_multiple(count, experts.count, groups, all);
  if (used == 0) in.missing(*per_token.begin());
  if (used > all) {
    throw InputError(fmt::format("{}: {}: expected at most {} = {}, found {}", in.where(), *per_token.begin(),
                                 *groups.begin(), all, used));
  }
  experts.groups = all;
  experts.groups_per_token = used;
}

Block moe_block(const Experts& e) {
  return {"moe",
          {{"experts", e.count},
           {"top_k", e.top_k},
           {"ffn", e.ffn},
           {"gated", e.gated},
           {"activation", static_cast<std::int64_t>(e.activation)},
           {"bias", e.bias},
           {"router_bias", e.router_bias},
           {"selection_bias", e.selection_bias},
           {"shared_ffn", e.shared_ffn},
           {"shared_gate", e.shared_gate},
           {"groups", e.groups},
           {"groups_per_token", e.groups_per_token}}};
}

}  // namespace core
