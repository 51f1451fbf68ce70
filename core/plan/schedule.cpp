#include "core/plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

namespace {

char letter(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::forward: return 'F';
    case Action::Kind::backward: return 'B';
    case Action::Kind::input_gradient: return 'I';
    case Action::Kind::weight_gradient: return 'W';
  }
  CORE_ASSERT(false);
}

std::string text_of(const Action& a) {
  return fmt::format("{}{}{}", a.stage, letter(a.kind), a.micro_batch);
}

std::string text_of(const Action& first, const Action& second) {
  return fmt::format("({}+{})", text_of(first), text_of(second));
}

std::string_view name_of(Placement placement) {
  switch (placement) {
    case Placement::loop: return "loop";
    case Placement::v: return "v";
    case Placement::both_ways: return "both_ways";
  }
  CORE_ASSERT(false);
}

bool is_half(Action::Kind kind) {
  return kind == Action::Kind::input_gradient || kind == Action::Kind::weight_gradient;
}

// --- text ----------------------------------------------------------------------------------------

// A word of line `line`; `whole` is what complaints quote.
Action parse_action(std::string_view word, std::string_view whole, std::int64_t line) {
  const auto refuse = [&] {
    throw InputError(fmt::format(
        "schedule: line {}: found \"{}\", expected an action such as 0F0 (stage, F B I or W, micro-batch) or a pair such as "
        "(0F4+1B0)",
        line, printable(whole)));
  };
  Action action;
  const auto at = word.find_first_of("FBIW");
  if (at == std::string_view::npos) refuse();
  const auto read = [&](std::string_view text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) refuse();
  };
  read(word.substr(0, at), action.stage);
  read(word.substr(at + 1), action.micro_batch);
  switch (word[at]) {
    case 'F': action.kind = Action::Kind::forward; break;
    case 'B': action.kind = Action::Kind::backward; break;
    case 'I': action.kind = Action::Kind::input_gradient; break;
    default: action.kind = Action::Kind::weight_gradient; break;
  }
  return action;
}

// Appends an action, or the two of a pair "(0F4+1B0)".
void parse_word(std::string_view word, std::int64_t line, std::vector<Action>& rank) {
  const auto plus = word.find('+');
  if (word.front() != '(' || word.back() != ')' || plus == std::string_view::npos) {
    rank.push_back(parse_action(word, word, line));
    return;
  }
  rank.push_back(parse_action(word.substr(1, plus - 1), word, line));
  rank.back().with_next = true;
  rank.push_back(parse_action(word.substr(plus + 1, word.size() - plus - 2), word, line));
}

Placement parse_placement(std::string_view word, std::int64_t line) {
  for (const auto placement : {Placement::loop, Placement::v, Placement::both_ways}) {
    if (word == name_of(placement)) return placement;
  }
  throw InputError(fmt::format(
      "schedule: line {}: found placement \"{}\", expected loop, v or both_ways", line, printable(word)));
}

// The words of a line, whatever blanks part them.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view blank = " \t\r";
  std::vector<std::string_view> words;
  for (auto at = line.find_first_not_of(blank); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(blank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blank, end);
  }
  return words;
}

// --- what can run --------------------------------------------------------------------------------

// Which cells of each (stage, micro-batch) were met so far.
class Cells {
 public:
  explicit Cells(const ScheduleTable& t)
      : m_(t.micro_batches), seen_(static_cast<std::size_t>(t.stages() * t.micro_batches), 0) {}
  bool has(Action::Kind kind, std::int64_t stage, std::int64_t micro_batch) const {
    return (seen_[index(stage, micro_batch)] & bit(kind)) != 0;
  }
  bool has(const Action& a) const { return has(a.kind, a.stage, a.micro_batch); }
  void add(const Action& a) { seen_[index(a.stage, a.micro_batch)] |= bit(a.kind); }
  // Whether the gradient of the stage's input is there, which the stage before waits for.
  bool went_back(std::int64_t stage, std::int64_t micro_batch) const {
    return (seen_[index(stage, micro_batch)] & (bit(Action::Kind::backward) | bit(Action::Kind::input_gradient))) != 0;
  }

