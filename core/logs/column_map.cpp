#include "core/logs/column_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/name_words.h"
#include "core/logs/variables.h"

namespace core {

namespace {

constexpr std::size_t most_named = 40;

// What the wanted variables may be derived from, and what tells runs and steps apart.
constexpr std::string_view helpers[] = {
    "N", "D", "C", "U", "epochs", "B", "batch_seqs", "seq_len", "step", "steps", "run", "lr"};

struct Candidate {
  std::size_t column;
  ColumnMeaning meaning;
};

// The name by which columns are known that hold a variable of a law.
std::string_view name_of(std::string_view variable) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"P_w", "bits_w"}, {"P_a", "bits_a"}, {"P_kv", "bits_kv"}};
  for (const auto& [of_law, name] : names) {
    if (of_law == variable) return name;
  }
  return variable;
}

std::vector<Candidate> candidates_for(const std::string& variable,
                                      const std::vector<std::string>& header,
                                      const std::vector<std::optional<ColumnMeaning>>& meanings) {
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == variable)
      found.push_back({i, {variable, 1.0, {}, false, -1}});
    else if (meanings[i] && meanings[i]->variable == name_of(variable))
      found.push_back({i, *meanings[i]});
    else if (words_of(header[i]) == words_of(variable))
      found.push_back({i, {variable, 1.0, {}, false, 99}});
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.meaning.rank < b.meaning.rank;
  });
  return found;
}

bool is_active(const Candidate& candidate) {
  return candidate.meaning.convention.find("active") != std::string::npos;
}

// Two columns that could both be meant: names as good, or counts of all and of active parameters
// where the law does not say which.
bool is_ambiguous(const std::vector<Candidate>& found, const std::string& N_convention) {
  if (found.size() < 2) return false;
  const auto& best = found[0].meaning;
  if (best.rank == found[1].meaning.rank && best.convention == found[1].meaning.convention)
    return true;
  if (best.variable != "N") return best.rank == found[1].meaning.rank;
  if (best.rank < 0 || (N_convention == "active" && is_active(found[0]))) return false;
  return std::any_of(found.begin() + 1, found.end(), [&](const Candidate& other) {
    return is_active(other) != is_active(found[0]);
  });
}

std::string described(const std::string& column, const ColumnMeaning& meaning) {
  auto text = meaning.logarithm ? fmt::format("ln({})", printable(column)) : printable(column);
  if (meaning.scale != 1.0) text += fmt::format(" x {:g}", meaning.scale);
  if (!meaning.convention.empty()) text += fmt::format(" ({})", printable(meaning.convention));
  return text;
}

[[noreturn]] void complain_of_two(const std::string& file,
                                  const std::string& variable,
                                  const std::vector<Candidate>& found,
                                  const std::vector<std::string>& header) {
  std::vector<std::string> names;
  for (const auto& candidate : found) names.push_back(header[candidate.column]);
  if (std::count(names.begin(), names.end(), names[0]) == std::ssize(names))
    throw InputError(
        fmt::format("{}: column \"{}\" stands {} times in the header, expected names that differ",
                    file,
                    printable(names[0]),
                    names.size()));
  throw InputError(
      fmt::format("{}: {} columns could be {} ({}), expected --columns {}=COLUMN with one of: {}",
                  file,
                  found.size(),
                  variable,
                  variable_words(variable),
                  variable,
                  list_names(names)));
}

class Mapper {
 public:
  Mapper(const std::vector<std::string>& header,
         const std::string& file,
         const ObservationOptions& options)
      : header_(header), file_(file), options_(options) {
    for (const auto& column : header) meanings_.push_back(meaning_of(column));
  }

  ColumnMap map() {
    for (const auto& [variable, column] : options_.columns) take_given(variable, column);
    for (const auto& variable : options_.wanted) take_by_name(variable, Need::wanted);
    for (const auto& variable : options_.also) take_by_name(variable, Need::also);
    for (const auto helper : helpers) take_by_name(std::string(helper), Need::helper);
    return std::move(map_);
  }

 private:
  enum class Need { wanted, also, helper };

  void take_given(const std::string& variable, const std::string& column) {
    const auto at =
        column_of(header_, column, file_, fmt::format("--columns {}", printable(variable)));
    ColumnMeaning meaning{variable, 1.0, {}, false, 0};
    if (meanings_[at] && meanings_[at]->variable == variable) meaning = *meanings_[at];
    put(variable, at, meaning, Need::wanted);
    map_.notes.push_back(
        fmt::format("{} <- {}", printable(variable), described(header_[at], meaning)));
  }

