// The text form of a plan: "tp=8 pp=4x2 dp=2 ...".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "core/error.h"
#include "core/io/document.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace core {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 20;  // products of three stay far from overflow

struct NamedModule {
  std::string_view name;
  Modules module;
};
constexpr std::array<NamedModule, 6> named_modules = {{{"core_attention", modules::core_attention},
                                                       {"norm", modules::norm},
                                                       {"activation", modules::activation},
                                                       {"mla_up", modules::mla_up},
                                                       {"mlp", modules::mlp},
                                                       {"moe", modules::moe}}};

constexpr std::array<std::string_view, 26> keys = {
    "tp",          "sp",           "cp", "pp",  "vpp",      "ep",        "etp",    "dp",      "zero",    "shard",
    "expert-zero", "expert-shard", "mb", "gbs", "schedule", "recompute", "layers", "overlap", "offload", "dispatch",
    "collectives", "reduce",       "loss",        "graphs",       "sync", "recipe"};

struct Word {
  std::string_view key, value;
  bool has_value = false;
};

bool is_key_start(std::string_view rest) {
  const auto end = rest.find_first_of(" \t\r\n,=");
  const auto word = rest.substr(0, end);
  return word == "sp" || (end != std::string_view::npos && rest[end] == '=');
}

// Words stand between blanks or commas; a comma inside a value ("p:8,g:8") does not end it.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::size_t i = 0;
  while (i < text.size()) {
    const auto begin = text.find_first_not_of(" \t\r\n,", i);
    if (begin == std::string_view::npos) break;
    auto end = text.find_first_of(" \t\r\n,", begin);
    while (end != std::string_view::npos && text[end] == ',' && end + 1 < text.size() && text[end + 1] != ' ' &&
           text.substr(begin, end - begin).find("shard=") != std::string_view::npos && !is_key_start(text.substr(end + 1))) {
      end = text.find_first_of(" \t\r\n,", end + 1);
    }
    if (end == std::string_view::npos) end = text.size();
    const auto word = text.substr(begin, end - begin);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) words.push_back({word, {}, false});
    else words.push_back({word.substr(0, equals), word.substr(equals + 1), true});
    i = end;
  }
  return words;
}

