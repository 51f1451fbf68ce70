#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/json_writer.h"
#include "simulator/cost/record.h"
#include "simulator/step.h"

namespace simulator {

// A number of data/curves that a duration was made of.
struct UsedFigure {
  std::string key, source, checked;
  std::vector<double> values;
};

// How one shape of an operation comes by its duration.
struct Explanation {
  std::string name, kind, shape;  // "m 4096, n 14336, k 4096 in bf16, forward"
  double flops = 0.0, bytes = 0.0;
  Origin origin = Origin::roofline;
  std::string curves;               // files they are read from: "hopper, collectives-hopper"
  std::vector<UsedFigure> figures;  // in the order in which they are first read
  std::vector<PriceStep> steps;     // of the kernel's or the algorithm's file
  std::string links;                // of a collective: what its group spans
  std::string algorithm;            // the fastest, and what the others take
  std::vector<std::pair<std::string, double>> algorithms_s;
  double alone_s = 0.0;  // kernel or algorithm by itself
  PriceFactors factors;
  double price_s = 0.0;       // with the factors: what the engine runs
  std::int64_t count = 0;     // on the rank that ends last
  double in_step_s = 0.0;     // of one there on average, slowed by what runs beside it
  std::int64_t launches = 0;  // of the host; 0 where none are counted
  double host_s = 0.0;        // that they take of it
};

// Explains all shapes that bear a name: exactly, or by a part that only one name has. Throws InputError naming --explain and
// the names that come near where there is none, or several.
std::vector<Explanation> explain(const SimulatedStep& step, const Setting& setting, const Bench& bench, std::string_view name);

std::string explanation_text(const Explanation& explanation);
void write_explanation(core::JsonWriter& json, const Explanation& explanation);

}  // namespace simulator
