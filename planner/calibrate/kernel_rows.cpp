#include "planner/calibrate/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "core/io/document.h"

namespace planner {

namespace {

using core::Direction;
using core::OpKind;
using core::OpSpec;

// The GPU of a row, which must have a dense peak of a format where one is asked for.
core::Gpu gpu_of(const KernelCells& cells, std::string_view format = "") {
  core::Gpu gpu;
  try {
    gpu = core::load_gpu(cells.text("gpu"));
  } catch (const core::InputError&) {
    cells.complain("gpu", "a GPU of data/gpus");
  }
  if (!format.empty() && !gpu.peak(format))
    cells.complain("gpu", fmt::format("a GPU with {}", format));
  return gpu;
}

core::Format format_of(const KernelCells& cells) {
  try {
    return core::format_of(cells.text("format"));
  } catch (const core::InputError&) {
    cells.complain("format", "a format of GEMMs");
  }
}

// A weight gradient of a table with a column `stage` is added to an fp32 sum: read and written where other outputs are written.
// The operands have 16 bits.
void add_stage(const KernelCells& cells, OpSpec& op) {
  const auto& stage = cells.text("stage");
  if (stage == "forward" || stage == "input_gradient") return;
  if (stage != "weight_gradient") cells.complain("stage", "forward, input_gradient or weight_gradient");
  if (op.format != core::Format::fp16 && op.format != core::Format::bf16)
    cells.complain("format", "fp16 or bf16 of a weight gradient");
  const auto m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  op.direction = Direction::backward;
  op.bytes = core::Bytes{static_cast<double>(op.batch) * (2.0 * (m * k + k * n) + 8.0 * m * n)};
}

KernelRow gemm(const KernelCells& cells) {
  KernelRow row;
  OpSpec op;
  op.kind = OpKind::gemm;
  op.format = format_of(cells);
  op.m = cells.count("m");
  op.n = cells.count("n");
  op.k = cells.count("k");
  op.batch = cells.count("batch");
  op.grouped = cells.flag("grouped");
  if (cells.has("stage")) add_stage(cells, op);
  row.gpu = gpu_of(cells, core::name_of(op.format));
  row.measured_s = cells.positive("time_us") * 1e-6;
  row.kernels = {op};
  return row;
}

core::AttentionKernel attention_kernel(const KernelCells& cells, const core::Gpu& gpu) {
  try {
    const auto kernel = core::attention_kernel_of(cells.text("kernel"));
    if (simulator::attention_available(kernel, gpu.arch)) return kernel;
  } catch (const core::InputError&) {
  }
  cells.complain("kernel", "a kernel that runs on " + gpu.arch);
}

std::vector<Direction> directions(const KernelCells& cells) {
  const auto& pass = cells.text("pass");
  if (pass == "fwd") return {Direction::forward};
  if (pass == "bwd") return {Direction::backward};
  if (pass == "fwd+bwd") return {Direction::forward, Direction::backward};
  cells.complain("pass", "fwd, bwd or fwd+bwd");
}

// Tables count 4 s^2 d FLOPs forward, half when causal, 2.5 times that backward, whatever the kernel
// does: those of a fused kernel.
KernelRow attention(const KernelCells& cells) {
  KernelRow row;
  row.gpu = gpu_of(cells, "fp16");
  OpSpec op;
  op.kind = OpKind::attention;
  op.format = core::Format::fp16;
  op.kernel = attention_kernel(cells, row.gpu);
  op.causal = cells.flag("causal");
  op.m = op.n = cells.count("sequence");
  op.k = cells.count("head_size");
  if (cells.count("tokens") < op.m) cells.complain("tokens", "at least one sequence");
  op.batch = op.kv_batch = cells.count("tokens") / op.m * cells.count("heads");
  double flops = 0.0;
  for (const Direction direction : directions(cells)) {
    op.direction = direction;
    row.kernels.push_back(op);
    OpSpec counted = op;
    counted.kernel = core::AttentionKernel::flash2;
    flops += core::attention_flops(counted).value;
  }
  row.measured_s = flops / (cells.positive("tflops") * 1e12);
  return row;
}

// One sequence, timed; keys may have fewer heads, and values another width. In bf16 without a window, unless a table has columns for
// them: a window as long as the sequence is none.
KernelRow timed_attention(const KernelCells& cells) {
  KernelRow row;
  OpSpec op;
  op.kind = OpKind::attention;
  if (cells.has("format")) op.format = format_of(cells);
  row.gpu = gpu_of(cells, core::name_of(op.format));
  op.kernel = attention_kernel(cells, row.gpu);
  op.causal = cells.flag("causal");
  op.m = op.n = cells.count("sequence");
  if (cells.has("window") && cells.count("window") < op.n) op.window = cells.count("window");
  op.k = cells.count("head_size");
  op.v_dim = cells.count("value_size");
  op.batch = cells.count("heads");
  op.kv_batch = cells.count("kv_heads");
  if (op.batch % op.kv_batch != 0) cells.complain("kv_heads", "a divisor of heads");
  for (const Direction direction : directions(cells)) {
    op.direction = direction;
    row.kernels.push_back(op);
  }
  row.measured_s = cells.positive("time_us") * 1e-6;
  return row;
}

KernelRow memory_bound(const KernelCells& cells) {
  KernelRow row;
  row.gpu = gpu_of(cells);
  OpSpec op;
  op.kind = OpKind::memory_bound;
  op.name = cells.text("name");
  op.bytes = core::Bytes{cells.positive("bytes")};
  row.measured_s = cells.positive("time_us") * 1e-6;
  row.kernels = {op};
  return row;
}

// Gated DeltaNet in chunks of C = 64 tokens: 10 C d + 6 d^2 FLOPs a token and head forward, 2.5 times
// that backward; traffic of four tensors forward and eight backward, 2 bytes each.
KernelRow scan(const KernelCells& cells) {
  const auto& pass = cells.text("pass");
  if (pass != "forward" && pass != "backward") cells.complain("pass", "forward or backward");
  const bool forward = pass == "forward";
  const double d = cells.positive("head_size");
  const double rows = cells.positive("batch") * cells.positive("sequence") * cells.positive("heads");
  KernelRow row;
  row.gpu = gpu_of(cells, "bf16");
  OpSpec op;
  op.kind = OpKind::scan;
  op.direction = forward ? Direction::forward : Direction::backward;
  op.flops = core::Flops{rows * (10 * 64 * d + 6 * d * d) * (forward ? 1.0 : 2.5)};
  op.bytes = core::Bytes{rows * d * 2 * (forward ? 4 : 8)};
  row.measured_s = cells.positive("time_ms") * 1e-3;
  row.kernels = {op};
  return row;
}

OpKind collective_kind(const KernelCells& cells) {
  constexpr std::array<std::pair<std::string_view, OpKind>, 5> kinds = {
      {{"all_reduce", OpKind::all_reduce},
       {"all_gather", OpKind::all_gather},
       {"reduce_scatter", OpKind::reduce_scatter},
       {"alltoall", OpKind::all_to_all},
       {"sendrecv", OpKind::send_receive}}};
  for (const auto& [name, kind] : kinds) {
    if (cells.text("op") == name) return kind;
  }
  cells.complain("op", "all_reduce, all_gather, reduce_scatter, alltoall or sendrecv");
}

core::Cluster cluster_of(const KernelCells& cells, std::int64_t gpus) {
  gpu_of(cells);
  try {
    return core::make_cluster(cells.text("gpu"), gpus, cells.text("node"));
  } catch (const core::InputError&) {
    cells.complain("node", "a node of data/nodes");
  }
}

const simulator::CollectiveCost* algorithm_of(std::string_view name) {
  for (const auto* algorithm : simulator::collectives::all()) {
    if (algorithm->name == name) return algorithm;
  }
  return nullptr;
}

KernelRow collective(const KernelCells& cells) {
  KernelRow row;
  const OpKind kind = collective_kind(cells);
  row.collective = {.kind = kind, .bytes = core::Bytes{cells.positive("bytes")}};
  const auto gpus = cells.count("gpus"), nodes = cells.count("nodes");
  if (gpus < 2) cells.complain("gpus", "two at least");
  auto cluster = cluster_of(cells, gpus);
  if (kind == OpKind::send_receive) {  // a pair, whatever else stands idle
    cluster.gpus = nodes * cluster.node.gpus;
    row.links = core::Topology(cluster).pair(0, nodes > 1 ? cluster.node.gpus : 1);
  } else {
    row.links = core::Topology(cluster).group(0, 1, gpus);
  }
  row.gpu = cluster.gpu;
  row.measured_s = cells.positive("time_us") * 1e-6;
  row.algorithm = cells.text("algorithm");
  if (row.algorithm.empty()) return row;
  const auto* algorithm = algorithm_of(row.algorithm);
  if (algorithm == nullptr ||
      !algorithm->time(*row.collective, row.links, simulator::Curves::load(row.gpu)))
    cells.complain("algorithm", "one that does this");
  return row;
}

struct Kind {
  std::string_view name;
  KernelRow (*row)(const KernelCells& cells);
};
constexpr std::array<Kind, 6> kinds = {{{"gemm", gemm},
                                        {"attention", attention},
                                        {"timed_attention", timed_attention},
                                        {"memory_bound", memory_bound},
                                        {"scan", scan},
                                        {"collectives", collective}}};

}  // namespace

KernelTable read_kernel_table(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw core::InputError(fmt::format("{}: cannot be opened", file.string()));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  KernelTable table;
  table.name = file.filename().string();
  table.rows = core::parse_csv(text, file.string());
  if (table.rows.empty()) throw core::InputError(fmt::format("{}: expected a header", file.string()));
  table.columns = std::move(table.rows.front().cells);
  table.rows.erase(table.rows.begin());
  for (const auto& row : table.rows) {
    if (row.cells.size() != table.columns.size())
      throw core::InputError(fmt::format("{}: line {}: found {} cells, expected {} as in the header",
                                         file.string(),
                                         row.line,
                                         row.cells.size(),
                                         table.columns.size()));
  }
  return table;
}

bool KernelCells::has(std::string_view column) const {
  return std::ranges::find(table_->columns, column) != table_->columns.end();
}

std::size_t KernelCells::index(std::string_view column) const {
  const auto found = std::ranges::find(table_->columns, column);
  if (found == table_->columns.end())
    throw core::InputError(fmt::format("{}: expected a column {}", table_->name, column));
  return static_cast<std::size_t>(found - table_->columns.begin());
}

const std::string& KernelCells::text(std::string_view column) const {
  return row_->cells[index(column)];
}

double KernelCells::positive(std::string_view column) const {
  const auto& cell = text(column);
  double value = 0.0;
  const auto* end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc{} || stop != end || !(value > 0.0) || !std::isfinite(value))
    complain(column, "a number above 0");
  return value;
}

