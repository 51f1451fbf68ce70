#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/hardware/hardware.h"
#include "core/hardware/topology.h"
#include "core/measured/csv.h"
#include "simulator/cost/cost.h"

namespace planner {

// A table of measured kernels or collectives as it stands in its file (data/measured).
struct KernelTable {
  std::string name;  // "gemm.csv"
  std::vector<std::string> columns;
  std::vector<core::CsvRow> rows;
};

// Throws InputError: no such file, no header, a row with more or fewer cells than the header.
KernelTable read_kernel_table(const std::filesystem::path& file);

// The cells of one row by column. Complaints name file, line and column.
class KernelCells {
 public:
  KernelCells(const KernelTable& table, const core::CsvRow& row) : table_(&table), row_(&row) {}

  bool has(std::string_view column) const;  // the table has it
  const std::string& text(std::string_view column) const;
  double positive(std::string_view column) const;
  std::int64_t count(std::string_view column) const;  // from 1
  bool flag(std::string_view column) const;           // 0 or 1
  [[noreturn]] void complain(std::string_view column, std::string_view expected) const;

 private:
  std::size_t index(std::string_view column) const;

  const KernelTable* table_;
  const core::CsvRow* row_;
};

// One measurement in the cost model's terms.
struct KernelRow {
  core::Gpu gpu;
  double measured_s = 0.0;
  std::vector<core::OpSpec> kernels;  // one after another; none of a collective
  // A collective over links, by the algorithm named or, where empty, by the fastest.
  std::optional<simulator::Collective> collective;
  core::GroupLinks links;
  std::string algorithm;
};

// What a row of a kind of table ("gemm", "attention", "timed_attention", "memory_bound", "scan", "collectives") measures.
// Throws InputError naming file, line and column for what the cost model cannot price.
KernelRow kernel_row(std::string_view kind, const KernelCells& cells);
std::vector<std::string_view> kernel_kinds();

// What the cost model says of it.
double predicted_s(const KernelRow& row, const simulator::Curves& curves);

}  // namespace planner
