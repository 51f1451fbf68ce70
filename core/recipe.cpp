#include "core/recipe.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

namespace {

constexpr std::array<std::string_view, linear_kinds> kind_names = {"linear", "attention", "expert", "router", "output"};
constexpr std::array<std::string_view, 3> role_names = {"forward", "input_gradient", "weight_gradient"};
constexpr std::array<std::string_view, 5> optimizer_names = {"adam", "adam8bit", "muon", "adafactor", "sgd"};
constexpr std::array<std::string_view, 4> scalings = {"none", "delayed", "current", "block"};
constexpr std::array<std::string_view, 3> tensor_names = {"input", "weight", "gradient"};
constexpr std::array<std::string_view, 4> when_names = {"forward", "input_gradient", "weight_gradient", "step"};

using Numbers = std::map<std::string, Number, std::less<>>;

template <class Names>
std::size_t one_of(const Document& value, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), value.as_text());
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string known;
  for (const std::string_view name : names) known.append(known.empty() ? "one of " : ", ").append(name);
  value.complain(known);
}

// Bytes a recipe may spend on an element: nothing up to the sixteen of two doubles.
double bytes_at(const Document& states, std::string_view key) {
  const Document& value = states.at(key);
  const double bytes = value.as_real();
  if (bytes < 0.0 || bytes > 16.0) value.complain("bytes of an element, 0 to 16");
  return bytes;
}

std::optional<Format> format_named(std::string_view name) {
  try {
    return format_of(name);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Format format_at(const Document& value) {
  const auto format = format_named(value.as_text());
  if (!format) value.complain("fp32, tf32, fp16, bf16, fp8 or fp4");
  return *format;
}

// Elements that share a scale factor: nothing where so many do that it does not count (a row, a tensor).
std::optional<double> block_of(const Document& value) {
  const std::string& text = value.as_text();
  if (text == "tensor" || text == "row") return std::nullopt;
  int rows = 0, columns = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rows);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == 'x') {
    const auto second = std::from_chars(first.ptr + 1, end, columns);
    if (second.ec == std::errc() && second.ptr == end && rows > 0 && columns > 0) {
      return static_cast<double>(rows) * columns;
    }
  }
  value.complain("tensor, row, or a block such as 1x128");
}

// Plain formats are known; the file adds those with few bits and scale factors.
Numbers read_numbers(const Document& file) {
  Numbers numbers = {{"fp32", {"fp32", 4.0, 0.0}},
                     {"tf32", {"tf32", 4.0, 0.0}},
                     {"fp16", {"fp16", 2.0, 0.0}},
                     {"bf16", {"bf16", 2.0, 0.0}}};
  if (!file.has("numbers")) return numbers;
  for (const auto& [name, entry] : file.at("numbers").as_object()) {
    Number number{name, 0.0, 0.0};
    number.bytes = static_cast<double>(entry.at("bits").as_int(1, 32)) / 8.0;
    const double scale = static_cast<double>(entry.at("scale_bits").as_int(0, 64)) / 8.0;
    if (const auto elements = block_of(entry.at("block"))) number.scale_bytes = scale / *elements;
    entry.reject_unknown({"bits", "block", "scale_bits"});
    if (!numbers.emplace(name, number).second) entry.complain("a name that is not a plain format's");
  }
  return numbers;
}

Number number_at(const Document& gemm, std::string_view key, const Numbers& numbers) {
  const Document& value = gemm.at(key);
  const auto found = numbers.find(value.as_text());
  if (found != numbers.end()) return found->second;
  std::string known = "one of";
  for (const auto& [name, number] : numbers) known.append(" ").append(name);
  value.complain(known);
}

LinearRecipe plain(Format format, const Numbers& numbers) {
  const Number number = numbers.find(name_of(format))->second;
  LinearRecipe out;
  out.gemms.fill({format, number, number});
  return out;
}

