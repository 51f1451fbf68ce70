#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/hardware/topology.h"
#include "simulator/cost/cost.h"
#include "tests/published/table.h"

namespace simulator {
namespace {

// One row of data/measured/collectives.csv.
struct Row {
  std::string op, gpu, node, algorithm;
  std::int64_t gpus = 0, nodes = 0;
  double bytes = 0.0, measured_us = 0.0;
  double predicted_us = 0.0;
  std::string chosen;
  double error() const { return predicted_us / measured_us - 1.0; }
};

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  for (const auto& cell : published::rows_of("collectives.csv", 9)) {
    rows.push_back({.op = cell[0],
                    .gpu = cell[1],
                    .node = cell[2],
                    .algorithm = cell[7],
                    .gpus = std::stoll(cell[3]),
                    .nodes = std::stoll(cell[4]),
                    .bytes = std::stod(cell[5]),
                    .measured_us = std::stod(cell[6]),
                    .chosen = {}});
  }
  return rows;
}

core::OpKind kind_of(const std::string& op) {
  if (op == "all_reduce") return core::OpKind::all_reduce;
  if (op == "all_gather") return core::OpKind::all_gather;
  if (op == "reduce_scatter") return core::OpKind::reduce_scatter;
  if (op == "alltoall") return core::OpKind::all_to_all;
  return core::OpKind::send_receive;
}

core::Cluster cluster_of(const Row& row) {
  core::Cluster cluster = core::make_cluster(row.gpu, std::max<std::int64_t>(row.gpus, 2));
  cluster.node = core::load_node(row.node);
  // Measured with 64 GPUs in each of two racks.
  if (row.op == "alltoall" && row.gpus == 128) cluster.node.nvlink_domain = 64;
  if (row.op == "sendrecv") cluster.gpus = row.nodes * cluster.node.gpus;
  return cluster;
}

core::GroupLinks links_of(const Row& row, const core::Cluster& cluster) {
  const core::Topology topology(cluster);
  if (row.op == "sendrecv") return topology.pair(0, row.nodes > 1 ? cluster.node.gpus : 1);
  return topology.group(0, 1, row.gpus);
}

void predict(Row& row) {
  const core::Cluster cluster = cluster_of(row);
  const core::GroupLinks links = links_of(row, cluster);
  const Curves curves = Curves::load(cluster.gpu);
  const core::Bytes bytes{row.bytes};
  CollectiveChoice choice = collective_time(kind_of(row.op), bytes, links, curves);
  for (const CollectiveCost* algorithm : collectives::all()) {
    if (algorithm->name != row.algorithm) continue;
    choice = {*algorithm->time({.kind = kind_of(row.op), .bytes = bytes}, links, curves), algorithm->name};
  }
  row.predicted_us = choice.cost.time.value * 1e6;
  row.chosen = choice.algorithm;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

// Parts whose sweeps the constants of rings, trees and NVLS were fitted to; the others came later, with
// few rows each, and have bounds of their own below.
bool among_first(const Row& row) {
  return row.op != "alltoall" && row.gpu != "mi355x" && row.gpu != "mi350x" && row.gpu != "rtx5090" &&
         row.gpu != "b300" && row.gpu != "gb300" && row.gpu != "h800-sxm";
}

// The constants of data/curves/collectives-*.json were fitted to sweeps that hold most of these
// rows: this says how well the model can follow them. With a whole system left out of the fit, its
// rows from 1 MB are met within a median of 2 to 22 % (two-node all-gather of B200 worst).
TEST(PublishedCollectives, AgreeWithNcclTests) {
  std::vector<Row> rows = read_rows();
  ASSERT_GE(rows.size(), 150u);
  std::vector<double> errors, large;
  std::map<std::string, std::vector<double>> by_system;
  for (Row& row : rows) {
    predict(row);
    if (!among_first(row)) continue;
    errors.push_back(std::abs(row.error()));
    if (row.bytes >= 1e6) large.push_back(errors.back());
    by_system[row.op + " " + row.node + " x" + std::to_string(row.nodes)].push_back(errors.back());
  }
  for (const auto& [system, of] : by_system) {
    std::printf("%-36s n %2zu  median %5.1f %%  worst %5.1f %%\n",
                system.c_str(),
                of.size(),
                100 * quantile(of, 0.5),
                100 * quantile(of, 1.0));
  }
  std::erase_if(rows, [](const Row& row) { return !among_first(row); });
  std::ranges::sort(rows, std::greater{}, [](const Row& r) { return std::abs(r.error()); });
  for (std::size_t i = 0; i < 8; ++i) {
    const Row& r = rows[i];
    std::printf("worst: %s %s x%lld, %.3g bytes: %.1f us measured, %.1f predicted (%s, %+.0f %%)\n",
                r.op.c_str(),
                r.node.c_str(),
                static_cast<long long>(r.gpus),
                r.bytes,
                r.measured_us,
                r.predicted_us,
                r.chosen.c_str(),
                100 * r.error());
  }
  std::printf("all: median %.1f %%, 90th percentile %.1f %%; from 1 MB: median %.1f %%\n",
              100 * quantile(errors, 0.5),
              100 * quantile(errors, 0.9),
              100 * quantile(large, 0.5));
  EXPECT_LE(quantile(errors, 0.5), 0.08);
  EXPECT_LE(quantile(errors, 0.9), 0.35);
  EXPECT_LE(quantile(large, 0.5), 0.08);
}

double median_error(const std::vector<Row>& rows, const std::function<bool(const Row&)>& wanted) {
  std::vector<double> errors;
  std::string name;
  for (Row row : rows) {
    if (!wanted(row)) continue;
    predict(row);
    errors.push_back(std::abs(row.error()));
    std::printf("  %-10s %-11s x%-3lld %11.0f bytes: %9.1f us, predicted %9.1f (%+.0f %%)\n",
                row.op.c_str(),
                row.gpu.c_str(),
                static_cast<long long>(row.gpus),
                row.bytes,
                row.measured_us,
                row.predicted_us,
                100 * row.error());
  }
  EXPECT_FALSE(errors.empty());
  std::ranges::sort(errors);
  const double median = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2.0;
  std::printf("  %zu rows, median %.1f %%, worst %.1f %%\n",
              errors.size(),
              100 * median,
              100 * errors.back());
  return median;
}

// All-to-all. The ramps are those of B200 (28 sizes on 8 GPUs, 27 on 16); the other parts have a
// handful of rows or a vendor's peak. What the model cannot say: why two nodes of B200 and H200 reach
// 42 GB/s and B300, MI355X twice a NIC; each has the constant that its rows show.
TEST(PublishedCollectives, AllToAllAgreesWithNcclTests) {
  const std::vector<Row> rows = read_rows();
  const auto of = [](const char* gpu) {
    return [gpu](const Row& row) { return row.op == "alltoall" && row.gpu == gpu; };
  };
  EXPECT_LE(median_error(rows, of("b200")), 0.10);
  EXPECT_LE(median_error(rows, of("h200-sxm")), 0.10);
  EXPECT_LE(median_error(rows, of("h100-sxm")), 0.20);
  EXPECT_LE(median_error(rows, of("a100-sxm-80")), 0.10);
  EXPECT_LE(median_error(rows, of("mi355x")), 0.10);
  EXPECT_LE(median_error(rows, of("b300")), 0.10);
  EXPECT_LE(median_error(rows, of("gb300")), 0.15);
  EXPECT_LE(median_error(rows, of("gb200")), 0.20);
}

// Parts that came after the fit: B300, GB300 and H800 with their neighbours' constants, MI355X and
// RTX 5090 with one bandwidth of their own each.
TEST(PublishedCollectives, LaterPartsAreReducedAsTheirNeighbours) {
  const std::vector<Row> rows = read_rows();
  const auto of = [](const char* gpu) {
    return [gpu](const Row& row) {
      return row.op == "all_reduce" && row.gpu == gpu && row.bytes >= 1e6;
    };
  };
  EXPECT_LE(median_error(rows, of("b300")), 0.15);
  EXPECT_LE(median_error(rows, of("gb300")), 0.15);
  EXPECT_LE(median_error(rows, of("h800-sxm")), 0.15);
  EXPECT_LE(median_error(rows, of("mi355x")), 0.20);
  EXPECT_LE(median_error(rows, of("mi350x")), 0.10);
  EXPECT_LE(median_error(rows, of("rtx5090")), 0.15);
}

// One row of data/measured/dispatch.csv.
struct Dispatch {
  std::vector<std::string> cell;
  std::string text(std::size_t i) const { return cell[i]; }
  double number(std::size_t i) const { return std::stod(cell[i]); }
  std::int64_t count(std::size_t i) const { return std::stoll(cell[i]); }
};

std::vector<Dispatch> read_dispatches() {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/data/measured/dispatch.csv");
  std::vector<Dispatch> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    Dispatch row;
    row.cell.resize(13);
    for (std::string& each : row.cell) std::getline(cells, each, ',');
    rows.push_back(row);
  }
  return rows;
}

double distinct(double places, double copies) {
  return places * (1.0 - std::pow(1.0 - 1.0 / places, copies));
}

// Measured time: given, or from a bandwidth that counts what DeepEP counts: a token once for each node
// (or rank, inside one) that it goes to, the sender's own included.
double measured_seconds(const Dispatch& row) {
  if (row.text(11) == "us") return row.number(12) * 1e-6;
  const double token_bytes = row.number(6) * row.number(7) * row.number(8);
  const double most = row.number(10) > 0 ? row.number(10) : row.number(3);
  const double places = row.text(11) == "GBps_all_domains" ? std::min(most, row.number(3)) : row.number(2);
  return token_bytes * distinct(places, row.number(9)) / (row.number(12) * 1e9);
}

double predicted_seconds(const Dispatch& row) {
  core::Cluster cluster = core::make_cluster(row.text(0), row.count(2));
  cluster.node = core::load_node(row.text(1));
  const core::Topology topology(cluster);
  const Collective tokens = {
      .kind = core::OpKind::all_to_all,
      .bytes = core::Bytes{row.number(6) * row.number(7) * row.number(8) * row.number(9)},
      .one_sided = true,
      .copies = row.count(9),
      .most_domains = row.count(10)};
  return collective_time(tokens, topology.group(0, 1, row.count(2)), Curves::load(cluster.gpu))
      .cost.time.value;
}

// Dispatch and combine of experts' tokens by DeepEP and MORI, 4096 tokens of 7168 a GPU with 8 copies
// (128 for the low-latency kernels). NVLink's efficiency is that of EP 8, the NICs' that of EP 32 and 64,
// the base that of low latency at EP 256: those rows test the form only. EP 16 on H800 was not used: 43
// GB/s there against 90 on H100 is H800's NVLink, which then binds.
TEST(PublishedCollectives, DispatchAgreesWithDeepEpAndMori) {
  std::map<std::string, std::vector<double>> by_kernel;
  std::vector<double> all;
  for (const Dispatch& row : read_dispatches()) {
    const double measured = measured_seconds(row), predicted = predicted_seconds(row);
    const double error = predicted / measured - 1.0;
    by_kernel[row.text(5)].push_back(std::abs(error));
    all.push_back(std::abs(error));
    std::printf("  %-9s %-11s ep %3s %-8s %7.0f us, predicted %7.0f (%+.0f %%)\n",
                row.text(0).c_str(),
                row.text(5).c_str(),
                row.text(2).c_str(),
                row.text(4).c_str(),
                measured * 1e6,
                predicted * 1e6,
                100 * error);
  }
  for (const auto& [kernel, errors] : by_kernel) {
    std::printf("%-12s %zu rows, median %.1f %%, worst %.1f %%\n",
                kernel.c_str(),
                errors.size(),
                100 * quantile(errors, 0.5),
                100 * quantile(errors, 1.0));
  }
  EXPECT_EQ(all.size(), 28u);
  EXPECT_LE(quantile(by_kernel["legacy"], 1.0), 0.10);
  EXPECT_LE(quantile(by_kernel["v2"], 0.5), 0.10);
  EXPECT_LE(quantile(by_kernel["mori"], 1.0), 0.10);
  EXPECT_LE(quantile(by_kernel["low_latency"], 0.5), 0.25);
  EXPECT_LE(quantile(all, 0.9), 0.30);
}

// Reduced NVLink: H800 has 200 GB/s where H100 has 450, and a group inside a node is that much slower;
// across nodes both have the same NICs.
TEST(PublishedCollectives, H800IsAnH100WithLessNvlink) {
  const auto seconds = [](const char* gpu, std::int64_t size) {
    const core::Cluster cluster = core::make_cluster(gpu, 64);
    const core::Topology topology(cluster);
    return collective_time(core::OpKind::all_gather,
                           core::Bytes{4e9},
                           topology.group(0, 64 / size, size),
                           Curves::load(cluster.gpu))
        .cost.time.value;
  };
  const auto inside = [](const char* gpu) {
    const core::Cluster cluster = core::make_cluster(gpu, 8);
    const core::Topology topology(cluster);
    return collective_time(core::OpKind::all_gather,
                           core::Bytes{4e9},
                           topology.group(0, 1, 8),
                           Curves::load(cluster.gpu))
        .cost.time.value;
  };
  EXPECT_NEAR(inside("h800-sxm") / inside("h100-sxm"), 450.0 / 200.0, 0.05);
  EXPECT_NEAR(seconds("h800-sxm", 8) / seconds("h100-sxm", 8), 1.0, 0.01);
}

}  // namespace
}  // namespace simulator
