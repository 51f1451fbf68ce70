#include "core/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/io/document.h"
#include "core/plan/dimension.h"
#include "core/plan/schedule.h"

namespace core {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 20;  // products of three stay far from overflow

struct Word {
  std::string_view key, value;
  bool has_value = false;
};

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::size_t i = 0;
  while (i < text.size()) {
    const auto begin = text.find_first_not_of(" \t\r\n,", i);
    if (begin == std::string_view::npos) break;
    auto end = text.find_first_of(" \t\r\n,", begin);
    if (end == std::string_view::npos) end = text.size();
    const auto word = text.substr(begin, end - begin);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) {
      words.push_back({word, {}, false});
    } else {
      words.push_back({word.substr(0, equals), word.substr(equals + 1), true});
    }
    i = end;
  }
  return words;
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
    if (word.key == "tp") plan_.tp = positive(word.value);
    else if (word.key == "pp") read_pp();
    else if (word.key == "vpp") plan_.vpp = positive(word.value);
    else if (word.key == "dp") plan_.dp = positive(word.value), out_.has_dp = true;
    else if (word.key == "zero") plan_.zero = static_cast<int>(ranged(word.value, 0, 3)), out_.has_zero = true;
    else if (word.key == "mb") plan_.micro_batch = positive(word.value);
    else if (word.key == "gbs") plan_.global_batch = positive(word.value), out_.has_global_batch = true;
    else if (word.key == "schedule") read_schedule();
    else if (word.key == "recompute") read_recompute();
    else if (word.key == "layers") read_layers();
    else if (word.key == "overlap") read_overlap();
    else if (word.key == "recipe") plan_.recipe = std::string(word.value), out_.has_recipe = true;
    else if (word.key == "cp" || word.key == "ep" || word.key == "etp") only(word.value, "1");
    else if (word.key == "offload") only(word.value, "none");
    else throw InputError(fmt::format("{}: {}: unknown key{}", what_, printable(word.key), hint()));
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    throw InputError(
        fmt::format("{}: {}: found \"{}\", expected {}", what_, word_.key, printable(word_.value), expected));
  }
  std::string hint() const {
    static const std::vector<std::string> keys = {"tp", "sp", "cp", "pp", "vpp", "ep", "etp", "dp", "zero",
        "mb", "gbs", "schedule", "recompute", "layers", "overlap", "offload", "recipe"};
    const auto near = nearest_name(word_.key, keys);
    return near ? fmt::format("; did you mean {}?", *near)
                : fmt::format("; known keys are {}", fmt::join(keys, " "));
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
  void only(std::string_view value, std::string_view allowed) const {
    if (value != allowed) refuse(fmt::format("{} (other values are not supported yet)", allowed));
  }
  void read_sp() {
    if (word_.has_value) plan_.sp = ranged(word_.value, 0, 1) == 1;
    else plan_.sp = true;
  }
  void read_pp() {
    const auto x = word_.value.find('x');
    plan_.pp = positive(word_.value.substr(0, x));
    if (x == std::string_view::npos) return;
    if (!seen_.emplace("vpp").second) refuse("one of pp=4x2 and vpp=2, not both");
    plan_.vpp = positive(word_.value.substr(x + 1));
    out_.keys.emplace_back("vpp");
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
    else refuse("none, selective, full or full:N");
    if (colon == std::string_view::npos) return;
    if (kind != "full") refuse("none, selective, full or full:N");
    plan_.recompute_layers = positive(word_.value.substr(colon + 1));
  }
  void read_layers() {
    out_.has_layout = true;
    if (word_.value == "even") { plan_.layout = Layout::even; return; }
    if (word_.value == "slots") { plan_.layout = Layout::slots; return; }
    plan_.layout = Layout::given;
    std::string_view rest = word_.value;
    while (true) {
      const auto slash = rest.find('/');
      plan_.layers.push_back(ranged(rest.substr(0, slash), 0, 1'000'000));
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
  }
  void read_overlap() {
    const auto v = word_.value;
    if (v != "both" && v != "gradients" && v != "parameters" && v != "none") {
      refuse("both, gradients, parameters or none");
    }
    plan_.overlap_gradients = v == "both" || v == "gradients";
    plan_.overlap_parameters = v == "both" || v == "parameters";
  }

  std::string_view what_;
  PlanText& out_;
  ParallelPlan& plan_;
  Word word_;
  std::set<std::string_view> seen_;
};

std::string recompute_text(const ParallelPlan& plan) {
  if (plan.recompute == Recompute::full && plan.recompute_layers > 0) {
    return fmt::format("full:{}", plan.recompute_layers);
  }
  return std::string(name_of(plan.recompute));
}

std::string_view overlap_text(const ParallelPlan& plan) {
  if (plan.overlap_gradients) return plan.overlap_parameters ? "both" : "gradients";
  return plan.overlap_parameters ? "parameters" : "none";
}

}  // namespace

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none: return "none";
    case Recompute::selective: return "selective";
    case Recompute::full: return "full";
  }
  CORE_ASSERT(false);
}