LinearRecipe read_linear(const Document& value, const Numbers& numbers) {
  if (value.kind() == Document::Kind::text) {
    const auto format = format_named(value.as_text());
    if (!format || numbers.find(name_of(*format)) == numbers.end()) {
      value.complain("fp32, tf32, fp16, bf16, linear (as linear layers), or an object with the three GEMMs");
    }
    return plain(*format, numbers);
  }
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> operands = {
      {{"input", "weight"}, {"gradient", "weight"}, {"gradient", "input"}}};
  LinearRecipe out;
  out.quantised = true;
  for (std::size_t role = 0; role < role_names.size(); ++role) {
    const Document& gemm = value.at(role_names[role]);
    const auto [left, right] = operands[role];
    out.gemms[role] = {format_at(gemm.at("rate")), number_at(gemm, left, numbers), number_at(gemm, right, numbers)};
    gemm.reject_unknown({"rate", left, right});
  }
  value.reject_unknown({role_names.begin(), role_names.end()});
  return out;
}

void name_rates(Recipe& recipe) {
  const auto name = [&](LinearKind kind, GemmRole role) {
    return std::string(name_of(recipe.linear(kind).of(role).rate));
  };
  recipe.gemm_forward = name(LinearKind::linear, GemmRole::forward);
  recipe.gemm_input_gradient = name(LinearKind::linear, GemmRole::input_gradient);
  recipe.gemm_weight_gradient = name(LinearKind::linear, GemmRole::weight_gradient);
  recipe.gemm_output = name(LinearKind::output, GemmRole::forward);
}

void read_gemms(const Document& gemms, const Numbers& numbers, Recipe& recipe) {
  for (std::size_t kind = 0; kind < linear_kinds; ++kind) {
    const Document& value = gemms.at(kind_names[kind]);
    const bool as_linear = kind > 0 && value.kind() == Document::Kind::text && value.as_text() == "linear";
    recipe.linears[kind] = as_linear ? recipe.linears[0] : read_linear(value, numbers);
  }
  gemms.reject_unknown({kind_names.begin(), kind_names.end()});
  name_rates(recipe);
}

void read_passes(const Document& passes, Recipe& recipe) {
  for (const Document& entry : passes.as_list()) {
    CastPass pass;
    pass.name = entry.at("name").as_text();
    pass.tensor = static_cast<CastPass::Tensor>(one_of(entry.at("tensor"), tensor_names));
    pass.when = static_cast<CastPass::When>(one_of(entry.at("before"), when_names));
    if (pass.when == CastPass::When::step && pass.tensor != CastPass::Tensor::weight) {
      entry.at("before").complain("forward, input_gradient or weight_gradient: only weights are made once a step");
    }
    if (pass.when == CastPass::When::forward && pass.tensor == CastPass::Tensor::gradient) {
      entry.at("before").complain("input_gradient or weight_gradient: there is no gradient in the forward pass");
    }
    pass.bytes = bytes_at(entry, "read_bytes") + bytes_at(entry, "written_bytes");
    recipe.sources.emplace_back("passes." + pass.name, entry.at("source").as_text());
    entry.reject_unknown({"name", "tensor", "before", "read_bytes", "written_bytes", "source"});
    recipe.passes.push_back(std::move(pass));
  }
}

void read_core_attention(const Document& file, Recipe& recipe) {
  if (!file.has("core_attention")) return;
  const Document& products = file.at("core_attention");
  CoreAttentionRecipe out;
  out.rate = format_at(products.at("rate"));
  if (out.rate != Format::fp8) products.at("rate").complain("fp8: without core_attention products run in the compute format");
  out.cast_bytes = bytes_at(products, "cast_bytes");
  out.gradient_cast_bytes = bytes_at(products, "gradient_cast_bytes");
  recipe.sources.emplace_back("core_attention", products.at("source").as_text());
  products.reject_unknown({"rate", "cast_bytes", "gradient_cast_bytes", "source"});
  recipe.core_attention = out;
}

