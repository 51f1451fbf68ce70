#pragma once

#include <string>
#include <vector>

#include "core/graph/body_writer.h"
#include "core/model/model.h"
#include "core/model/scan.h"

namespace core {

// What the kinds of linear attention have in common, on one rank: projections of the input, divided by heads under tensor
// parallelism; passes over memory (a convolution along the sequence, gates, norms); the scan; more passes; the output
// projection. The input is kept once, divided with sequence parallel.
struct LinearMixer {
  // A memory-bound operation and its traffic in both directions, bytes of the micro-batch.
  struct Pass {
    std::string name;
    double forward = 0.0, backward = 0.0;
  };
  struct Saved {
    std::string name;
    double bytes = 0.0;
    bool gemm_input = false;
  };
  std::vector<Pass> mixing;               // of the input, before its projections
  std::vector<BodyWriter::Linear> in;     // read the input
  std::vector<BodyWriter::Linear> gates;  // read what a projection left
  std::vector<Pass> before, after;        // the scan
  Scan scan;
  BodyWriter::Linear out;
  std::vector<Saved> saved;  // beside the input
};

void lower_linear_mixer(const LinearMixer& mixer, const ModelSpec& model, const BodyContext& context, Body& body);

}  // namespace core
