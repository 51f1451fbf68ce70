#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/budget/choose.h"
#include "planner/budget/family.h"
#include "planner/budget/planned.h"
#include "planner/budget/verdict.h"
#include "simulator/request.h"

namespace planner {

// `plan budget` as asked, by flag.
struct BudgetRequest {
  simulator::Request machine;      // GPU, cluster, sequence, batch, framework, price; its model and recipe are not used
  std::vector<std::int64_t> gpus;  // one pool of sizes each
  Budget budget;
  std::string law = "chinchilla-epoch", family = "llama-3";
  std::string model;        // --model: this one only
  std::string sizes;        // "1B..400B", or a list of numbers of parameters and names of models; "" = around the optimum
  std::size_t points = 40;  // of a range
  std::vector<std::string> recipes;  // none: bf16 (or fp16), fp8, nvfp4
  double inference_tokens = 0.0, serving_mfu = 0.2;
  std::optional<double> unique_tokens;
};

struct Unavailable {
  std::string recipe, why;
};

// What a request comes to: the question, and what answers it.
struct BudgetSetup {
  BudgetQuestion question;
  std::vector<PoolSetting> pools;
  std::vector<core::ModelSpec> models;       // by size
  std::vector<std::optional<Shape>> shapes;  // of a family; nothing for models by name
  SizeIs size_is = SizeIs::free;
  bool plans_all = false;                // a list of sizes: each is wanted
  std::vector<Unavailable> unavailable;  // recipes that the GPU cannot run
  std::vector<LossModel> other_repeats;  // the law with other constants for repeated tokens
  std::vector<std::string> warnings, assumptions;
};

// Fills what the request left open. Throws InputError.
BudgetSetup set_up(BudgetRequest& request);

// What to know of a choice as an answer of the law: how far it is from the runs that the law was fitted on.
std::vector<std::string> extrapolations(const LossModel& law, double N, double D, double flops);

// The number of parameters that is best where GPUs do so many FLOPs a second whatever the model: around it the default sizes
// lie.
double flat_optimum(const BudgetQuestion& question, std::size_t pool, double flops_per_s);

}  // namespace planner