std::vector<std::string_view> parts_of(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads one plan text; the members are the keys' meanings.
class Reader {
 public:
  Reader(std::string_view what, PlanText& out) : what_(what), out_(out), plan_(out.plan) {}

  void read(const Word& word) {
    if (!seen_.emplace(word.key).second) {
      throw InputError(fmt::format("{}: {}: given twice, expected once", what_, printable(word.key)));
    }
    word_ = word;
    out_.keys.emplace_back(word.key);
    if (word.key == "sp") return read_sp();
    if (!word.has_value) {
      throw InputError(fmt::format("{}: found \"{}\", expected key=value{}", what_, printable(word.key), hint()));
    }
    if (!read_degree() && !read_states() && !read_choice()) {
      throw InputError(fmt::format("{}: {}: unknown key{}", what_, printable(word.key), hint()));
    }
  }

 private:
  bool read_degree() {
    const auto key = word_.key;
    if (key == "tp") plan_.tp = positive(word_.value);
    else if (key == "cp") read_cp();
    else if (key == "pp") read_pp();
    else if (key == "vpp") plan_.vpp = positive(word_.value);
    else if (key == "ep") plan_.ep = positive(word_.value);
    else if (key == "etp") plan_.etp = positive(word_.value);
    else if (key == "dp") plan_.dp = positive(word_.value), out_.has_dp = true;
    else if (key == "mb") plan_.micro_batch = positive(word_.value);
    else if (key == "gbs") plan_.global_batch = positive(word_.value), out_.has_global_batch = true;
    else return false;
    return true;
  }
  bool read_states() {
    const auto key = word_.key;
    if (key == "zero") {
      if (out_.plan.shard != ShardGroups{} || seen_.contains("shard")) refuse("one of zero=N and shard=..., not both");
      plan_.zero = static_cast<int>(ranged(word_.value, 0, 3)), out_.has_zero = true;
    } else if (key == "expert-zero") {
      plan_.expert_zero = static_cast<int>(ranged(word_.value, 0, 3));
    } else if (key == "shard") {
      if (out_.has_zero) refuse("one of zero=N and shard=..., not both");
      plan_.zero = read_shard(plan_.shard, out_.node);
      out_.has_zero = true;
    } else if (key == "expert-shard") {
      if (plan_.expert_zero) refuse("one of expert-zero=N and expert-shard=..., not both");
      plan_.expert_zero = read_shard(plan_.expert_shard, out_.expert_node);
    } else if (key == "offload") {
      read_offload();
    } else {
      return false;
    }
    return true;
  }
  void read_graphs() {
    plan_.graphs = static_cast<CudaGraphs>(
        choice({name_of(CudaGraphs::none), name_of(CudaGraphs::layers), name_of(CudaGraphs::attention),
                name_of(CudaGraphs::router), name_of(CudaGraphs::attention_router)}));
  }
  bool read_choice() {
    const auto key = word_.key;
    if (key == "schedule") read_schedule();
    else if (key == "recompute") read_recompute();
    else if (key == "layers") read_layers();
    else if (key == "overlap") read_overlap();
    else if (key == "dispatch") plan_.dispatch = choice({"nccl", "one-sided"}) == 0 ? Dispatch::nccl : Dispatch::one_sided;
    else if (key == "collectives") read_collectives();
    else if (key == "reduce") plan_.reduce_runs = choice({"each", "runs"}) == 1;
    else if (key == "loss") plan_.loss = static_cast<Loss>(choice({"unfused", "fused", "linear"}));
    else if (key == "graphs") read_graphs();
    else if (key == "sync") plan_.post_validation = choice({"before", "post"}) == 1;
    else if (key == "recipe") plan_.recipe = std::string(word_.value), out_.has_recipe = true;
    else return false;
    return true;
  }

  [[noreturn]] void refuse(std::string_view expected) const {
    throw InputError(
        fmt::format("{}: {}: found \"{}\", expected {}", what_, word_.key, printable(word_.value), expected));
  }
  std::string hint() const {
    static const std::vector<std::string> known(keys.begin(), keys.end());
    const auto near = nearest_name(word_.key, known);
    return near ? fmt::format("; did you mean {}?", *near)
                : fmt::format("; known keys are {}", fmt::join(known, " "));
  }
  std::int64_t ranged(std::string_view text, std::int64_t low, std::int64_t high) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
      refuse(high == largest ? "a positive whole number" : fmt::format("a whole number from {} to {}", low, high));
    }
    return value;
  }
  std::int64_t positive(std::string_view text) const { return ranged(text, 1, largest); }
  std::size_t choice(std::initializer_list<std::string_view> names) const {
    const auto found = std::find(names.begin(), names.end(), word_.value);
    if (found == names.end()) refuse(fmt::format("{}", fmt::join(names, " or ")));
    return static_cast<std::size_t>(found - names.begin());
  }

  void read_sp() {
    if (word_.has_value) plan_.sp = ranged(word_.value, 0, 1) == 1;
    else plan_.sp = true;
  }
  void read_collectives() {
    plan_.collectives = static_cast<Collectives>(
        choice({name_of(Collectives::flat), name_of(Collectives::hierarchical), name_of(Collectives::overlapping)}));
  }
  void read_cp() {
    constexpr std::string_view expected = "a number of ranks, and how: 4, 4:ring, 4:all-gather, 4:ulysses, 4:ring:unbalanced";
    const auto parts = parts_of(word_.value, ':');
    plan_.cp = positive(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i] == "ring") plan_.cp_kind = ContextParallel::ring;
      else if (parts[i] == "all-gather") plan_.cp_kind = ContextParallel::all_gather;
      else if (parts[i] == "ulysses") plan_.cp_kind = ContextParallel::ulysses;
      else if (parts[i] == "unbalanced") plan_.cp_balanced = false;
      else refuse(expected);
    }
  }
  void read_pp() {
    const auto x = word_.value.find('x');
    plan_.pp = positive(word_.value.substr(0, x));
    if (x == std::string_view::npos) return;
    if (!seen_.emplace("vpp").second) refuse("one of pp=4x2 and vpp=2, not both");
    plan_.vpp = positive(word_.value.substr(x + 1));
    out_.keys.emplace_back("vpp");
  }
  // Groups of the states; returns the level of ZeRO that they amount to.
  int read_shard(ShardGroups& groups, PlanText::Nodes& node) {
    constexpr std::string_view expected = "p:GROUP,g:GROUP,o:GROUP with groups none, node, all or a number of ranks";
    const auto parts = parts_of(word_.value, ',');
    if (parts.size() != 3) refuse(expected);
    int level = 0;
    const auto read = [&](std::string_view part, char letter, int shares, std::optional<std::int64_t>& ranks, bool& is_node) {
      if (part.size() < 3 || part[0] != letter || part[1] != ':') refuse(expected);
      const auto group = part.substr(2);
      if (group == "none") {
        if (level > 0) refuse("the groups of o, g and p from the largest to the smallest: what is shared before must be after");
        return;
      }
      level = std::max(level, shares);
      if (group == "node") is_node = true;
      else if (group != "all") ranks = ranged(group, 1, largest);
    };
    read(parts[0], 'p', 3, groups.parameters, node.parameters);
    read(parts[1], 'g', 2, groups.gradients, node.gradients);
    read(parts[2], 'o', 1, groups.optimizer, node.optimizer);
    return level;
  }
  void read_offload() {
    if (word_.value == "none") return;
    for (const auto part : parts_of(word_.value, '+')) {
      if (part == "optimizer") plan_.offload.optimizer = true;
      else if (part == "weights") plan_.offload.weights = true;
      else if (part == "activations") plan_.offload.activations = true;
      else refuse("none, or optimizer, weights and activations joined with +");
    }
  }
  void read_schedule() {
    if (find_schedule(word_.value) == nullptr) {
      std::vector<std::string> names;
      for (const auto* s : schedules::all()) names.emplace_back(s->name);
      refuse(fmt::format("one of {}", fmt::join(names, ", ")));
    }
    plan_.schedule = std::string(word_.value);
    out_.has_schedule = true;
  }
  void read_recompute() {
    const auto colon = word_.value.find(':');
    const auto kind = word_.value.substr(0, colon);
    if (kind == "none") plan_.recompute = Recompute::none;
    else if (kind == "selective") plan_.recompute = Recompute::selective;
    else if (kind == "full") plan_.recompute = Recompute::full;
    else read_modules(kind);
    if (colon == std::string_view::npos) return;
    if (kind != "full") refuse("none, selective, full, full:N or modules joined with +");
    plan_.recompute_layers = positive(word_.value.substr(colon + 1));
  }
  void read_modules(std::string_view text) {
    for (const auto part : parts_of(text, '+')) {
      const auto found = std::find_if(named_modules.begin(), named_modules.end(), [&](const auto& m) { return m.name == part; });
      if (found == named_modules.end()) {
        std::vector<std::string_view> names;
        for (const auto& m : named_modules) names.push_back(m.name);
        refuse(fmt::format("none, selective, full, full:N or modules joined with +: {}", fmt::join(names, ", ")));
      }
      plan_.recompute_modules |= found->module;
    }
    plan_.recompute = Recompute::modules;
    if (plan_.recompute_modules == modules::core_attention) {
      plan_.recompute = Recompute::selective;
      plan_.recompute_modules = 0;
    }
  }
  void read_layers() {
    out_.has_layout = true;
    if (word_.value == "even") { plan_.layout = Layout::even; return; }
    if (word_.value == "slots") { plan_.layout = Layout::slots; return; }
    plan_.layout = Layout::given;
    for (const auto part : parts_of(word_.value, '/')) plan_.layers.push_back(ranged(part, 0, 1'000'000));
  }
  void read_overlap() {
    plan_.overlap_gradients = plan_.overlap_parameters = false;
    for (const auto part : parts_of(word_.value, '+')) {
      if (part == "both") plan_.overlap_gradients = plan_.overlap_parameters = true;
      else if (part == "gradients") plan_.overlap_gradients = true;
      else if (part == "parameters") plan_.overlap_parameters = true;
      else if (part == "tensor") plan_.overlap_tensor = true;
      else if (part == "experts") plan_.overlap_experts = true;
      else if (part != "none") refuse("both, gradients, parameters or none, and tensor and experts joined with +");
    }
  }

  std::string_view what_;
  PlanText& out_;
  ParallelPlan& plan_;
  Word word_;
  std::set<std::string_view> seen_;
};

