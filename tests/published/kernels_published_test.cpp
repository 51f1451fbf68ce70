// Kernel times against published tables (data/measured). Most rows come from the tables that the
// curves were fitted on (their `fitted` column or data/curves say which), so the bounds measure the
// form of the model, not its reach.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/hardware/hardware.h"
#include "core/io/data_dir.h"
#include "simulator/cost/cost.h"

namespace {

using core::AttentionKernel;
using core::Direction;
using core::OpKind;
using core::OpSpec;
using simulator::Curves;

using Row = std::map<std::string, std::string>;

// One line of a table without line breaks in cells; quotes enclose commas.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<Row> table(const std::string& name) {
  std::ifstream in(core::data_dir() / "measured" / name);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    EXPECT_EQ(cells.size(), header.size()) << line;
    Row row;
    for (std::size_t i = 0; i < header.size(); ++i) {
      row[header[i]] = cells[i];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

double number(const Row& row, const char* key) { return std::stod(row.at(key)); }
std::int64_t count(const Row& row, const char* key) { return std::stoll(row.at(key)); }

// The V100 of one table is the PCIe card: 14.0 TFLOP/s fp32 where the SXM module has 15.7.
Curves curves_of(const std::string& gpu) {
  if (gpu != "v100-pcie-32") {
    return Curves::load(core::load_gpu(gpu));
  }
  core::Gpu card = core::load_gpu("v100-sxm-32");
  card.name = gpu;
  card.dense_tflops["fp32"] = 14.0;
  return Curves::load(card);
}

struct Spread {
  double median, p90, worst;
};

// Errors |predicted / measured - 1| in percent, by group.
class Errors {
 public:
  void add(const std::string& group, double predicted, double measured) {
    errors_[group].push_back(100.0 * std::abs(predicted / measured - 1.0));
  }
  Spread spread(const std::string& group) const {
    std::vector<double> sorted = errors_.at(group);
    std::sort(sorted.begin(), sorted.end());
    const auto rank = [&](double part) {
      return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5)];
    };
    return {rank(0.5), rank(0.9), sorted.back()};
  }
  void print(const char* title) const {
    std::printf("%s: |predicted / measured - 1| in %%\n", title);
    for (const auto& [group, errors] : errors_) {
      const Spread s = spread(group);
      std::printf("  %-34s %3zu rows  median %5.1f  p90 %5.1f  worst %5.1f\n",
                  group.c_str(),
                  errors.size(),
                  s.median,
                  s.p90,
                  s.worst);
    }
  }

 private:
  std::map<std::string, std::vector<double>> errors_;
};

TEST(PublishedKernels, Gemm) {
  Errors errors;
  for (const Row& row : table("gemm.csv")) {
    OpSpec op;
    op.kind = OpKind::gemm;
    op.format = core::format_of(row.at("format"));
    op.m = count(row, "m");
    op.n = count(row, "n");
    op.k = count(row, "k");
    op.batch = count(row, "batch");
    const bool fitted = row.at("fitted") == "yes";
    errors.add(row.at("gpu") + " " + row.at("format") + (fitted ? "" : ", not fitted"),
               simulator::kernel_time(op, curves_of(row.at("gpu"))).time.value,
               number(row, "time_us") * 1e-6);
  }
  errors.print("GEMM");
  // The rows are drawn evenly over M, so small GEMMs weigh more than in the whole tables, where the
  // medians from M = 256 up are 3.6 % (A100) and 4.9 % (H100).
  EXPECT_LT(errors.spread("a100-sxm-80 fp16").median, 5.0);
  EXPECT_LT(errors.spread("h100-sxm fp16").median, 7.0);
  EXPECT_LT(errors.spread("h100-sxm fp8").median, 6.0);
  EXPECT_LT(errors.spread("v100-pcie-32 fp32").median, 9.0);
  // Best shapes of a search and short runs at high clock: faster than sustained layers by design.
  EXPECT_LT(errors.spread("h100-sxm bf16, not fitted").worst, 20.0);
  EXPECT_LT(errors.spread("a100-sxm-80 fp16, not fitted").median, 12.0);
  EXPECT_LT(errors.spread("h200-sxm bf16, not fitted").worst, 12.0);
}

TEST(PublishedKernels, Attention) {
  Errors errors;
  for (const Row& row : table("attention.csv")) {
    OpSpec op;
    op.kind = OpKind::attention;
    op.format = core::Format::fp16;
    op.kernel = core::attention_kernel_of(row.at("kernel"));
    op.causal = row.at("causal") == "1";
    op.m = op.n = count(row, "sequence");
    op.k = count(row, "head_size");
    op.batch = op.kv_batch = count(row, "tokens") / op.m * count(row, "heads");
    // The tables count 4 s^2 d FLOPs forward, half when causal, 2.5 times that backward, whatever
    // the kernel does.
    OpSpec counted = op;
    counted.kernel = AttentionKernel::flash2;
    const Curves curves = curves_of(row.at("gpu"));
    double predicted = 0.0, flops = 0.0;
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      const bool wanted = row.at("pass") == "fwd+bwd" ||
                          row.at("pass") == (direction == Direction::forward ? "fwd" : "bwd");
      if (wanted) {
        op.direction = counted.direction = direction;
        predicted += simulator::kernel_time(op, curves).time.value;
        flops += core::attention_flops(counted).value;
      }
    }
    errors.add(
        row.at("gpu") + " " + row.at("kernel"), predicted, flops / (number(row, "tflops") * 1e12));
  }
  errors.print("Attention");
  EXPECT_LT(errors.spread("a100-sxm-80 flash1").median, 7.0);
  EXPECT_LT(errors.spread("a100-sxm-80 flash2").worst, 4.0);
  EXPECT_LT(errors.spread("h100-sxm flash1").median, 5.0);
  EXPECT_LT(errors.spread("h100-sxm flash2").median, 4.0);
  EXPECT_LT(errors.spread("h100-sxm flash3").median, 4.0);
  EXPECT_LT(errors.spread("h100-sxm unfused").median, 25.0);
}

TEST(PublishedKernels, MemoryBound) {
  Errors errors;
  for (const Row& row : table("memory_bound.csv")) {
    OpSpec op;
    op.kind = OpKind::memory_bound;
    op.name = row.at("name");
    op.bytes = core::Bytes{number(row, "bytes")};
    const bool own = Curves::load(core::load_gpu("a100-sxm-80"))
                         .find("memory_bound." + op.name + ".efficiency")
                         .has_value();
    errors.add(row.at("gpu") + " " + (own ? op.name : "elementwise"),
               simulator::kernel_time(op, curves_of(row.at("gpu"))).time.value,
               number(row, "time_us") * 1e-6);
  }
  errors.print("Memory-bound");
  for (const char* gpu : {"a100-pcie-40", "a100-pcie-80", "v100-pcie-32", "a100-sxm-80"}) {
    EXPECT_LT(errors.spread(std::string(gpu) + " elementwise").median, 10.0) << gpu;
  }
  EXPECT_LT(errors.spread("a100-pcie-40 norm").median, 40.0);
}

}  // namespace
