#include "core/graph/memory.h"

#include <algorithm>
#include <cmath>

#include "core/plan/schedule.h"

namespace core {

namespace {

std::int64_t rounded(double bytes, const Framework& framework) {
  const double unit = std::max(1.0, framework.allocation_unit.value);
  return static_cast<std::int64_t>(std::ceil(bytes / unit) * unit);
}

// Communicators a rank takes part in: the world's, and those of its tensor, context, data, expert and pipeline groups.
int communicators(const ParallelPlan& plan, bool has_experts) {
  if (plan.gpus() == 1) return 0;
  int groups = 1;
  for (const auto size : {plan.tp, plan.cp, plan.pp, plan.replicas()}) groups += size > 1 ? 1 : 0;
  if (has_experts && plan.ep > 1) {
    for (const auto size : {plan.ep, plan.expert_replicas()}) groups += size > 1 ? 1 : 0;
  }
  return groups;
}

// Pipeline ranks that hold a copy of the same stage.
double copies_of_stages(const ParallelPlan& plan) {
  const auto* schedule = find_schedule(plan.schedule);
  return schedule != nullptr && schedule->placement == Placement::both_ways ? 2.0 : 1.0;
}

}  // namespace

BodyMemory body_memory(const Body& body, const Framework& framework) {
  BodyMemory m;
  for (const auto& s : body.saved) {
    const auto bytes = rounded(s.bytes.value, framework);
    (s.name == "logits" ? m.logits : m.activations) += bytes;
    if (s.for_weights) m.weight_inputs += bytes;
  }
  m.forward_transient = rounded(body.forward_transient.value, framework);
  m.backward_transient = rounded(body.backward_transient.value, framework);
  m.input_transient = rounded(body.input_transient.value, framework);
  m.held = rounded(body.held_gradients.value + body.held_inputs.value, framework);
  m.host = static_cast<std::int64_t>(std::llround(body.offloaded.value));
  return m;
}

std::int64_t pair_peak(const std::vector<const BodyMemory*>& forward, const std::vector<const BodyMemory*>& backward) {
  std::int64_t now = 0, peak = 0;
  for (std::size_t i = 0; i < std::max(forward.size(), backward.size()); ++i) {
    const auto* f = i < forward.size() ? forward[i] : nullptr;
    const auto* b = i < backward.size() ? backward[backward.size() - 1 - i] : nullptr;
    const auto left = f != nullptr ? f->saved() : 0, freed = b != nullptr ? b->saved() : 0;
    peak = std::max(peak, now + left + (f != nullptr ? f->forward_transient : 0) + (b != nullptr ? b->backward_transient : 0));
    now += left - freed;
  }
  return peak;
}

RankParameters rank_parameters(const StepWork& work, std::int64_t pipeline_rank) {
  RankParameters p;
  for (const auto s : work.stages_of_rank(pipeline_rank)) {
    const double before = p.all.all();
    for (const auto index : work.stages[static_cast<std::size_t>(s)].bodies) {
      const auto& body = work.bodies[index];
      p.all += body.elements();
      p.gemm += {body.gemm_parameters, body.expert_gemm_parameters};
      p.newton_schulz += body.newton_schulz;
      p.matrix_squares += body.matrix_squares;
      p.newton_schulz_elements += body.newton_schulz_elements;
      p.largest_body = std::max(p.largest_body, body.all_parameters());
      p.layer_weights = std::max(p.layer_weights, body.layer_weights);
      p.output_weight = std::max(p.output_weight, body.output_weight);
      p.gather_buffer = std::max(p.gather_buffer, body.gather_buffer.value);
      p.output_operands = std::max(p.output_operands, body.output_operands.value);
    }
    p.largest_stage = std::max(p.largest_stage, p.all.all() - before);
  }
  return p;
}

MemoryTerms resident_memory(const RankParameters& parameters,
                            const ParallelPlan& plan,
                            const Recipe& recipe,
                            const Framework& framework) {
  const StateTraffic traffic(plan, recipe);
  const auto shared = [&](const StateElements& n, std::int64_t ShardSizes::*state) {
    return n.dense / static_cast<double>(traffic.dense().*state) +
           n.experts / static_cast<double>(traffic.experts().*state);
  };
  MemoryTerms m{};
  const auto set = [&](MemoryTerm term, double bytes) { m[index_of(term)] = rounded(bytes, framework); };
  // Of sharded parameters: the body that computes and the one that is gathered ahead.
  double live = 0.0;
  if (traffic.gathers_units()) {
    const double ahead = std::min(framework.prefetch_parameters.value_or(parameters.largest_body), parameters.largest_body);
    live = recipe.weight_bytes * (parameters.largest_body + ahead);
  }
  if (plan.offload.weights) {
    set(MemoryTerm::weights, live);  // all weights that are on the device
  } else {
    set(MemoryTerm::weights, recipe.weight_bytes * shared(parameters.all, &ShardSizes::parameters) +
                                 recipe.weight_copy_bytes * shared(parameters.gemm, &ShardSizes::parameters));
  }
  set(MemoryTerm::gradients, recipe.gradient_bytes * traffic.gradient_elements(parameters.all));
  if (!plan.offload.optimizer) {
    const double copies = traffic.shards_optimizer() ? copies_of_stages(plan) : 1.0;
    const OptimizerShare share{shared(parameters.all, &ShardSizes::optimizer), shared(parameters.gemm, &ShardSizes::optimizer), 0.0};
    set(MemoryTerm::optimizer, optimizer_work(recipe, share).states.value / copies);
  }
  // Sharded gradients: one body's, whole, as computed and in the format in which they are reduced.
  double buffers = framework.workspaces.all(parameters.all.experts > 0.0).value;
  buffers += plan.offload.weights ? 0.0 : live;
  buffers += parameters.gather_buffer;
  // Of deferred micro-batches, beside the one that runs.
  const auto deferred = std::min(framework.deferred_output_gradients, plan.micro_batches() - 1);
  buffers += parameters.output_operands * static_cast<double>(deferred);
  // What stands for gradients that GEMMs add to the sum themselves. Layers of a rank share most shapes: those of the kind of
  // layer that has the most.
  buffers += recipe.weight_bytes * (framework.layer_gradient_placeholders * parameters.layer_weights +
                                    framework.output_gradient_placeholders * parameters.output_weight);
  if (framework.keeps_gradients && recipe.gradient_bytes > recipe.weight_bytes) {
    buffers += recipe.weight_bytes * traffic.gradient_elements(parameters.all);
  }
  if (framework.flat_gradients && (plan.zero == 1 || plan.zero == 2) && recipe.gradient_bytes < recipe.main_weight_bytes) {
    buffers += recipe.main_weight_bytes * shared(parameters.all, &ShardSizes::optimizer);
  }
  if (traffic.shared()) {
    buffers += framework.gradient_buffers * recipe.gradient_reduce_bytes *
               std::min(framework.bucket_parameters, parameters.all.all());
  }
  if (traffic.reduces_each()) {
    buffers += (recipe.weight_bytes + recipe.gradient_reduce_bytes) * parameters.largest_body;
  }
  // Gradients of a run's stage stay whole until they are reduced.
  if (traffic.reduces_runs()) buffers += recipe.gradient_bytes * parameters.largest_stage;
  set(MemoryTerm::buffers, buffers);
  set(MemoryTerm::communicators, framework.communicator.value * communicators(plan, parameters.all.experts > 0.0));
  set(MemoryTerm::context, framework.context.value);
  return m;
}

double host_memory(const RankParameters& parameters, const ParallelPlan& plan, const Recipe& recipe) {
  const StateTraffic traffic(plan, recipe);
  double bytes = 0.0;
  if (plan.offload.optimizer) {
    bytes += optimizer_work(recipe, {traffic.optimizer_elements(parameters.all), traffic.optimizer_elements(parameters.gemm),
                                     0.0}).states.value;
    bytes += recipe.gradient_bytes * traffic.optimizer_elements(parameters.all);
  }
  if (plan.offload.weights) {
    bytes += recipe.weight_bytes * (parameters.all.dense / static_cast<double>(traffic.dense().parameters) +
                                    parameters.all.experts / static_cast<double>(traffic.experts().parameters));
  }
  return bytes;
}

std::vector<double> host_activations(const ScheduleTable& table, const std::vector<double>& kept) {
  std::vector<double> peaks;
  for (const auto& actions : table.ranks) {
    double now = 0.0, peak = 0.0;
    const auto forward = [&](const Action& a) {
      if (a.kind == Action::Kind::forward) now += kept[static_cast<std::size_t>(table.model_stage(a.stage))];
      peak = std::max(peak, now);
    };
    const auto backward = [&](const Action& a) {
      if (a.kind == Action::Kind::backward || a.kind == Action::Kind::input_gradient) {
        now -= kept[static_cast<std::size_t>(table.model_stage(a.stage))];
      }
    };
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const bool pair = actions[i].with_next && i + 1 < actions.size();
      forward(actions[i]);
      if (pair) forward(actions[i + 1]);
      backward(actions[i]);
      if (pair) backward(actions[++i]);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

double node_host_memory(const std::vector<double>& of_rank, const ParallelPlan& plan, std::int64_t gpus_per_node,
                        const Framework& framework) {
  double most = 0.0;
  const auto width = plan.ranks_of_stage();
  for (std::int64_t first = 0; first < plan.gpus(); first += gpus_per_node) {
    const auto end = std::min(plan.gpus(), first + gpus_per_node);
    double sum = 0.0;
    for (auto p = first / width; p * width < end; ++p) {
      const auto ranks = std::min(end, (p + 1) * width) - std::max(first, p * width);
      sum += static_cast<double>(ranks) * of_rank[static_cast<std::size_t>(p)];
    }
    most = std::max(most, sum);
  }
  return framework.host_memory_factor * most;
}

std::int64_t fragmentation(std::int64_t short_lived, const Framework& framework) {
  return static_cast<std::int64_t>(std::llround(framework.fragmentation * static_cast<double>(short_lived)));
}

}  // namespace core