std::string recompute_text(const ParallelPlan& plan) {
  if (plan.recompute == Recompute::modules) return modules_text(plan.recompute_modules);
  if (plan.recompute == Recompute::full && plan.recompute_layers > 0) {
    return fmt::format("full:{}", plan.recompute_layers);
  }
  return std::string(name_of(plan.recompute));
}

std::string overlap_text(const ParallelPlan& plan) {
  std::string text = plan.overlap_gradients ? (plan.overlap_parameters ? "both" : "gradients")
                     : plan.overlap_parameters ? "parameters"
                                               : "";
  const auto join = [&](bool there, std::string_view word) {
    if (there) text.append(text.empty() ? "" : "+").append(word);
  };
  join(plan.overlap_tensor, "tensor");
  join(plan.overlap_experts, "experts");
  return text.empty() ? "none" : text;
}

std::string cp_text(const ParallelPlan& plan) {
  if (plan.cp == 1) return "1";
  return fmt::format("{}:{}{}", plan.cp, name_of(plan.cp_kind), plan.cp_balanced ? "" : ":unbalanced");
}

}  // namespace

std::string offload_text(const Offload& offload) {
  std::string text;
  const auto join = [&](bool there, std::string_view word) {
    if (there) text.append(text.empty() ? "" : "+").append(word);
  };
  join(offload.optimizer, "optimizer");
  join(offload.weights, "weights");
  join(offload.activations, "activations");
  return text.empty() ? "none" : text;
}

