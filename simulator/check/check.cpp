#include "simulator/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "core/error.h"

namespace simulator {

namespace {

// Prefixes of ids that have more than their first word.
constexpr std::array long_prefixes = std::to_array<std::string_view>(
    {"sc21_t1", "sc21_t2", "bs_a100", "bs_v100", "llama3_405b", "deepseek_v3"});

std::string skipped_in_source(const core::MeasuredRun& run) {
  return fmt::format("simulatable=no in the source{}{}", run.notes.empty() ? "" : ": ", run.notes);
}

void compare(CheckedRow& row, const Translation& translation) {
  const auto& measured = *row.measured;
  const auto& predicted = *row.predicted;
  if (measured.step_time_s)
    row.step_time_error = predicted.step_time_s / *measured.step_time_s - 1.0;
  if (measured.memory_kind != MemoryKind::none) {
    row.predicted_memory_GiB = predicted.memory_GiB(measured.memory_kind, measured.memory_rank);
    if (measured.memory_GiB)
      row.memory_error = *row.predicted_memory_GiB / *measured.memory_GiB - 1.0;
  }
  const auto& s = translation.setting;
  if (const auto flops =
          flops_per_token(measured.convention, s.model, s.seq, row.run.params_total)) {
    const double tokens =
        static_cast<double>(translation.plan.global_batch) * static_cast<double>(s.seq);
    row.predicted_tflops_per_gpu =
        1e-12 * *flops * tokens / static_cast<double>(s.gpus) / predicted.step_time_s;
    if (const auto peak = s.cluster.gpu.peak(s.recipe.gemm_forward))
      row.predicted_mfu = *row.predicted_tflops_per_gpu * 1e12 / peak->value;
  }
}

}  // namespace

std::string source_of(const core::MeasuredRun& run) {
  const std::string_view id = run.id;
  if (!run.test_case.empty()) return id.starts_with("mlmft") ? "mlm_tests" : "logs";
  for (const auto prefix : long_prefixes) {
    if (id.starts_with(prefix)) return std::string(prefix);
  }
  const auto word = id.substr(0, id.find('_'));
  // mb2606, mb260401: releases of one benchmark.
  if (word.starts_with("mb2")) return "mb2";
  return std::string(word);
}

CheckedRow check_row(const core::MeasuredRun& run) {
  const auto start = std::chrono::steady_clock::now();
  CheckedRow row;
  row.run = run;
  row.source = source_of(run);
  row.gpu = run.gpu;
  if (!run.simulatable) {
    row.skipped_because = skipped_in_source(run);
    return row;
  }
  try {
    const auto translation = translate(run);
    row.plan = core::to_text(translation.plan);
    row.recipe = translation.setting.recipe.name;
    row.gpu = translation.setting.cluster.gpu.name;
    row.sequence = translation.setting.seq;
    row.notes = translation.notes;
    row.measured =
        measurement_of(run, translation.setting.model, translation.plan, translation.setting.seq);
    const Bench bench(translation.setting);
    if (const auto reason = why_not_offload(translation.setting, bench, translation.plan))
      throw core::InputError(*reason);
    row.predicted = predict(translation, bench);
    compare(row, translation);
    if (!row.measured->step_time_s && !row.measured->memory_GiB && !row.measured->out_of_memory) {
      row.skipped_because = "neither a time nor a memory figure that says what it counts";
    }
  } catch (const core::InputError& error) {
    row.skipped_because = error.what();
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return row;
}

std::vector<CheckedRow> check_rows(const std::vector<core::MeasuredTable>& tables) {
  std::vector<const core::MeasuredRun*> runs;
  std::set<std::string_view> seen;
  for (const auto& table : tables) {
    for (const auto& run : table.runs) {
      if (seen.insert(run.id).second) runs.push_back(&run);
    }
  }
  std::vector<CheckedRow> rows(runs.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < runs.size(); i = next++) rows[i] = check_row(*runs[i]);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = runs.size();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return rows;
}

}  // namespace simulator