 private:
  static std::uint8_t bit(Action::Kind kind) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind)); }
  std::size_t index(std::int64_t stage, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(stage * m_ + micro_batch);
  }
  std::int64_t m_;
  std::vector<std::uint8_t> seen_;
};

std::optional<std::string> why_no_sizes(const ScheduleTable& t) {
  if (t.pp < 1 || t.vpp < 1 || t.micro_batches < 1) {
    return fmt::format("pp={} vpp={} and {} micro-batches, expected 1 or more of each", t.pp, t.vpp, t.micro_batches);
  }
  if (static_cast<std::int64_t>(t.ranks.size()) != t.pp) {
    return fmt::format("{} lines, pp={} ranks", t.ranks.size(), t.pp);
  }
  if (t.placement != Placement::loop && t.vpp != 2) {
    return fmt::format("placement {} has two stages a rank, not vpp={}", name_of(t.placement), t.vpp);
  }
  return std::nullopt;
}

// Why a cell may not stand where it stands, given the cells that its rank has before it.
std::optional<std::string> why_not_here(const ScheduleTable& t, const Action& a, std::int64_t rank, const Cells& before) {
  if (a.stage >= t.stages() || a.micro_batch >= t.micro_batches) {
    return fmt::format("{}: outside {} stages and {} micro-batches", text_of(a), t.stages(), t.micro_batches);
  }
  if (const auto home = t.rank_of(a.stage); home != rank) {
    return fmt::format("{} stands on rank {}, stage {} lives on rank {}", text_of(a), rank, a.stage, home);
  }
  if (!t.visits(a.stage, a.micro_batch)) {
    return fmt::format("{}: micro-batch {} goes through stages {} to {}", text_of(a), a.micro_batch,
                       a.stage < t.pp ? t.pp : 0, (a.stage < t.pp ? 2 * t.pp : t.pp) - 1);
  }
  if (before.has(a)) return fmt::format("{} stands twice", text_of(a));
  const auto needs = [&](Action::Kind kind) -> std::optional<std::string> {
    if (before.has(kind, a.stage, a.micro_batch)) return std::nullopt;
    return fmt::format("{} has no {}{}{} before it", text_of(a), a.stage, letter(kind), a.micro_batch);
  };
  const auto excludes = [&](Action::Kind kind) -> std::optional<std::string> {
    if (!before.has(kind, a.stage, a.micro_batch)) return std::nullopt;
    return fmt::format("{} beside {}{}{}: a backward is either whole (B) or in two parts (I and W)", text_of(a), a.stage,
                       letter(kind), a.micro_batch);
  };
  if (a.kind == Action::Kind::forward) return std::nullopt;
  if (auto reason = excludes(is_half(a.kind) ? Action::Kind::backward : Action::Kind::input_gradient)) return reason;
  return needs(a.kind == Action::Kind::weight_gradient ? Action::Kind::input_gradient : Action::Kind::forward);
}

std::optional<std::string> why_no_pair(const Action& a, const Action& b) {
  const auto is_back = [](const Action& x) {
    return x.kind == Action::Kind::backward || x.kind == Action::Kind::input_gradient;
  };
  const bool forward_first = a.kind == Action::Kind::forward && is_back(b);
  if (!forward_first && !(is_back(a) && b.kind == Action::Kind::forward)) {
    return fmt::format("{}: expected a pair of one forward and one backward (B or I)", text_of(a, b));
  }
  if (a.micro_batch == b.micro_batch) {
    return fmt::format("{}: the backward of a micro-batch waits for its forward", text_of(a, b));
  }
  return std::nullopt;
}

std::optional<std::string> why_no_program(const ScheduleTable& t, std::int64_t rank, Cells& seen) {
  const auto& program = t.ranks[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (auto reason = why_not_here(t, program[i], rank, seen)) return reason;
    seen.add(program[i]);
    if (!program[i].with_next) continue;
    if (i + 1 == program.size()) {
      return fmt::format("{} ends rank {}, expected the second of its pair", text_of(program[i]), rank);
    }
    if (program[i + 1].with_next) {
      return fmt::format("{} is in two pairs, expected pairs of two actions", text_of(program[i + 1]));
    }
    if (auto reason = why_no_pair(program[i], program[i + 1])) return reason;
  }
  return std::nullopt;
}