void read_high_layers(const Document& file, const Numbers& numbers, Recipe& recipe) {
  recipe.high = plain(*format_named(recipe.compute_format), numbers);
  if (!file.has("high_layers")) return;
  const Document& high = file.at("high_layers");
  recipe.high_first = high.at("first").as_int(0, 1'000'000);
  recipe.high_last = high.at("last").as_int(0, 1'000'000);
  recipe.high = read_linear(high.at("format"), numbers);
  recipe.sources.emplace_back("high_layers", high.at("source").as_text());
  high.reject_unknown({"first", "last", "format", "source"});
}

struct StateKey {
  std::string_view key;
  double Recipe::*member;
};

constexpr StateKey state_keys[] = {
    {"weight", &Recipe::weight_bytes},
    {"weight_copy", &Recipe::weight_copy_bytes},
    {"main_weight", &Recipe::main_weight_bytes},
    {"gradient", &Recipe::gradient_bytes},
    {"moment1", &Recipe::moment1_bytes},
    {"moment2", &Recipe::moment2_bytes},
    {"activation", &Recipe::activation_bytes},
    {"expert_activation_input", &Recipe::expert_activation_input_bytes},
    {"gemm_input", &Recipe::gemm_input_bytes},
    {"gradient_reduce", &Recipe::gradient_reduce_bytes},
    {"parameter_gather", &Recipe::parameter_gather_bytes},
    {"dispatch", &Recipe::dispatch_bytes},
    {"combine", &Recipe::combine_bytes},
    {"gradient_dispatch", &Recipe::gradient_dispatch_bytes},
    {"gradient_combine", &Recipe::gradient_combine_bytes},
};

void read_bytes(const Document& states, Recipe& recipe) {
  std::vector<std::string_view> known;
  for (const StateKey& state : state_keys) {
    recipe.*state.member = bytes_at(states, state.key);
    known.push_back(state.key);
  }
  states.reject_unknown(known);
}

// Muon treats matrices apart: its moments of GEMM weights stand with it, those of `bytes` are of the rest.
void read_optimizer(const Document& optimizer, Recipe& recipe) {
  recipe.optimizer = static_cast<OptimizerKind>(one_of(optimizer.at("kind"), optimizer_names));
  recipe.sources.emplace_back("optimizer", optimizer.at("source").as_text());
  recipe.matrix_moment1_bytes = recipe.moment1_bytes;
  recipe.matrix_moment2_bytes = recipe.moment2_bytes;
  std::vector<std::string_view> known = {"kind", "source"};
  if (recipe.optimizer == OptimizerKind::muon) {
    recipe.matrix_moment1_bytes = bytes_at(optimizer, "matrix_moment1");
    recipe.matrix_moment2_bytes = bytes_at(optimizer, "matrix_moment2");
    recipe.newton_schulz_steps = optimizer.at("newton_schulz_steps").as_int(1, 100);
    recipe.newton_schulz_format = format_at(optimizer.at("newton_schulz_format"));
    recipe.matrix_gather_bytes = bytes_at(optimizer, "matrix_gather");
    known.insert(known.end(), {"matrix_moment1", "matrix_moment2", "newton_schulz_steps", "newton_schulz_format",
                               "matrix_gather"});
  }
  optimizer.reject_unknown(known);
}

void read_sources(const Document& sources, Recipe& recipe) {
  for (const std::string_view each : {"gemms", "bytes", "precision_law"}) sources.at(each).as_text();
  for (const auto& [key, source] : sources.as_object()) recipe.sources.emplace_back(key, source.as_text());
}

// Copies of weights are counted for GEMM weights of layers in few bits, Muon's moments for all GEMM weights: one count of
// them cannot serve both.
void check_together(const Document& file, const Recipe& recipe) {
  const bool apart = recipe.matrix_moment1_bytes != recipe.moment1_bytes ||
                     recipe.matrix_moment2_bytes != recipe.moment2_bytes || recipe.newton_schulz_steps > 0;
  if (apart && recipe.high_first + recipe.high_last > 0) {
    file.at("high_layers").complain("no layers kept high where the optimizer treats matrices apart");
  }
}

}  // namespace

