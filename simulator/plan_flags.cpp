#include "simulator/plan_flags.h"

namespace simulator {

std::string PlanFlags::text() const {
  std::string out;
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) out += (out.empty() ? "" : " ") + key + "=" + value;
  };
  add("tp", tp), add("pp", pp), add("vpp", vpp), add("cp", cp), add("ep", ep), add("etp", etp), add("dp", dp);
  add("zero", zero), add("mb", mbs), add("recompute", recompute), add("schedule", schedule);
  if (sp) out += out.empty() ? "sp" : " sp";
  return out;
}

}  // namespace simulator
