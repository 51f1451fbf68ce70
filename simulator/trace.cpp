#include "simulator/trace.h"

#include <fmt/format.h>

#include <iterator>

#include "core/io/json_writer.h"

namespace simulator {

namespace {

using core::OpId;

double microseconds(core::SimTime t) { return static_cast<double>(t) * 1e-6; }

void write_names(const SimulatedStep& step, std::string& out) {
  for (std::int32_t r = 0; r < step.graph.ranks; ++r) {
    const auto copies = step.graph.multiplicity[static_cast<std::size_t>(r)];
    const auto name = copies > 1 ? fmt::format("pipeline rank {} (stands for {} ranks)", r, copies)
                                 : fmt::format("rank {}", r);
    fmt::format_to(std::back_inserter(out),
                   "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}},\n"
                   "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{}}}}},\n",
                   r, core::json_quoted(name), r, r);
    for (std::int32_t s = 0; s < core::streams_per_rank; ++s) {
      fmt::format_to(std::back_inserter(out),
                     "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{}\"}}}},\n"
                     "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{}}}}},\n",
                     r, s, core::name_of(static_cast<core::Stream>(s)), r, s, s);
    }
  }
}

std::string event_name(const SimulatedStep& step, OpId op) {
  const auto& key = step.graph.key[op];
  const auto& spec = step.graph.specs[step.graph.spec[op]];
  if (spec.kind != core::OpKind::cell) return spec.name.str();
  return fmt::format("{}{}{}", key.stage, spec.direction == core::Direction::forward ? 'F' : 'B', key.micro_batch);
}

void write_events(const SimulatedStep& step, std::string& out) {
  const auto& g = step.graph;
  for (OpId op = 0; op < g.size(); ++op) {
    const auto& key = g.key[op];
    const auto name = event_name(step, op);
    for (auto q = g.queue_begin[op]; q < g.queue_begin[op + 1]; ++q) {
      const auto rank = g.queues[q] / static_cast<std::uint32_t>(core::streams_per_rank);
      const auto stream = g.queues[q] % static_cast<std::uint32_t>(core::streams_per_rank);
      fmt::format_to(std::back_inserter(out),
                     "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":\"{}\",\"cat\":\"{}\","
                     "\"args\":{{\"stage\":{},\"layer\":{},\"micro_batch\":{}}}}},\n",
                     rank, stream, microseconds(step.timeline.start[op]),
                     microseconds(step.timeline.end[op] - step.timeline.start[op]), name, core::name_of(key.phase),
                     key.stage, key.layer, key.micro_batch);
    }
  }
}

void write_memory(const SimulatedStep& step, std::string& out) {
  for (std::int32_t r = 0; r < step.graph.ranks; ++r) {
    for (const auto& p : core::memory_over_time(step.graph, step.timeline, r)) {
      fmt::format_to(std::back_inserter(out),
                     "{{\"ph\":\"C\",\"pid\":{},\"ts\":{},\"name\":\"memory\",\"args\":{{\"GiB\":{:.4f}}}}},\n", r,
                     microseconds(p.time), static_cast<double>(p.bytes) / core::gibibyte);
    }
  }
}

}  // namespace

std::string chrome_trace(const SimulatedStep& step) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  write_names(step, out);
  write_events(step, out);
  write_memory(step, out);
  if (out.ends_with(",\n")) out.erase(out.size() - 2, 1);
  return out + "]}\n";
}

std::string memory_timeline_csv(const SimulatedStep& step) {
  std::string out = "rank,time_s,memory_GiB\n";
  for (std::int32_t r = 0; r < step.graph.ranks; ++r) {
    for (const auto& p : core::memory_over_time(step.graph, step.timeline, r)) {
      fmt::format_to(std::back_inserter(out), "{},{},{:.6f}\n", r, core::to_seconds(p.time).value,
                     static_cast<double>(p.bytes) / core::gibibyte);
    }
  }
  return out;
}

}  // namespace simulator