std::string to_text(const ParallelPlan& plan) {
  std::string layers = plan.layout == Layout::even    ? "even"
                       : plan.layout == Layout::slots ? "slots"
                                                      : fmt::format("{}", fmt::join(plan.layers, "/"));
  return fmt::format(
      "tp={}{} cp=1 pp={}{} ep=1 etp=1 dp={} zero={} mb={} gbs={} schedule={} recompute={} layers={} overlap={} "
      "offload=none recipe={}",
      plan.tp,
      plan.sp ? " sp" : "",
      plan.pp,
      plan.vpp > 1 ? fmt::format("x{}", plan.vpp) : "",
      plan.dp,
      plan.zero,
      plan.micro_batch,
      plan.global_batch,
      plan.schedule,
      recompute_text(plan),
      layers,
      overlap_text(plan),
      plan.recipe);
}

PlanText parse_plan(std::string_view text, std::string_view what) {
  PlanText out;
  Reader reader(what, out);
  for (const auto& word : words_of(text)) reader.read(word);
  if (!out.has_schedule && out.plan.vpp > 1) out.plan.schedule = "interleaved";
  return out;
}

ParallelPlan complete_plan(const PlanText& text,
                           const ModelSpec& model,
                           std::int64_t gpus,
                           std::int64_t global_batch) {
  ParallelPlan plan = text.plan;
  if (!text.has_dp && plan.tp * plan.pp <= gpus) plan.dp = gpus / (plan.tp * plan.pp);
  if (!text.has_global_batch) plan.global_batch = global_batch;
  if (!text.has_zero) plan.zero = plan.dp > 1 ? 1 : 0;
  if (!text.has_layout) {
    plan.layout = model.layers() % plan.stages() == 0 ? Layout::even : Layout::slots;
  }
  return plan;
}

std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers) {
  const auto n = plan.stages();
  if (plan.layout == Layout::given) return plan.layers;
  if (plan.layout == Layout::even) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(n), layers / n);
  }
  const auto slots = layers + 2;
  std::vector<std::int64_t> out(static_cast<std::size_t>(n), slots / n);
  // What is left over goes to the middle from the back: early stages hold the most activations, and the
  // last has the output layer.
  auto left = slots % n;
  for (auto s = n - 2; left > 0; --s, --left) out[static_cast<std::size_t>(s)] += 1;
  out.front() -= 1;
  out.back() -= 1;
  return out;
}

std::optional<std::string> why_not(const ModelSpec& model,
                                   const ParallelPlan& plan,
                                   std::int64_t gpus,
                                   std::int64_t seq) {
  if (plan.gpus() != gpus) {
    return fmt::format("tp={} x pp={} x dp={} is {} GPUs, not the {} asked for",
                       plan.tp, plan.pp, plan.dp, plan.gpus(), gpus);
  }
  for (const auto* dimension : dimensions::all()) {
    if (auto reason = dimension->why_not(model, plan)) return reason;
  }
  if (plan.sp && plan.tp > 1 && seq % plan.tp != 0) {
    return fmt::format("sequence {} does not divide by tp={} (sequence parallel)", seq, plan.tp);
  }
  const auto* schedule = find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  return schedule->why_not(plan.pp, plan.vpp, plan.micro_batches());
}

std::vector<std::string> notes_on(const ParallelPlan& plan) {
  std::vector<std::string> notes;
  if (plan.sp && plan.tp == 1) notes.emplace_back("sp does nothing at tp=1");
  if (plan.zero > 0 && plan.dp == 1) {
    notes.push_back(fmt::format("zero={} does nothing at dp=1: there is nobody to share states with", plan.zero));
  }
  if (plan.recompute_layers > 0 && plan.recompute != Recompute::full) {
    notes.emplace_back("a number of layers to recompute does nothing without recompute=full");
  }
  return notes;
}

}  // namespace core
