#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/pricer.h"

namespace simulator {

// A question as asked, by flag; what is not asked takes the default that is printed with the answer.
struct Request {
  std::string model = "llama-3.1-8b";
  std::string gpu;      // "" = h100-sxm, or the cluster's
  std::string cluster;  // "" = the GPU's usual nodes under a full-bisection network
  std::int64_t gpus = 0;
  std::int64_t seq = 0;           // 0 = the smaller of 4096 and the model's longest
  std::int64_t global_batch = 0;  // 0 = 4 Mi tokens, but a sequence for each GPU at least
  std::string recipe;             // "" = bf16, or fp16 where the GPU has no bf16
  std::string framework = "megatron";
  std::string attention;          // "" = the fastest of the GPU's generation
  std::optional<double> price;    // $ a GPU-hour; else the price file's
  std::optional<double> tokens;
  double expert_overload = 1.0;             // tokens on the fullest expert rank over the mean
  double capacity_factor = 0.0;             // 0 = dropless
  double data_stall_ms = 0.0;               // a step waits for its data
  std::optional<double> checkpoint_s;       // writing a checkpoint stops training for that long,
  std::optional<std::int64_t> checkpoint_every;  // once in so many steps
};

// The setting of a request. Fills what was left open in `request`. Throws InputError.
Setting make_setting(Request& request);

// Why a GPU cannot run a recipe, or nothing.
std::optional<std::string> why_not_recipe(const core::Recipe& recipe, const core::Gpu& gpu);

// "1T", "300B", "15.6e12", "500M" as a number. Throws InputError naming the flag.
double parse_count(const std::string& text, const std::string& flag);

// File and origin of every number that moved a prediction, for reports.
std::vector<std::pair<std::string, std::string>> sources_of(const Setting& setting);

}  // namespace simulator