namespace {

std::string shard_text(std::string_view key, std::string_view short_key, int zero, const ShardGroups& groups) {
  if (groups == ShardGroups{}) return fmt::format("{}={}", short_key, zero);
  const auto group = [&](int from, const std::optional<std::int64_t>& ranks) {
    return zero < from ? std::string("none") : ranks ? std::to_string(*ranks) : std::string("all");
  };
  return fmt::format("{}=p:{},g:{},o:{}", key, group(3, groups.parameters), group(2, groups.gradients),
                     group(1, groups.optimizer));
}

// What is said only where it is not the default.
std::string rest_text(const ParallelPlan& plan) {
  std::string text;
  if (plan.expert_zero) text += " " + shard_text("expert-shard", "expert-zero", *plan.expert_zero, plan.expert_shard);
  if (plan.dispatch == Dispatch::one_sided) text += " dispatch=one-sided";
  if (plan.collectives != Collectives::flat) text += fmt::format(" collectives={}", name_of(plan.collectives));
  if (plan.reduce_runs) text += " reduce=runs";
  if (plan.loss != Loss::unfused) text += plan.loss == Loss::fused ? " loss=fused" : " loss=linear";
  if (plan.graphs != CudaGraphs::none) text += " graphs=" + std::string(name_of(plan.graphs));
  if (plan.post_validation) text += " sync=post";
  return text;
}

}  // namespace

std::string modules_text(Modules set) {
  std::string text;
  for (const auto& m : named_modules) {
    if ((set & m.module) != 0) text.append(text.empty() ? "" : "+").append(m.name);
  }
  return text.empty() ? "none" : text;
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none: return "none";
    case Recompute::selective: return "selective";
    case Recompute::full: return "full";
    case Recompute::modules: return "modules";
  }
  CORE_ASSERT(false);
}

std::string_view name_of(ContextParallel kind) {
  switch (kind) {
    case ContextParallel::ring: return "ring";
    case ContextParallel::all_gather: return "all-gather";
    case ContextParallel::ulysses: return "ulysses";
  }
  CORE_ASSERT(false);
}

std::string_view name_of(CudaGraphs graphs) {
  switch (graphs) {
    case CudaGraphs::none: return "none";
    case CudaGraphs::layers: return "layers";
    case CudaGraphs::attention: return "attention";
    case CudaGraphs::router: return "router";
    case CudaGraphs::attention_router: return "attention+router";
  }
  CORE_ASSERT(false);
}

std::string_view name_of(Collectives collectives) {
  switch (collectives) {
    case Collectives::flat: return "flat";
    case Collectives::hierarchical: return "hierarchical";
    case Collectives::overlapping: return "overlapping";
  }
  CORE_ASSERT(false);
}

std::string to_text(const ParallelPlan& plan) {
  const std::string layers = plan.layout == Layout::even    ? "even"
                             : plan.layout == Layout::slots ? "slots"
                                                            : fmt::format("{}", fmt::join(plan.layers, "/"));
  return fmt::format(
      "tp={}{} cp={} pp={}{} ep={} etp={} dp={} {} mb={} gbs={} schedule={} recompute={} layers={} overlap={} "
      "offload={} recipe={}{}",
      plan.tp,
      plan.sp ? " sp" : "",
      cp_text(plan),
      plan.pp,
      plan.vpp > 1 ? fmt::format("x{}", plan.vpp) : "",
      plan.ep,
      plan.etp,
      plan.dp,
      shard_text("shard", "zero", plan.zero, plan.shard),
      plan.micro_batch,
      plan.global_batch,
      plan.schedule,
      recompute_text(plan),
      layers,
      overlap_text(plan),
      offload_text(plan.offload),
      plan.recipe,
      rest_text(plan));
}

bool PlanText::has(std::string_view key) const { return std::find(keys.begin(), keys.end(), key) != keys.end(); }

PlanText parse_plan(std::string_view text, std::string_view what) {
  PlanText out;
  Reader reader(what, out);
  for (const auto& word : words_of(text)) reader.read(word);
  if (!out.has_schedule && out.plan.vpp > 1) out.plan.schedule = "interleaved";
  return out;
}

}  // namespace core
