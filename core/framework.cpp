#include "core/framework.h"

#include <array>

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

namespace {

constexpr std::array<std::string_view, 4> bytes_of_a_loss = {
    "saved_bytes_per_logit", "transient_bytes_per_logit", "traffic_forward_bytes_per_logit",
    "traffic_backward_bytes_per_logit"};

LossFigures read_loss(const Document& losses, std::string_view key, Figures::Sources& sources) {
  const Document& loss = losses.at(key);
  Figures::Sources own;
  Figures figures(loss, own);
  LossFigures f;
  f.saved = figures.not_negative("saved_bytes_per_logit");
  f.transient = figures.not_negative("transient_bytes_per_logit");
  f.traffic_forward = figures.not_negative("traffic_forward_bytes_per_logit");
  f.traffic_backward = figures.not_negative("traffic_backward_bytes_per_logit");
  for (auto& [figure, source] : own) sources.emplace_back("loss." + std::string(key) + "." + figure, source);
  return f;
}

// Where a framework has the kind.
std::optional<LossFigures> read_native_loss(const Document& losses, std::string_view key, Figures::Sources& sources) {
  if (!losses.has(key)) return std::nullopt;
  losses.at(key).reject_unknown({bytes_of_a_loss.begin(), bytes_of_a_loss.end()});
  return read_loss(losses, key, sources);
}

void read_losses(const Document& losses, Framework& f, Figures::Sources& sources) {
  losses.reject_unknown({"unfused", "fused", "linear", "native", "native_2025"});
  f.native_loss = read_native_loss(losses, "native", sources);
  f.native_loss_2025 = read_native_loss(losses, "native_2025", sources);
  if (f.native_loss.has_value() != f.native_loss_2025.has_value()) losses.complain("native and native_2025, or neither");
  for (const auto kind : {Loss::unfused, Loss::fused, Loss::linear}) {
    const std::string_view key = kind == Loss::unfused ? "unfused" : kind == Loss::fused ? "fused" : "linear";
    const Document& loss = losses.at(key);
    std::vector<std::string_view> known(bytes_of_a_loss.begin(), bytes_of_a_loss.end());
    if (kind == Loss::linear) known.insert(known.end(), {"way", "way_source", "chunk_tokens"});
    loss.reject_unknown(known);
    f.losses[static_cast<std::size_t>(kind)] = read_loss(losses, key, sources);
  }
  const Document& linear = losses.at("linear");
  const Document& way = linear.at("way");
  if (way.as_text() != "gradients" && way.as_text() != "recompute") way.complain("gradients or recompute");
  f.linear_loss = way.as_text() == "gradients" ? LinearLoss::gradients : LinearLoss::recompute;
  f.sources.emplace_back("loss.linear.way", linear.at("way_source").as_text());
  if (linear.has("chunk_tokens")) {
    Figures figures(linear, sources);
    f.loss_chunk_tokens = figures.count("chunk_tokens", 1, std::int64_t{1} << 40);
  }
}

Mover read_mover(const Document& mover) {
  for (const auto each : {Mover::kernels, Mover::copy_engine}) {
    if (mover.as_text() == name_of(each)) return each;
  }
  mover.complain("kernels or copy_engine");
}

TensorParts read_tensor_parts(const Document& parts, Figures::Sources& sources) {
  parts.reject_unknown({"gather", "scatter", "scatter_parts", "source"});
  TensorParts t;
  t.gather = read_mover(parts.at("gather"));
  t.scatter = read_mover(parts.at("scatter"));
  Figures::Sources own;
  t.scatter_parts = Figures(parts, own).count("scatter_parts", 0, 1 << 10);
  for (auto& [figure, source] : own) sources.emplace_back("tensor_parts." + figure, source);
  return t;
}

UnitCopies read_unit_copies(const Document& document, Figures::Sources& sources) {
  document.reject_unknown({"gathers", "gradients", "scalings"});
  Figures::Sources own;
  Figures figures(document, own);
  const UnitCopies copies{figures.not_negative("gathers"), figures.not_negative("gradients"), figures.not_negative("scalings")};
  for (auto& [figure, source] : own) sources.emplace_back("unit_copies." + figure, source);
  return copies;
}

ExpertBiases read_expert_biases(const Document& document, Figures::Sources& sources) {
  document.reject_unknown(
      {"forward_B", "backward_B", "narrow_forward_B", "narrow_backward_B", "inner_forward_B", "inner_backward_B"});
  Figures::Sources own;
  Figures figures(document, own);
  ExpertBiases b;
  b.forward = figures.not_negative("forward_B"), b.backward = figures.not_negative("backward_B");
  b.narrow_forward = figures.not_negative("narrow_forward_B"), b.narrow_backward = figures.not_negative("narrow_backward_B");
  b.inner_forward = figures.not_negative("inner_forward_B"), b.inner_backward = figures.not_negative("inner_backward_B");
  for (auto& [figure, source] : own) sources.emplace_back("expert_biases." + figure, source);
  return b;
}

// Libraries take larger workspaces from Hopper on.
Workspaces read_workspaces(const Document& document, std::string_view arch, Figures::Sources& sources) {
  document.reject_unknown({"torch_MiB", "torch_hopper_MiB", "engine_MiB", "engine_hopper_MiB", "handles", "grouped"});
  Figures::Sources own;
  Figures figures(document, own);
  const bool large = arch == "hopper" || arch == "blackwell";
  const auto size = [&](std::string_view before, std::string_view since) {
    const double small_MiB = figures.not_negative(before), large_MiB = figures.not_negative(since);
    return Bytes{(large ? large_MiB : small_MiB) * mebibyte};
  };
  Workspaces w;
  w.torch = size("torch_MiB", "torch_hopper_MiB");
  w.engine = size("engine_MiB", "engine_hopper_MiB");
  w.handles = figures.not_negative("handles");
  w.grouped = figures.not_negative("grouped");
  for (auto& [figure, source] : own) sources.emplace_back("workspaces." + figure, source);
  return w;
}

Launches read_launches(const Document& document, Figures::Sources& sources) {
  document.reject_unknown({"gemm", "input_gradient", "weight_gradient", "unfused_attention", "flash_attention", "norm",
                           "activation", "residual", "rope", "other", "collective", "router", "expert", "expert_bias_forward",
                           "expert_bias_backward", "recompute"});
  constexpr std::int64_t most = 1000;
  Figures::Sources own;
  Figures figures(document, own);
  Launches l;
  l.gemm = figures.count("gemm", 1, most);
  l.input_gradient = figures.count("input_gradient", 1, most);
  l.weight_gradient = figures.count("weight_gradient", 1, most);
  l.collective = figures.count("collective", 0, most);
  l.recompute = figures.count("recompute", 0, most);
  l.expert = figures.not_negative("expert");
  l.expert_bias_forward = figures.not_negative("expert_bias_forward");
  l.expert_bias_backward = figures.not_negative("expert_bias_backward");
  const auto read_pass = [&](std::string_view key, Launches::Pass& pass) {
    const Document& both = document.at(key);
    both.reject_unknown({"forward", "backward"});
    Figures::Sources of_both;
    Figures counts(both, of_both);
    pass = {counts.count("forward", 1, most), counts.count("backward", 1, most)};
    for (auto& [figure, source] : of_both) own.emplace_back(std::string(key) + "." + figure, source);
  };
  read_pass("unfused_attention", l.unfused_attention);
  read_pass("flash_attention", l.flash_attention);
  read_pass("norm", l.norm);
  read_pass("activation", l.activation);
  read_pass("residual", l.residual);
  read_pass("rope", l.rope);
  read_pass("other", l.other);
  read_pass("router", l.router);
  for (auto& [figure, source] : own) sources.emplace_back("launches." + figure, source);
  return l;
}

}  // namespace

