#include "core/graph/memory.h"

#include <algorithm>
#include <cmath>

namespace core {

namespace {

std::int64_t rounded(double bytes, const Framework& framework) {
  const double unit = std::max(1.0, framework.allocation_unit.value);
  return static_cast<std::int64_t>(std::ceil(bytes / unit) * unit);
}

// Communicators a rank takes part in: the world's, and those of its tensor, data and pipeline groups.
int communicators(const ParallelPlan& plan) {
  if (plan.gpus() == 1) return 0;
  return 1 + (plan.tp > 1 ? 1 : 0) + (plan.dp > 1 ? 1 : 0) + (plan.pp > 1 ? 1 : 0);
}

}  // namespace

BodyMemory body_memory(const Body& body, const Framework& framework) {
  BodyMemory m;
  for (const auto& s : body.saved) (s.name == "logits" ? m.logits : m.activations) += rounded(s.bytes.value, framework);
  m.forward_transient = rounded(body.forward_transient.value, framework);
  m.backward_transient = rounded(body.backward_transient.value, framework);
  return m;
}

RankParameters rank_parameters(const StepWork& work, std::int64_t pipeline_rank) {
  RankParameters p;
  for (auto s = pipeline_rank; s < work.plan.stages(); s += work.plan.pp) {
    for (const auto body : work.stages[static_cast<std::size_t>(s)].bodies) {
      p.all += work.bodies[body].parameters;
      p.gemm += work.bodies[body].gemm_parameters;
      p.largest_body = std::max(p.largest_body, work.bodies[body].parameters);
    }
  }
  return p;
}

MemoryTerms resident_memory(const RankParameters& parameters,
                            const ParallelPlan& plan,
                            const Recipe& recipe,
                            const Framework& framework) {
  const double dp = static_cast<double>(plan.dp);
  const double optimizer_share = plan.zero >= 1 ? dp : 1.0;
  const double gradient_share = plan.zero >= 2 ? dp : 1.0;
  const double weight_share = plan.zero >= 3 ? dp : 1.0;
  MemoryTerms m{};
  const auto set = [&](MemoryTerm term, double bytes) { m[index_of(term)] = rounded(bytes, framework); };
  set(MemoryTerm::weights,
      (recipe.weight_bytes * parameters.all + recipe.weight_copy_bytes * parameters.gemm) / weight_share);
  set(MemoryTerm::gradients, recipe.gradient_bytes * parameters.all / gradient_share);
  set(MemoryTerm::optimizer, optimizer_work(recipe, {parameters.all, parameters.gemm, 0.0}).states.value / optimizer_share);
  // Sharded parameters: the body that computes and the one that is gathered ahead. Sharded gradients: one body's, whole,
  // as computed and in the format in which they are reduced.
  double buffers = framework.workspace.value;
  if (plan.zero >= 3 && plan.dp > 1) {
    const double ahead = std::min(framework.prefetch_parameters.value_or(parameters.largest_body), parameters.largest_body);
    buffers += recipe.weight_bytes * (parameters.largest_body + ahead);
  }
  if (plan.dp > 1) {
    buffers += framework.gradient_buffers * recipe.gradient_reduce_bytes *
               std::min(framework.bucket_parameters, parameters.all);
  }
  if (plan.zero >= 2 && plan.dp > 1) {
    buffers += (recipe.weight_bytes + recipe.gradient_reduce_bytes) * parameters.largest_body;
  }
  set(MemoryTerm::buffers, buffers);
  set(MemoryTerm::communicators, framework.communicator.value * communicators(plan));
  set(MemoryTerm::context, framework.context.value);
  return m;
}

std::int64_t fragmentation(std::int64_t short_lived, const Framework& framework) {
  return static_cast<std::int64_t>(std::llround(framework.fragmentation * static_cast<double>(short_lived)));
}

}  // namespace core
