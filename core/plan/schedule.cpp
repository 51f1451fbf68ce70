#include "core/plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

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

Action parse_action(std::string_view word, std::int64_t line) {
  const auto refuse = [&] {
    throw InputError(fmt::format(
        "schedule: line {}: found \"{}\", expected an action such as 0F0 (stage, F B I or W, micro-batch)", line, printable(word)));
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

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// Cells done so far, by stage and micro-batch.
class Done {
 public:
  explicit Done(const ScheduleTable& t)
      : stages_(t.stages()), m_(t.micro_batches), done_(static_cast<std::size_t>(2 * stages_ * m_)) {}
  std::size_t index(bool backward, std::int64_t stage, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(((backward ? stages_ : 0) + stage) * m_ + micro_batch);
  }
  bool ready(const Action& a) const {
    const std::int64_t s = a.stage, m = a.micro_batch;
    if (a.kind == Action::Kind::forward) return s == 0 || done_[index(false, s - 1, m)];
    return done_[index(false, s, m)] && (s == stages_ - 1 || done_[index(true, s + 1, m)]);
  }
  bool is_done(const Action& a) const {
    return done_[index(a.kind != Action::Kind::forward, a.stage, a.micro_batch)];
  }
  void finish(const Action& a) {
    done_[index(a.kind != Action::Kind::forward, a.stage, a.micro_batch)] = true;
  }

 private:
  std::int64_t stages_, m_;
  std::vector<bool> done_;
};

std::optional<std::string> why_not_complete(const ScheduleTable& t) {
  if (static_cast<std::int64_t>(t.ranks.size()) != t.pp) {
    return fmt::format("{} lines, pp={} ranks", t.ranks.size(), t.pp);
  }
  Done seen(t);
  std::int64_t cells = 0;
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    for (const auto& a : t.ranks[r]) {
      if (a.kind != Action::Kind::forward && a.kind != Action::Kind::backward) {
        return fmt::format("{}: split backward cells are not supported yet", text_of(a));
      }
      if (a.stage >= t.stages() || a.micro_batch >= t.micro_batches) {
        return fmt::format("{}: outside {} stages and {} micro-batches", text_of(a), t.stages(), t.micro_batches);
      }
      if (a.stage % t.pp != static_cast<std::int64_t>(r)) {
        return fmt::format("{} stands on rank {}, stage {} lives on rank {}", text_of(a), r, a.stage, a.stage % t.pp);
      }
      if (seen.is_done(a)) return fmt::format("{} stands twice", text_of(a));
      seen.finish(a);
      ++cells;
    }
  }
  const auto expected = 2 * t.stages() * t.micro_batches;
  if (cells != expected) return fmt::format("{} cells, expected {}", cells, expected);
  return std::nullopt;
}

}  // namespace

std::string to_text(const ScheduleTable& table) {
  std::string text;
  for (const auto& rank : table.ranks) {
    for (std::size_t i = 0; i < rank.size(); ++i) {
      if (i > 0) text += ' ';
      text += text_of(rank[i]);
    }
    text += '\n';
  }
  return text;
}

ScheduleTable parse_schedule(std::string_view text) {
  ScheduleTable t;
  std::int64_t line = 0, stages = 0, micro_batches = 0;
  for (const auto row : split(text, '\n')) {
    ++line;
    auto& rank = t.ranks.emplace_back();
    for (const auto word : split(row, ' ')) {
      if (word.empty()) continue;
      const auto action = parse_action(word, line);
      stages = std::max<std::int64_t>(stages, action.stage + 1);
      micro_batches = std::max<std::int64_t>(micro_batches, std::int64_t{action.micro_batch} + 1);
      rank.push_back(action);
    }
  }
  t.pp = static_cast<std::int64_t>(t.ranks.size());
  if (t.pp == 0 || stages == 0) throw InputError("schedule: empty, expected a line of actions for each rank");
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
  Done done(table);
  std::vector<std::size_t> next(table.ranks.size(), 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < table.ranks.size(); ++r) {
      while (next[r] < table.ranks[r].size() && done.ready(table.ranks[r][next[r]])) {
        done.finish(table.ranks[r][next[r]++]);
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < table.ranks.size(); ++r) {
    if (next[r] < table.ranks[r].size()) {
      return fmt::format("deadlock: rank {} waits for the inputs of {} for ever", r, text_of(table.ranks[r][next[r]]));
    }
  }
  return std::nullopt;
}

std::vector<std::int64_t> most_in_flight(const ScheduleTable& table) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(table.stages()), 0), most(now);
  for (const auto& rank : table.ranks) {
    for (const auto& a : rank) {
      auto& n = now[a.stage];
      if (a.kind == Action::Kind::forward) {
        most[a.stage] = std::max(most[a.stage], ++n);
      } else if (a.kind != Action::Kind::weight_gradient) {
        --n;
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

}  // namespace core
