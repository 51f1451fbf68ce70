#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace planner {

// The combinations that a search tries: every axis with the values it may take. What the question fixes has one value.
struct Axes {
  std::vector<std::int64_t> tp, pp, micro_batch;
  std::vector<bool> sp;
  std::vector<std::string> schedules;
  std::vector<std::int64_t> vpp;       // of the interleaved schedule
  std::vector<core::Layout> layouts;
  std::vector<int> zero;
  std::vector<core::Recompute> recompute;
  bool partial_recompute = true;       // full recompute on the first n layers of each stage, every n
};

struct Question {
  const core::ModelSpec* model = nullptr;
  std::int64_t gpus = 0, global_batch = 0, seq = 0;
  std::string recipe;
  core::PlanText fixed;  // settings given with --fix; its keys are held at its values
};

// All values: tp and pp divide the GPUs, micro-batches divide the batch, vpp up to the layers of a stage.
Axes axes_of(const Question& question);

// Plans that differ only in how many layers they recompute in full: n = 1, 2, ... up to the largest stage (which is plain
// full recompute, n = 0). The search finds the least n that fits; more of the same only costs time.
struct Family {
  core::ParallelPlan plan;       // recompute as in the family
  std::int64_t most_layers = 0;  // > 0: partial full recompute with 1 .. most_layers - 1 layers
  std::int64_t plans() const { return most_layers > 0 ? most_layers - 1 : 1; }
};

// Counts of combinations that cannot run, by reason, with an example.
struct Illegal {
  std::int64_t count = 0;
  std::string example;
};

// Everything that shares one schedule table: pipeline sizes and number of micro-batches.
struct Block {
  std::string schedule;
  std::int64_t pp = 1, vpp = 1, micro_batches = 1;
  std::vector<Family> families;
};

// Walks the legal families block by block, in a fixed order. Returns how many plans are legal; illegal combinations are
// counted by kind of reason.
std::int64_t for_each_block(const Question& question,
                            const Axes& axes,
                            std::map<std::string, Illegal>& illegal,
                            const std::function<void(const Block&)>& visit);

}  // namespace planner