  void take_by_name(const std::string& variable, Need need) {
    if (map_.find(variable) != nullptr) return;
    auto found = candidates_for(variable, header_, meanings_);
    std::erase_if(found, [&](const Candidate& c) { return is_taken(c.column); });
    if (variable == "N") prefer_convention(found);
    if (found.empty()) return;
    if (is_ambiguous(found, options_.N_convention)) {
      if (need != Need::helper) complain_of_two(file_, variable, found, header_);
      if (variable != "run" && variable != "step") return;
    }
    put(variable, found[0].column, found[0].meaning, need);
    if (need == Need::helper) return;
    auto note =
        fmt::format("{} <- {}", variable, described(header_[found[0].column], found[0].meaning));
    std::vector<std::string> others;
    for (std::size_t i = 1; i < found.size(); ++i) others.push_back(header_[found[i].column]);
    if (!others.empty())
      note += fmt::format("; not {} (--columns {}=COLUMN)", list_names(others), variable);
    map_.notes.push_back(note);
  }

  // Puts the columns first that count what the law counts.
  void prefer_convention(std::vector<Candidate>& found) const {
    if (options_.N_convention.empty()) return;
    std::stable_partition(found.begin(), found.end(), [&](const Candidate& c) {
      return c.meaning.convention.find(options_.N_convention) != std::string::npos;
    });
  }

  bool is_taken(std::size_t column) const {
    return std::any_of(map_.sources.begin(), map_.sources.end(), [&](const auto& source) {
      return source.column == column;
    });
  }

  void put(const std::string& variable,
           std::size_t column,
           const ColumnMeaning& meaning,
           Need need) {
    map_.sources.push_back({variable,
                            column,
                            meaning.scale,
                            meaning.logarithm,
                            need != Need::helper,
                            meaning.convention});
  }

  const std::vector<std::string>& header_;
  const std::string& file_;
  const ObservationOptions& options_;
  std::vector<std::optional<ColumnMeaning>> meanings_;
  ColumnMap map_;
};

}  // namespace

const ColumnMap::Source* ColumnMap::find(std::string_view variable) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& source) {
    return source.variable == variable;
  });
  return found == sources.end() ? nullptr : &*found;
}

LossKind loss_kind(const ColumnMap::Source& loss) {
  return loss.convention.empty() || loss.convention == "training" ? LossKind::training
                                                                  : LossKind::evaluation;
}

ColumnMap map_columns(const std::vector<std::string>& header,
                      const std::string& file,
                      const ObservationOptions& options) {
  return Mapper(header, file, options).map();
}

std::vector<std::string> asked_variables(const ObservationOptions& options) {
  auto asked = options.wanted;
  const auto ask = [&](const std::string& variable) {
    if (std::find(asked.begin(), asked.end(), variable) == asked.end()) asked.push_back(variable);
  };
  for (const auto& variable : options.also) ask(variable);
  for (const auto& [variable, column] : options.columns) ask(variable);
  return asked;
}

std::size_t column_of(const std::vector<std::string>& header,
                      std::string_view name,
                      const std::string& file,
                      std::string_view flag) {
  auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    found = std::find_if(header.begin(), header.end(), [&](const std::string& column) {
      return same_word(column, name);
    });
  }
  if (found == header.end()) {
    const auto nearest = nearest_name(name, header);
    throw InputError(
        fmt::format("{}: {}: found no column \"{}\"{}, expected one of: {}",
                    file,
                    flag,
                    printable(name),
                    nearest ? fmt::format(" (did you mean \"{}\"?)", printable(*nearest)) : "",
                    list_names(header)));
  }
  const auto again = std::find(found + 1, header.end(), *found);
  if (again != header.end()) {
    throw InputError(
        fmt::format("{}: {}: column \"{}\" stands twice in the header, expected names that differ",
                    file,
                    flag,
                    printable(name)));
  }
  return static_cast<std::size_t>(found - header.begin());
}

std::string list_names(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i)
    shown.push_back(printable(names[i], 80));
  if (names.size() > most_named)
    shown.push_back(fmt::format("and {} more", names.size() - most_named));
  return fmt::format("{}", fmt::join(shown, ", "));
}

Cell converted(Cell cell, const ColumnMap::Source& source) {
  if (cell.kind != Cell::Kind::number) return cell;
  if (!source.logarithm) cell.value *= source.scale;
  if (source.logarithm) cell.value = std::log(cell.value);
  if (!std::isfinite(cell.value))
    return {Cell::Kind::no_number, std::numeric_limits<double>::quiet_NaN()};
  return cell;
}

}  // namespace core
