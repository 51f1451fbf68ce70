#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/framework.h"
#include "core/graph/body.h"
#include "core/graph/state_traffic.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"
#include "core/recipe.h"

namespace core {

// The bodies of a model under one tp, sp, micro-batch and attention kernel, before recompute: the part of the work that
// many plans share.
struct ModelBodies {
  Body embedding, output;       // output: final norm, output layer, loss; parameters without the output table
  std::vector<Body> kinds;      // by ModelSpec::kinds
  std::vector<Body> high_kinds;  // the same in the recipe's high formats; empty where it keeps no layer high
  std::vector<Body> mtp;        // by ModelSpec::mtp
  double output_table = 0.0;    // elements of the output layer's table on a rank (a copy of the embedding when tied)
};

// Whether the embedding has a copy on the last pipeline rank: for a tied output layer, or for multi-token prediction.
bool tied_copy(const ModelSpec& model, const ParallelPlan& plan, Placement placement);

BodyContext body_context(const ParallelPlan& plan,
                         const Recipe& recipe,
                         const Framework& framework,
                         const ModelSpec& model,
                         std::int64_t seq,
                         AttentionKernel attention);
ModelBodies bodies_of(const ModelSpec& model, const BodyContext& context);

// A layer's body with recompute: full keeps only the input and repeats the forward operations before the backward ones;
// selective and modules drop what the modules of the set save, and repeat it before the backward operations of its block.
Body with_recompute(const Body& body, Recompute recompute, Modules set);

// A layer's body as a plan runs it: recompute, and with offload=activations what it then keeps goes to the host (Megatron-LM's
// fine-grained activation offloading; torch's save_on_cpu; with full recompute DeepSpeed's checkpoints on the CPU). A layer's
// tensors travel while the next one runs, and come back one layer ahead: two layers' worth are on the device at a time.
Body layer_body(const Body& body, Recompute recompute, const ParallelPlan& plan);

// Bodies [begin, end) of a stage.
struct BodyRange {
  std::size_t begin = 0, end = 0;
};

// A virtual stage: the bodies it runs, in model order.
struct VirtualStage {
  std::vector<std::uint16_t> bodies;  // indices into StepWork::bodies
  std::int64_t layers = 0;
};

// What every rank has to do in a step, before it is put into time: level 3's input. Sizes are those of one rank of a
// pipeline stage; tensor- and data-parallel ranks of a stage do the same.
struct StepWork {
  ParallelPlan plan;
  Recipe recipe;
  Framework framework;
  std::string model;
  std::int64_t hidden = 0, seq = 0;
  bool tied_copy = false;            // the last stage holds a copy of the embedding table (function tied_copy)
  double tied_parameters = 0.0;      // elements of it on a rank
  std::vector<Body> bodies;          // distinct, recompute applied
  std::vector<std::string> body_names;
  std::vector<VirtualStage> stages;  // of the model: pp * vpp
  Placement placement = Placement::loop;
  double send_bytes = 0.0;           // one micro-batch's activation between stages, on one rank

  // Stages of the model that a pipeline rank holds.
  std::vector<std::int64_t> stages_of_rank(std::int64_t pipeline_rank) const {
    return model_stages_of_rank(placement, plan.pp, plan.stages(), pipeline_rank);
  }
  // Parameters of some bodies of a stage, of all of them, of all that a rank holds.
  StateElements parameters_of(std::size_t stage, BodyRange range) const;
  StateElements parameters_of_stage(std::size_t stage) const;
  StateElements parameters_of_rank(std::int64_t pipeline_rank) const;
};

// Requires a legal plan (why_not gives nothing).
StepWork step_work(const ModelSpec& model,
                   const ParallelPlan& plan,
                   const Recipe& recipe,
                   const Framework& framework,
                   std::int64_t seq,
                   AttentionKernel attention);
// The same from bodies that are at hand.
StepWork step_work(const ModelSpec& model,
                   const ModelBodies& bodies,
                   const ParallelPlan& plan,
                   const Recipe& recipe,
                   const Framework& framework,
                   std::int64_t seq);

// Buckets of a stage's gradients (and of the parameters gathered in their place): ranges of its bodies, from the last to the first, each at least the framework's bucket size. One bucket where nothing overlaps.
std::vector<BodyRange> buckets_of(const StepWork& work, std::size_t stage, bool overlapped);

}  // namespace core
