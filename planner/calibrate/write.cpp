#include "planner/calibrate/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <sstream>

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

std::string source_of(const Calibration& c, std::size_t j, const std::vector<std::string>& tables) {
  const auto& all = c.all();
  const auto& p = c.spec.parameters[j];
  const auto& f = c.fitted[j];
  const auto out = all.left_out
                       ? fmt::format("{:.1f} % left out, ", 100.0 * all.left_out->median_abs)
                       : std::string();
  return fmt::format(
      "simulate calibrate {}: {} parameters on {} rows of {} sources, {} of which this one moves; "
      "from "
      "{:.4g}, standard error {:.1f} %; median error of step times {}{:.1f} % fitted",
      fmt::join(tables, " "),
      c.fitted.size(),
      c.rows,
      c.sources.size() - 1,
      f.rows_touched,
      p.start(),
      100.0 * f.standard_error,
      out,
      100.0 * all.after.median_abs);
}

}  // namespace

std::vector<DataText> written(const Calibration& calibration,
                              const std::filesystem::path& data,
                              const std::vector<std::string>& tables) {
  std::map<std::string, std::string> texts;
  for (std::size_t j = 0; j < calibration.fitted.size(); ++j) {
    if (calibration.fitted[j].rows_touched == 0) continue;
    const auto source = source_of(calibration, j, tables);
    const auto& targets = calibration.spec.parameters[j].targets;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const auto file = targets[t].file();
      auto at = texts.find(file);
      if (at == texts.end()) at = texts.emplace(file, read(data / file)).first;
      at->second = with_figure(at->second, file, targets[t].key, calibration.numbers(j, t), source);
    }
  }
  std::vector<DataText> result;
  for (auto& [file, text] : texts) result.push_back({file, std::move(text)});
  return result;
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
