#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/hardware/topology.h"
#include "simulator/cost/cost.h"

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
  std::ifstream file(FORETRAIN_SOURCE_DIR "/data/measured/collectives.csv");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::vector<std::string> cell(8);
    for (std::string& each : cell) std::getline(cells, each, ',');
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
  return core::OpKind::send_receive;
}

core::Cluster cluster_of(const Row& row) {
  core::Cluster cluster = core::make_cluster(row.gpu, std::max<std::int64_t>(row.gpus, 2));
  cluster.node = core::load_node(row.node);
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
    choice = {*algorithm->time(kind_of(row.op), bytes, links, curves), algorithm->name};
  }
  row.predicted_us = choice.cost.time.value * 1e6;
  row.chosen = choice.algorithm;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
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

}  // namespace
}  // namespace simulator
