#include "planner/listing.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/json_writer.h"
#include "core/model/block_kind.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace planner {

namespace {

// Sequence at which FLOPs a token are quoted: the model's own length, 4,096 where it has none.
std::int64_t quoted_sequence(const core::ModelSpec& model) {
  return model.max_positions > 0 ? std::min<std::int64_t>(model.max_positions, 4096) : 4096;
}

struct LayerCount {
  std::string name;
  std::int64_t count = 0, parameters = 0, active = 0;
  std::string blocks;  // "norm mla norm moe"
};

std::vector<LayerCount> layers_of(const core::ModelSpec& model) {
  std::vector<LayerCount> out;
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    LayerCount layer{model.kinds[k].name, 0, 0, 0, {}};
    for (const auto kind : model.layer_kind) layer.count += kind == k ? 1 : 0;
    for (const auto& block : model.kinds[k].blocks) {
      layer.blocks += (layer.blocks.empty() ? "" : " ") + block.kind;
      for (const auto& t : core::tensors_of({block}, model)) {
        layer.parameters += t.numel();
        layer.active += core::active_elements(block, t);
      }
    }
    out.push_back(layer);
  }
  return out;
}

}  // namespace

std::string listing(const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "schedules") {
    for (const auto* s : core::schedules::all()) names.emplace_back(s->name);
  } else if (kind == "collectives") {
    for (std::size_t i = 0; i < core::collectives_kinds; ++i) names.emplace_back(core::name_of(static_cast<core::Collectives>(i)));
  } else if (kind == "models" || kind == "gpus" || kind == "clusters" || kind == "recipes" || kind == "frameworks" ||
             kind == "nodes" || kind == "laws" || kind == "families") {
    names = core::data_names(kind);
  } else {
    throw core::InputError(fmt::format(
        "--list {}: not known; expected models, families, gpus, nodes, clusters, recipes, schedules, collectives, frameworks or "
        "laws", kind));
  }
  std::string out;
  for (const auto& name : names) out += name + '\n';
  return out;
}

std::string model_table(const std::string& name_or_path) {
  const auto model = core::load_model(name_or_path);
  const auto count = core::count_parameters(model);
  std::string out = fmt::format("{} ({})\n  parameters            {}\n  active a token        {}\n  embedding             {}\n",
                                model.name, model.family, count.total, count.active, count.embedding);
  for (const auto& layer : layers_of(model)) {
    out += fmt::format("  {} x {:<16} {} each", layer.count, layer.name, layer.parameters);
    if (layer.active != layer.parameters) out += fmt::format(", {} active", layer.active);
    out += fmt::format(": {}\n", layer.blocks);
  }
  if (model.loops > 1) out += fmt::format("  run {} times with the same weights\n", model.loops);
  if (!model.mtp.empty()) {
    out += fmt::format("  {} x {:<16} {} in all, not counted above: predict further tokens in training\n", model.mtp.size(),
                       model.mtp.front().name, count.mtp);
  }
  const auto seq = quoted_sequence(model);
  out += fmt::format("  forward FLOPs a token {:.4g} at sequence {} (attention in full)\n  key-value cache       {:.0f} bytes a token\n",
                     core::flops_per_token_forward(model, seq), seq, core::kv_cache_bytes_per_token(model));
  for (const auto& w : model.warnings) out += "  note: " + w + '\n';
  return out;
}

std::string model_json(const std::string& name_or_path) {
  const auto model = core::load_model(name_or_path);
  const auto count = core::count_parameters(model);
  core::JsonWriter json;
  json.begin_object().member("name", model.name).member("family", model.family)
      .member("parameters", count.total).member("active_parameters", count.active)
      .member("embedding_parameters", count.embedding);
  json.key("layers").begin_list();
  for (const auto& layer : layers_of(model)) {
    json.begin_object().member("kind", layer.name).member("count", layer.count).member("parameters", layer.parameters)
        .member("active_parameters", layer.active).member("blocks", layer.blocks).end_object();
  }
  json.end_list();
  json.member("loops", model.loops).member("further_token_modules", static_cast<std::int64_t>(model.mtp.size()))
      .member("further_token_parameters", count.mtp);
  const auto seq = quoted_sequence(model);
  json.member("flops_per_token_forward", core::flops_per_token_forward(model, seq)).member("sequence", seq)
      .member("flops_convention", "model_full")
      .member("kv_cache_bytes_per_token", core::kv_cache_bytes_per_token(model));
  json.key("notes").begin_list();
  for (const auto& w : model.warnings) json.value(w);
  return json.end_list().end_object().text();
}

}  // namespace planner
