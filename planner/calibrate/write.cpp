#include "planner/calibrate/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "planner/calibrate/data_text.h"

namespace planner {

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw core::InputError(fmt::format("{}: cannot be opened", file.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A figure of a file after a fit: a number, or a list that one parameter scales or several hold.
struct Figure {
  std::vector<double> numbers;
  std::vector<std::size_t> parameters;
};

// The figures that parameters touched by rows stand in, by file and key.
std::map<std::pair<std::string, std::string>, Figure> figures_of(const Calibration& c) {
  std::map<std::pair<std::string, std::string>, Figure> figures;
  for (std::size_t j = 0; j < c.fitted.size(); ++j) {
    const auto& targets = c.spec.parameters[j].targets;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      auto& figure = figures[{targets[t].file(), targets[t].key}];
      figure.parameters.push_back(j);
      // Numbers of a list that are fitted one by one come in its order.
      for (const double number : c.numbers(j, t)) figure.numbers.push_back(number);
    }
  }
  std::erase_if(figures, [&](const auto& each) {
    return std::ranges::all_of(each.second.parameters,
                               [&](std::size_t j) { return c.fitted[j].rows_touched == 0; });
  });
  return figures;
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string source_of(const Calibration& c, const Figure& figure, const std::string& command) {
  const auto& all = c.all();
  std::vector<std::string> rows, starts, errors;
  for (const std::size_t j : figure.parameters) {
    rows.push_back(fmt::format("{}", c.fitted[j].rows_touched));
    starts.push_back(fmt::format("{:.4g}", c.spec.parameters[j].start()));
    errors.push_back(fmt::format("{:.1f}", 100.0 * c.fitted[j].standard_error));
  }
  const auto out = all.left_out
                       ? fmt::format("{:.1f} % left out, ", 100.0 * all.left_out->median_abs)
                       : std::string();
  return fmt::format(
      "{}: {} parameters on {} rows of {} sources, {} of which this one moves; from "
      "{}, standard error {} %; median error of {}s {}{:.1f} % fitted",
      command,
      c.fitted.size(),
      c.rows,
      c.sources.size() - 1,
      joined(rows),
      joined(starts),
      joined(errors),
      c.spec.measures,
      out,
      100.0 * all.after.median_abs);
}

}  // namespace

void DataTexts::put(const Calibration& calibration, const std::string& command) {
  for (const auto& [place, figure] : figures_of(calibration)) {
    const auto& [file, key] = place;
    auto& text = text_of(file);
    text = with_figure(text, file, key, figure.numbers, source_of(calibration, figure, command));
  }
}

std::string& DataTexts::text_of(const std::string& file) {
  auto found = texts_.find(file);
  if (found == texts_.end()) found = texts_.emplace(file, read(data_ / file)).first;
  return found->second;
}

std::vector<DataText> DataTexts::changed() const {
  std::vector<DataText> result;
  for (const auto& [file, text] : texts_) result.push_back({file, text});
  return result;
}

std::vector<DataText> written(const Calibration& calibration,
                              const std::filesystem::path& data,
                              const std::string& command) {
  DataTexts texts(data);
  texts.put(calibration, command);
  return texts.changed();
}

void write_data(const std::vector<DataText>& texts, const std::filesystem::path& data) {
  for (const auto& [file, text] : texts) {
    std::ofstream out(data / file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw core::InputError(fmt::format("{}: cannot be written", (data / file).string()));
  }
}

}  // namespace planner