std::int64_t KernelCells::count(std::string_view column) const {
  constexpr double most = 1e12;
  const double value = positive(column);
  if (value != std::floor(value) || value > most) complain(column, "a count from 1");
  return static_cast<std::int64_t>(value);
}

bool KernelCells::flag(std::string_view column) const {
  if (text(column) != "0" && text(column) != "1") complain(column, "0 or 1");
  return text(column) == "1";
}

void KernelCells::complain(std::string_view column, std::string_view expected) const {
  throw core::InputError(fmt::format("{}: line {}, column {}: found \"{}\", expected {}",
                                     table_->name,
                                     row_->line,
                                     column,
                                     core::printable(text(column)),
                                     expected));
}

KernelRow kernel_row(std::string_view kind, const KernelCells& cells) {
  const auto found = std::ranges::find(kinds, kind, &Kind::name);
  CORE_ASSERT(found != kinds.end());
  return found->row(cells);
}

std::vector<std::string_view> kernel_kinds() {
  std::vector<std::string_view> names;
  for (const auto& kind : kinds) names.push_back(kind.name);
  return names;
}

double predicted_s(const KernelRow& row, const simulator::Curves& curves) {
  if (row.collective) {
    if (row.algorithm.empty())
      return simulator::collective_time(*row.collective, row.links, curves).cost.time.value;
    return algorithm_of(row.algorithm)->time(*row.collective, row.links, curves)->time.value;
  }
  double sum = 0.0;
  for (const auto& op : row.kernels) sum += simulator::kernel_time(op, curves).time.value;
  return sum;
}

}  // namespace planner
