#include "core/logs/megatron.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/log_text.h"
#include "core/units.h"

namespace core {

namespace {

constexpr std::string_view iteration_words = "elapsed time per iteration (";

void put(std::string name, std::string_view value, MegatronRun& run) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::string text(trimmed_line(value));
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  if (text == "true") text = "True";
  if (text == "false") text = "False";
  if (!text.empty() && text != "None" && text != "null")
    run.arguments[std::move(name)] = std::move(text);
}

void take_argument(std::string_view line, MegatronRun& run) {
  if (const auto argument = dotted_argument(line))
    put(std::string(argument->first), argument->second, run);
}

void take_iteration(std::string_view line, MegatronRun& run) {
  const auto at = line.find(iteration_words);
  if (at == std::string_view::npos) return;
  const auto rest = line.substr(at);
  if (const auto ms = number_after(rest, "(ms):"))
    run.step_s.push_back(*ms / 1e3);
  else if (const auto s = number_after(rest, "(s):"))
    run.step_s.push_back(*s);
  run.batches.resize(run.step_s.size(), number_after(rest, "global batch size:").value_or(0.0));
}

// "memory (MB) | allocated: 1.5 | max allocated: 2.5 | ...", several of which may share a line; MB
// are MiB.
void take_memory(std::string_view line, MegatronRun& run) {
  constexpr std::string_view start = "memory (MB) |";
  for (auto at = line.find(start); at != std::string_view::npos; at = line.find(start, at + 1)) {
    const auto part = line.substr(at, std::min(line.find(start, at + 1), line.size()) - at);
    const auto keep = [&](std::string_view word, std::optional<double>& most) {
      if (const auto mebibytes = number_after(part, word))
        most = std::max(most.value_or(0.0), *mebibytes / 1024.0);
    };
    keep("| allocated:", run.allocated_GiB);
    keep("max allocated:", run.peak_GiB);
  }
}

// Values of a golden file by step; "nan" stands for steps without one.
std::vector<double> golden_values(const Document& golden, std::string_view key) {
  std::vector<double> values;
  const Document* entry = golden.find(key);
  if (entry == nullptr) return values;
  for (const auto& [step, value] : entry->at("values").as_object()) {
    if (value.is_number()) values.push_back(value.as_real());
  }
  return values;
}

}  // namespace

bool is_megatron_log(std::string_view text) {
  return text.find(iteration_words) != std::string_view::npos;
}

MegatronRun parse_megatron_log(std::string_view text, std::string name) {
  MegatronRun run;
  run.name = std::move(name);
  each_line(text, [&](std::string_view line) {
    take_argument(line, run);
    take_iteration(line, run);
    take_memory(line, run);
  });
  if (run.step_s.empty())
    throw InputError(
        fmt::format("{}: found no iteration with a time, expected a log of Megatron-LM", run.name));
  if (!run.arguments.contains("num_layers")) {
    throw InputError(fmt::format(
        "{}: found no arguments (num_layers ... N), expected the log from its start", run.name));
  }
  return run;
}

MegatronRun parse_megatron_golden(std::string_view golden,
                                  std::string name,
                                  std::string_view arguments,
                                  std::string arguments_name) {
  MegatronRun run;
  const auto document = Document::parse_json(golden, name);
  run.name = std::move(name);
  run.last_rank = true;
  run.step_s = golden_values(document, "iteration-time");
  const auto largest = [](const std::vector<double>& bytes) {
    return bytes.empty() ? std::nullopt
                         : std::optional(*std::max_element(bytes.begin(), bytes.end()) / gibibyte);
  };
  run.allocated_GiB = largest(golden_values(document, "mem-allocated-bytes"));
  run.peak_GiB = largest(golden_values(document, "mem-max-allocated-bytes"));
  if (run.step_s.empty() && !run.peak_GiB) {
    throw InputError(
        fmt::format("{}: found neither iteration-time nor mem-max-allocated-bytes, expected golden "
                    "values of Megatron-LM",
                    run.name));
  }
  each_line(arguments, [&](std::string_view line) {
    line = trimmed_line(line);
    const auto colon = line.find(':');
    if (!line.starts_with("--") || colon == std::string_view::npos) return;
    const auto value = line.substr(colon + 1);
    put(std::string(line.substr(2, colon - 2)), value.substr(0, value.find(" #")), run);
  });
  if (!run.arguments.contains("num_layers") && !run.arguments.contains("hybrid_layer_pattern")) {
    throw InputError(fmt::format("{}: found no --num-layers, expected the arguments of the test",
                                 arguments_name));
  }
  return run;
}

}  // namespace core