std::string_view name_of(LinearKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }
std::string_view name_of(OptimizerKind kind) { return optimizer_names[static_cast<std::size_t>(kind)]; }

Recipe Recipe::kept_high() const {
  Recipe out = *this;
  for (const auto kind : {LinearKind::linear, LinearKind::attention, LinearKind::expert}) {
    out.linears[static_cast<std::size_t>(kind)] = high;
  }
  out.core_attention.reset();
  out.expert_activation_input_bytes = activation_bytes;
  out.gemm_input_bytes = high.of(GemmRole::weight_gradient).right.stored();
  name_rates(out);
  return out;
}

double Recipe::weight_cast_bytes_of_step() const {
  double sum = 0.0;
  for (const CastPass& pass : passes) sum += pass.when == CastPass::When::step ? pass.bytes : 0.0;
  return sum;
}

std::vector<std::string> Recipe::rates() const {
  std::vector<std::string> out;
  const auto add_rate = [&](Format format) {
    std::string rate(name_of(format));
    if (std::find(out.begin(), out.end(), rate) == out.end()) out.push_back(std::move(rate));
  };
  const auto add = [&](const LinearRecipe& linear) {
    for (const GemmRecipe& gemm : linear.gemms) add_rate(gemm.rate);
  };
  for (const LinearRecipe& each : linears) add(each);
  if (core_attention) add_rate(core_attention->rate);
  if (high_first + high_last > 0) add(high);
  return out;
}

Recipe load_recipe(std::string_view name) {
  return read_recipe(Document::read_json_file(data_file("recipes", name, "--recipe")), name);
}

Recipe read_recipe(const Document& file, std::string_view name) {
  Recipe recipe;
  recipe.name = std::string(name);
  file.at("title").as_text();
  const Numbers numbers = read_numbers(file);
  recipe.compute_format = std::string(name_of(format_at(file.at("compute"))));
  if (numbers.find(recipe.compute_format) == numbers.end()) file.at("compute").complain("fp32, tf32, fp16 or bf16");
  recipe.scaling = scalings[one_of(file.at("scaling"), scalings)];
  read_gemms(file.at("gemms"), numbers, recipe);
  read_passes(file.at("passes"), recipe);
  read_core_attention(file, recipe);
  read_high_layers(file, numbers, recipe);
  read_bytes(file.at("bytes"), recipe);
  read_optimizer(file.at("optimizer"), recipe);
  for (const Document& each : file.at("architectures").as_list()) recipe.architectures.push_back(each.as_text());
  recipe.precision_law = file.at("precision_law").as_text();
  read_sources(file.at("sources"), recipe);
  file.reject_unknown({"title", "numbers", "compute", "scaling", "gemms", "passes", "core_attention", "high_layers", "bytes",
                       "optimizer", "architectures", "precision_law", "sources"});
  check_together(file, recipe);
  return recipe;
}

OptimizerWork optimizer_work(const Recipe& recipe, const OptimizerShare& share) {
  CORE_ASSERT(share.matrices <= share.parameters);
  const double others = share.parameters - share.matrices;
  OptimizerWork work;
  work.states = Bytes{recipe.main_weight_bytes * share.parameters +
                      (recipe.moment1_bytes + recipe.moment2_bytes) * others +
                      (recipe.matrix_moment1_bytes + recipe.matrix_moment2_bytes) * share.matrices};
  const double weight_passes = recipe.main_weight_bytes > 0.0 ? 1.0 : 2.0;
  work.traffic = Bytes{share.parameters * (2.0 * recipe.gradient_bytes + weight_passes * recipe.weight_bytes)} +
                 2.0 * work.states;
  work.flops = Flops{static_cast<double>(recipe.newton_schulz_steps) * share.newton_schulz};
  return work;
}

double newton_schulz_flops(double rows, double columns) {
  const double n = std::min(rows, columns), m = std::max(rows, columns);
  return 4.0 * n * n * m + 2.0 * n * n * n;
}

}  // namespace core
