#include "simulator/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "simulator/spread.h"
#include "simulator/uncertainty.h"

namespace simulator {

namespace {

constexpr std::int64_t default_sequence = 4096;
constexpr std::int64_t default_batch_tokens = std::int64_t{4} << 20;

core::Cluster cluster_of(const Request& request) {
  if (request.cluster.empty()) {
    return core::make_cluster(request.gpu.empty() ? "h100-sxm" : request.gpu, request.gpus);
  }
  auto cluster = core::load_cluster(request.cluster, request.gpus);
  if (!request.gpu.empty() && request.gpu != cluster.gpu.name) {
    throw core::InputError(fmt::format("--gpu {}: cluster {} has {}", request.gpu, cluster.name, cluster.gpu.name));
  }
  return cluster;
}

void check_recipe(const Setting& setting) {
  if (const auto reason = why_not_recipe(setting.recipe, setting.cluster.gpu)) {
    throw core::InputError(fmt::format("--recipe {}: {}", setting.recipe.name, *reason));
  }
}

void take_load_and_stalls(const Request& request, Setting& s) {
  const auto finite = [](double value, double low) { return std::isfinite(value) && value >= low; };
  if (!finite(request.expert_overload, 1.0)) {
    throw core::InputError(fmt::format(
        "--expert-overload: found {}, expected 1 or more (tokens on the fullest expert rank over the mean)",
        request.expert_overload));
  }
  if (!finite(request.capacity_factor, 0.0)) {
    throw core::InputError(fmt::format(
        "--capacity-factor: found {}, expected a positive factor, or 0 for dropless", request.capacity_factor));
  }
  if (!finite(request.data_stall_ms, 0.0)) {
    throw core::InputError(
        fmt::format("--data-stall-ms: found {}, expected milliseconds a step of 0 or more", request.data_stall_ms));
  }
  if (request.checkpoint_s.has_value() != request.checkpoint_every.has_value()) {
    throw core::InputError(request.checkpoint_s ? "--checkpoint-every: missing, expected the steps between two checkpoints"
                                                : "--checkpoint-s: missing, expected the seconds that a checkpoint stops training");
  }
  s.overload = request.expert_overload;
  s.capacity = request.capacity_factor;
  s.data_stall_s = request.data_stall_ms / 1e3;
  if (!request.checkpoint_s) return;
  if (!finite(*request.checkpoint_s, 0.0)) {
    throw core::InputError(fmt::format("--checkpoint-s: found {}, expected seconds of 0 or more", *request.checkpoint_s));
  }
  if (*request.checkpoint_every < 1) {
    throw core::InputError(
        fmt::format("--checkpoint-every: found {}, expected a number of steps of 1 or more", *request.checkpoint_every));
  }
  s.checkpoint_s = *request.checkpoint_s / static_cast<double>(*request.checkpoint_every);
}

}  // namespace

std::optional<std::string> why_not_recipe(const core::Recipe& recipe, const core::Gpu& gpu) {
  const auto& architectures = recipe.architectures;
  if (!architectures.empty() && std::find(architectures.begin(), architectures.end(), gpu.arch) == architectures.end()) {
    return fmt::format("{} is {}; expected {}, whose tensor cores apply its scales", gpu.name, gpu.arch,
                       fmt::join(architectures, " or "));
  }
  for (const auto& format : recipe.rates()) {
    if (!gpu.peak(format)) {
      return fmt::format("{} has no {} tensor cores; expected a recipe in a format it has", gpu.name, format);
    }
  }
  return std::nullopt;
}

Setting make_setting(Request& request) {
  Setting s;
  s.model = core::load_model(request.model);
  s.cluster = cluster_of(request);
  request.gpu = s.cluster.gpu.name;
  request.gpus = s.cluster.gpus;
  if (request.recipe.empty()) request.recipe = s.cluster.gpu.peak("bf16") ? "bf16" : "fp16";
  s.recipe = core::load_recipe(request.recipe);
  check_recipe(s);
  s.framework = core::load_framework(request.framework, s.cluster.gpu.arch);
  s.sharded_framework = request.framework.starts_with("megatron")
                            ? core::sharded_by(s.framework, core::load_framework("fsdp", s.cluster.gpu.arch))
                            : s.framework;
  if (request.attention.empty()) {
    s.attention = best_attention(s.cluster.gpu.arch);
    request.attention = std::string(core::name_of(s.attention));
  } else {
    s.attention = core::attention_kernel_of(request.attention);
    if (!attention_available(s.attention, s.cluster.gpu.arch)) {
      throw core::InputError(fmt::format("--attention {}: not available on {} ({}); its best is {}", request.attention,
                                         s.cluster.gpu.name, s.cluster.gpu.arch,
                                         core::name_of(best_attention(s.cluster.gpu.arch))));
    }
  }
  const auto longest = s.model.max_positions;
  if (request.seq == 0) request.seq = longest > 0 ? std::min(default_sequence, longest) : default_sequence;
  // A learned position table ends where the model says.
  for (const auto& block : s.model.embedding) {
    const auto positions = block.kind == "embedding" ? block.shape.get("positions", 0) : 0;
    if (positions > 0 && request.seq > positions) {
      throw core::InputError(
          fmt::format("--seq {}: {} has learned positions for {} tokens", request.seq, s.model.name, positions));
    }
  }
  if (longest > 0 && request.seq > longest) {
    s.model.warnings.push_back(fmt::format("--seq {} is over the model's {} positions", request.seq, longest));
  }
  s.seq = request.seq;
  s.gpus = std::max<std::int64_t>(1, request.gpus);
  if (request.global_batch == 0) {
    request.global_batch = std::max(request.gpus, std::max<std::int64_t>(1, default_batch_tokens / request.seq));
  }
  take_load_and_stalls(request, s);
  if (request.price) s.cluster.usd_per_gpu_hour = core::Sourced{*request.price, "--price", "seen"};
  return s;
}

double parse_count(const std::string& text, const std::string& flag) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  double scale = 1.0;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix == "K" || suffix == "k") scale = 1e3;
  else if (suffix == "M") scale = 1e6;
  else if (suffix == "B" || suffix == "G") scale = 1e9;
  else if (suffix == "T") scale = 1e12;
  else if (!suffix.empty()) scale = -1.0;
  if (error != std::errc{} || scale < 0.0 || !(value > 0.0) || !std::isfinite(value * scale)) {
    throw core::InputError(
        fmt::format("{}: found \"{}\", expected a positive number such as 1T, 300B or 15.6e12", flag, text));
  }
  return value * scale;
}