// The first cell that is nowhere.
std::optional<std::string> what_is_missing(const ScheduleTable& t, const Cells& seen) {
  for (std::int64_t s = 0; s < t.stages(); ++s) {
    for (std::int64_t m = 0; m < t.micro_batches; ++m) {
      if (!t.visits(s, m)) continue;
      if (!seen.has(Action::Kind::forward, s, m)) return fmt::format("{}F{} is missing", s, m);
      if (!seen.went_back(s, m)) return fmt::format("{0}B{1} (or {0}I{1} and {0}W{1}) is missing", s, m);
      if (seen.has(Action::Kind::input_gradient, s, m) && !seen.has(Action::Kind::weight_gradient, s, m)) {
        return fmt::format("{}W{} is missing", s, m);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> why_not_complete(const ScheduleTable& t) {
  if (auto reason = why_no_sizes(t)) return reason;
  Cells seen(t);
  for (std::int64_t r = 0; r < t.pp; ++r) {
    if (auto reason = why_no_program(t, r, seen)) return reason;
  }
  return what_is_missing(t, seen);
}

// Whether the inputs that come from other stages are there.
bool is_ready(const ScheduleTable& t, const Action& a, const Cells& done) {
  const std::int64_t s = a.stage, m = a.micro_batch;
  switch (a.kind) {
    case Action::Kind::forward: return t.is_first(s) || done.has(Action::Kind::forward, s - 1, m);
    case Action::Kind::backward:
    case Action::Kind::input_gradient:
      return done.has(Action::Kind::forward, s, m) && (t.is_last(s) || done.went_back(s + 1, m));
    case Action::Kind::weight_gradient: return done.has(Action::Kind::input_gradient, s, m);
  }
  CORE_ASSERT(false);
}

// Runs what a rank can run from `next` on; a pair when both of it can. Whether that was anything.
bool run_on(const ScheduleTable& t, const std::vector<Action>& program, std::size_t& next, Cells& done) {
  const auto begin = next;
  while (next < program.size()) {
    const auto& a = program[next];
    if (!is_ready(t, a, done) || (a.with_next && !is_ready(t, program[next + 1], done))) break;
    if (a.with_next) done.add(program[++next]);
    done.add(a);
    ++next;
  }
  return next != begin;
}

}  // namespace

std::string to_text(const ScheduleTable& table) {
  std::string text;
  if (table.placement != Placement::loop) text += fmt::format("placement {}\n", name_of(table.placement));
  for (const auto& rank : table.ranks) {
    for (std::size_t i = 0; i < rank.size(); ++i) {
      if (i > 0) text += ' ';
      const bool pair = rank[i].with_next && i + 1 < rank.size();
      text += pair ? text_of(rank[i], rank[i + 1]) : text_of(rank[i]);
      if (pair) ++i;
    }
    text += '\n';
  }
  return text;
}

ScheduleTable parse_schedule(std::string_view text) {
  ScheduleTable t;
  bool placed = false;
  std::int64_t line = 0, stages = 0, micro_batches = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (!words.empty() && words.front().front() == '#') continue;
    if (!words.empty() && words.front() == "placement" && !placed && t.ranks.empty()) {
      if (words.size() != 2) {
        throw InputError(fmt::format(
            "schedule: line {}: found {} words, expected \"placement\" and one of loop, v, both_ways", line, words.size()));
      }
      t.placement = parse_placement(words[1], line);
      placed = true;
      continue;
    }
    auto& rank = t.ranks.emplace_back();
    for (const auto word : words) parse_word(word, line, rank);
    for (const auto& a : rank) {
      stages = std::max<std::int64_t>(stages, a.stage + 1);
      micro_batches = std::max<std::int64_t>(micro_batches, std::int64_t{a.micro_batch} + 1);
    }
  }
  t.pp = static_cast<std::int64_t>(t.ranks.size());
  if (t.pp == 0 || stages == 0) throw InputError("schedule: empty, expected a line of actions for each rank");
  if (t.placement != Placement::loop && stages != 2 * t.pp) {
    throw InputError(fmt::format("schedule: {} stages on {} lines, expected {}: placement {} has two stages a rank", stages,
                                 t.pp, 2 * t.pp, name_of(t.placement)));
  }
  if (stages % t.pp != 0) {
    throw InputError(fmt::format("schedule: {} stages on {} lines, expected the same number on each", stages, t.pp));
  }
  if (stages * micro_batches > 100'000'000) {
    throw InputError(fmt::format(
        "schedule: {} stages of {} micro-batches, expected at most 100 million cells", stages, micro_batches));
  }
  t.vpp = stages / t.pp;
  t.micro_batches = micro_batches;
  return t;
}

std::optional<std::string> why_not_executable(const ScheduleTable& table) {
  if (auto reason = why_not_complete(table)) return reason;
  Cells done(table);
  std::vector<std::size_t> next(table.ranks.size(), 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < table.ranks.size(); ++r) {
      moved = run_on(table, table.ranks[r], next[r], done) || moved;
    }
  }
  for (std::size_t r = 0; r < table.ranks.size(); ++r) {
    const auto& program = table.ranks[r];
    if (next[r] == program.size()) continue;
    const auto& a = program[next[r]];
    return fmt::format("deadlock: rank {} waits for the inputs of {} for ever", r,
                       a.with_next ? text_of(a, program[next[r] + 1]) : text_of(a));
  }
  return std::nullopt;
}

std::vector<bool> ends_of_runs(const ScheduleTable& table) {
  std::vector<bool> ends(static_cast<std::size_t>(table.stages() * table.micro_batches), false);
  for (const auto& actions : table.ranks) {
    const Action* before = nullptr;
    const auto end = [&] {
      const auto at = before->stage * static_cast<std::size_t>(table.micro_batches) + before->micro_batch;
      ends[at] = true;
    };
    for (const auto& a : actions) {
      if (a.kind != Action::Kind::backward) continue;
      if (before != nullptr && before->stage != a.stage) end();
      before = &a;
    }
    if (before != nullptr) end();
  }
  return ends;
}

std::vector<std::int64_t> most_in_flight(const ScheduleTable& table) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(table.stages()), 0), most(now);
  for (const auto& rank : table.ranks) {
    for (const auto& a : rank) {
      auto& n = now[a.stage];
      if (a.kind == Action::Kind::forward) {
        most[a.stage] = std::max(most[a.stage], ++n);
      } else if (a.kind != Action::Kind::input_gradient) {
        --n;  // I leaves what W needs
      }
    }
  }
  return most;
}