Framework load_framework(std::string_view name, std::string_view arch) {
  const auto document = Document::read_json_file(data_file("frameworks", name, "--framework"));
  document.reject_unknown({"title", "vocab_multiple", "loss", "norm_traffic", "activation_traffic", "rope_traffic",
                           "attention_traffic", "tensor_parts", "bucket_parameters", "bucket_parameters_per_rank",
                           "gradient_buffers", "prefetch_parameters",
                           "layer_gradient_placeholders", "output_gradient_placeholders", "keeps_output_gather",
                           "flat_gradients", "unit_copies", "expert_biases", "sums_gradients_apart", "recompute_stops_early", "keeps_gradients",
                           "context_GiB", "workspaces", "communicator_GiB", "allocation_unit_B", "fragmentation", "launches",
                           "host_us_per_launch", "host_us_per_launch_graphs", "launches_wait", "host_memory_factor",
                           "step_overhead_ms"});
  Figures::Sources sources;
  Figures figures(document, sources);
  Framework f;
  f.name = std::string(name);
  f.vocab_multiple = figures.count("vocab_multiple", 1, 1 << 20);
  read_losses(document.at("loss"), f, sources);
  f.norm_traffic = figures.positive("norm_traffic");
  f.activation_traffic = figures.positive("activation_traffic");
  f.rope_traffic = figures.positive("rope_traffic");
  f.attention_traffic = figures.not_negative("attention_traffic");
  f.tensor_parts = read_tensor_parts(document.at("tensor_parts"), sources);
  f.sources.emplace_back("tensor_parts", document.at("tensor_parts").at("source").as_text());
  f.bucket_parameters = figures.not_negative("bucket_parameters");
  f.bucket_parameters_per_rank = figures.not_negative("bucket_parameters_per_rank");
  f.gradient_buffers = figures.not_negative("gradient_buffers");
  if (figures.has("prefetch_parameters")) f.prefetch_parameters = figures.not_negative("prefetch_parameters");
  f.layer_gradient_placeholders = figures.not_negative("layer_gradient_placeholders");
  f.output_gradient_placeholders = figures.not_negative("output_gradient_placeholders");
  f.keeps_output_gather = figures.count("keeps_output_gather", 0, 1) == 1;
  f.flat_gradients = figures.count("flat_gradients", 0, 1) == 1;
  f.sums_gradients_apart = figures.count("sums_gradients_apart", 0, 1) == 1;
  f.recompute_stops_early = figures.count("recompute_stops_early", 0, 1) == 1;
  f.keeps_gradients = figures.count("keeps_gradients", 0, 1) == 1;
  f.context = gibibytes(figures.not_negative("context_GiB"));
  f.workspaces = read_workspaces(document.at("workspaces"), arch, sources);
  f.communicator = gibibytes(figures.not_negative("communicator_GiB"));
  f.allocation_unit = Bytes{figures.positive("allocation_unit_B")};
  f.fragmentation = figures.not_negative("fragmentation");
  f.unit_copies = read_unit_copies(document.at("unit_copies"), sources);
  f.expert_biases = read_expert_biases(document.at("expert_biases"), sources);
  f.launches = read_launches(document.at("launches"), sources);
  f.host_per_launch = Seconds{figures.not_negative("host_us_per_launch") * 1e-6};
  f.host_per_launch_graphs = Seconds{figures.not_negative("host_us_per_launch_graphs") * 1e-6};
  f.launches_wait = figures.count("launches_wait", 0, 1) == 1;
  f.host_memory_factor = figures.positive("host_memory_factor");
  f.step_overhead = Seconds{figures.not_negative("step_overhead_ms") * 1e-3};
  for (const auto& [key, figure] : sources) {
    f.sources.emplace_back(key, figure.source + " (" + figure.checked + ")");
  }
  return f;
}

Framework sharded_by(const Framework& layers, Framework sharding) {
  sharding.losses = layers.losses;
  sharding.linear_loss = layers.linear_loss;
  sharding.loss_chunk_tokens = layers.loss_chunk_tokens;
  return sharding;
}

}  // namespace core