std::vector<std::pair<std::string, std::string>> sources_of(const Setting& setting) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const std::string& file, const std::string& key, const core::Sourced& figure) {
    out.emplace_back(file + ": " + key, fmt::format("{} ({})", figure.source, figure.checked));
  };
  for (const auto& [key, figure] : setting.cluster.gpu.sources) add("gpus/" + setting.cluster.gpu.name, key, figure);
  for (const auto& [key, figure] : setting.cluster.node.sources) add("nodes/" + setting.cluster.node.name, key, figure);
  for (const auto& [key, figure] : setting.cluster.sources) add("clusters/" + setting.cluster.name, key, figure);
  if (setting.cluster.usd_per_gpu_hour) add("prices", "usd_per_gpu_hour", *setting.cluster.usd_per_gpu_hour);
  const auto curves = Curves::load(setting.cluster.gpu);
  for (const auto& key : curves.keys()) out.emplace_back("curves/" + curves.gpu().arch + ": " + key, curves.source_of(key));
  for (const auto* f : {&setting.framework, &setting.sharded_framework}) {
    for (const auto& [key, source] : f->sources) out.emplace_back("frameworks/" + f->name + ": " + key, source);
  }
  for (const auto& [key, source] : setting.recipe.sources) {
    out.emplace_back("recipes/" + setting.recipe.name + ": " + key, source);
  }
  out.emplace_back("spread: kernel_sigma", spread().source);
  out.emplace_back("uncertainty: step_time", uncertainty().command);
  return out;
}

}  // namespace simulator