std::int64_t ScheduleTable::rank_of(std::int64_t stage) const {
  switch (placement) {
    case Placement::loop: return stage % pp;
    case Placement::v: return stage < pp ? stage : 2 * pp - 1 - stage;
    case Placement::both_ways: return stage < pp ? stage : 2 * pp - 1 - stage;
  }
  CORE_ASSERT(false);
}

bool ScheduleTable::is_first(std::int64_t stage) const {
  return stage == 0 || (placement == Placement::both_ways && stage == pp);
}

bool ScheduleTable::is_last(std::int64_t stage) const {
  return stage == stages() - 1 || (placement == Placement::both_ways && stage == pp - 1);
}

bool ScheduleTable::visits(std::int64_t stage, std::int64_t micro_batch) const {
  return placement != Placement::both_ways || (stage < pp) == (micro_batch < (micro_batches + 1) / 2);
}

std::vector<std::int64_t> model_stages_of_rank(Placement placement, std::int64_t pp, std::int64_t stages, std::int64_t rank) {
  std::vector<std::int64_t> out;
  if (placement == Placement::loop) {
    for (auto s = rank; s < stages; s += pp) out.push_back(s);
    return out;
  }
  const auto other = placement == Placement::v ? 2 * pp - 1 - rank : pp - 1 - rank;
  if (other == rank) return {rank, rank};
  return {std::min(rank, other), std::max(rank, other)};
}

const Schedule* find_schedule(std::string_view name) {
  for (const auto* s : schedules::all()) {
    if (s->name == name) return s;
  }
  return nullptr;
}

std::int64_t steady_round(const Schedule& schedule, std::int64_t pp, std::int64_t micro_batches) {
  const auto round = schedule.round_micro_batches(pp);
  return round > 0 && micro_batches >= 2 * pp && micro_batches % round == 0 ? round : 0;
}

}  // namespace core
