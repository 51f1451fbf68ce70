#include "planner/budget/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/hardware/figures.h"
#include "core/io/data_dir.h"

namespace planner {

namespace {

// How far parameters and hidden size per layer may be off before it counts as much as the other (in their logarithm).
constexpr double parameters_scale = 0.03, aspect_scale = 0.15;
constexpr std::int64_t most_hidden = 65536, most_layers = 512;

WidthRule width_rule(const core::Document& entry) {
  WidthRule rule;
  rule.hidden_from = entry.at("hidden_from").as_int(1, most_hidden);
  rule.head_dim = entry.at("head_dim").as_int(1, 1024);
  rule.hidden_multiple = entry.at("hidden_multiple").as_int(1, most_hidden);
  rule.layer_multiple = entry.at("layer_multiple").as_int(1, most_layers);
  entry.at("source").mark_used();
  if (rule.hidden_multiple % rule.head_dim != 0) entry.at("hidden_multiple").complain("a multiple of head_dim");
  entry.reject_unknown({"hidden_from", "head_dim", "hidden_multiple", "layer_multiple", "source"});
  return rule;
}

PublishedShape published_shape(const core::Document& entry) {
  PublishedShape shape;
  shape.model = entry.at("model").as_text();
  shape.hidden = entry.at("hidden").as_positive_int();
  shape.layers = entry.at("layers").as_positive_int();
  shape.parameters = entry.at("parameters").as_positive_int();
  entry.reject_unknown({"model", "hidden", "layers", "parameters"});
  return shape;
}

Shape shape_of(const Family& family, const WidthRule& rule, std::int64_t hidden, std::int64_t layers, bool tied) {
  Shape shape{hidden, layers, hidden / rule.head_dim, rule.head_dim, family.kv_heads, 0, tied};
  shape.ffn = std::llround(family.ffn_per_hidden * static_cast<double>(hidden));
  return shape;
}

// Layers that come nearest below and above the parameters, as multiples.
std::vector<std::int64_t> layers_near(const Family& family, const WidthRule& rule, std::int64_t hidden, bool tied,
                                      double parameters) {
  const double none = parameters_of(family, shape_of(family, rule, hidden, 0, tied));
  const double each = parameters_of(family, shape_of(family, rule, hidden, 1, tied)) - none;
  const auto below = static_cast<std::int64_t>((parameters - none) / each) / rule.layer_multiple * rule.layer_multiple;
  std::vector<std::int64_t> out;
  for (const auto layers : {below, below + rule.layer_multiple}) {
    if (layers >= rule.layer_multiple && layers <= most_layers) out.push_back(layers);
  }
  return out;
}

double distance(const Family& family, const Shape& shape, double parameters) {
  const double size = std::log(parameters_of(family, shape) / parameters) / parameters_scale;
  const double aspect = static_cast<double>(shape.hidden) / static_cast<double>(shape.layers) / family.hidden_per_layer;
  return size * size + std::pow(std::log(aspect) / aspect_scale, 2);
}

}  // namespace

Family load_family(std::string_view name) {
  const auto file = core::Document::read_json_file(core::data_file("families", name, "--family"));
  Family family;
  family.name = std::string(name);
  family.title = file.at("title").as_text();
  family.architecture = file.at("architecture").as_text();
  family.model_type = file.at("model_type").as_text();
  core::Figures::Sources sources;
  core::Figures figures(file, sources);
  family.vocab = figures.count("vocab_size", 1, std::int64_t{1} << 28);
  family.kv_heads = figures.count("kv_heads", 1, 1024);
  family.max_positions = figures.count("max_positions", 1, std::int64_t{1} << 28);
  family.hidden_per_layer = figures.positive("hidden_per_layer");
  family.ffn_per_hidden = figures.positive("ffn_per_hidden");
  family.tied_below = figures.not_negative("tied_below_parameters");
  for (const auto& [key, figure] : sources) family.sources.emplace_back(key, figure.source);
  for (const auto& entry : file.at("widths").as_list()) family.widths.push_back(width_rule(entry));
  if (family.widths.empty()) file.at("widths").complain("a rule at least");
  for (const auto& entry : file.at("published").as_list()) family.published.push_back(published_shape(entry));
  file.reject_unknown({"title", "architecture", "model_type", "vocab_size", "kv_heads", "max_positions", "hidden_per_layer",
                       "ffn_per_hidden", "tied_below_parameters", "widths", "published"});
  return family;
}

Shape shape_near(const Family& family, double parameters) {
  const bool tied = parameters < family.tied_below;
  Shape best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < family.widths.size(); ++i) {
    const auto& rule = family.widths[i];
    const auto end = i + 1 < family.widths.size() ? family.widths[i + 1].hidden_from : most_hidden;
    for (auto hidden = rule.hidden_from; hidden < end; hidden += rule.hidden_multiple) {
      for (const auto layers : layers_near(family, rule, hidden, tied, parameters)) {
        const auto shape = shape_of(family, rule, hidden, layers, tied);
        if (const double d = distance(family, shape, parameters); d < least) least = d, best = shape;
      }
    }
  }
  if (best.layers == 0) {
    throw core::InputError(
        fmt::format("--sizes: found {:.3g} parameters, of which {} has no shape; expected more", parameters, family.name));
  }
  return best;
}

double parameters_of(const Family& family, const Shape& s) {
  const auto h = static_cast<double>(s.hidden), k = static_cast<double>(s.kv_heads * s.head_dim);
  const double layer = 2 * h * h + 2 * h * k + 3 * h * static_cast<double>(s.ffn) + 2 * h;
  const double tables = (s.tied ? 1.0 : 2.0) * static_cast<double>(family.vocab) * h;
  return static_cast<double>(s.layers) * layer + h + tables;
}

core::ModelSpec model_of(const Family& family, const Shape& s) {
  const auto name = fmt::format("{}-like-{:.3g}B", family.name, parameters_of(family, s) / 1e9);
  const auto config = fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "vocab_size": {}, "hidden_size": {}, "num_hidden_layers": {},
  "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {}, "intermediate_size": {},
  "max_position_embeddings": {}, "hidden_act": "silu", "tie_word_embeddings": {}}})",
      family.architecture, family.model_type, family.vocab, s.hidden, s.layers, s.heads, s.kv_heads, s.head_dim, s.ffn,
      family.max_positions, s.tied);
  return core::read_model_config(core::Document::parse_json(config, name), name);
}

std::vector<Shape> shapes_between(const Family& family, double low, double high, std::size_t count) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.0;
    const auto shape = shape_near(family, low * std::pow(high / low, share));
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace planner
