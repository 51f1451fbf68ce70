#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/io/document.h"
#include "core/measured/csv.h"
#include "simulator/check/report.h"
#include "simulator/report.h"

namespace simulator {

namespace {

std::string percent(double value) { return fmt::format("{:.1f}", 100.0 * value); }
std::string signed_percent(const std::optional<double>& value) {
  return value ? fmt::format("{:+.1f} %", 100.0 * *value) : "-";
}
std::string seconds(const std::optional<double>& value) {
  return value ? seconds_text(*value) : "-";
}
std::string gibibytes(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

using Line = std::vector<std::string>;

// Columns as wide as their longest cell: the first to the left, the others to the right.
std::string aligned(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += i == 0 ? fmt::format("{:<{}}", line[i], widths[i])
                    : fmt::format("  {:>{}}", line[i], widths[i]);
    }
    out += '\n';
  }
  return out;
}

std::string pipes(const std::vector<Line>& lines) {
  std::string out;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    for (const auto& cell : lines[l]) out += "| " + cell + " ";
    out += "|\n";
    if (l > 0) continue;
    for (std::size_t i = 0; i < lines[l].size(); ++i) out += i == 0 ? "|---" : "|---:";
    out += "|\n";
  }
  return out;
}

Line errors_line(const ErrorSummary& s) {
  if (s.n == 0) return {"0", "-", "-", "-", "-"};
  return {std::to_string(s.n),
          percent(s.median_abs),
          percent(s.mean_abs),
          percent(s.p90_abs),
          fmt::format("{:+.1f}", 100.0 * s.bias)};
}

void add(Line& line, const Line& more) { line.insert(line.end(), more.begin(), more.end()); }

std::vector<Line> summary_lines(const std::map<std::string, Summary>& groups,
                                const Summary& all,
                                std::string_view by) {
  std::vector<Line> lines{{std::string(by),
                           "time n",
                           "median %",
                           "mean %",
                           "p90 %",
                           "bias %",
                           "memory n",
                           "median %",
                           "mean %",
                           "p90 %",
                           "bias %",
                           "called right",
                           "false fits",
                           "false ooms",
                           "borderline",
                           "skipped"}};
  const auto line_of = [&](const std::string& name, const Summary& s) {
    Line line{name};
    add(line, errors_line(s.step_time));
    add(line, errors_line(s.memory));
    for (const auto n :
         {s.oom.correct, s.oom.false_fits, s.oom.false_ooms, s.oom.borderline, s.skipped})
      line.push_back(std::to_string(n));
    lines.push_back(std::move(line));
  };
  for (const auto& [name, summary] : groups) line_of(name, summary);
  line_of("all", all);
  return lines;
}

std::vector<Line> row_lines(const std::vector<CheckedRow>& rows) {
  std::vector<Line> lines{{"row",
                           "measured",
                           "predicted",
                           "error",
                           "memory GiB",
                           "predicted",
                           "error",
                           "kind",
                           "fits",
                           "status"}};
  for (const auto& row : rows) {
    if (!row.predicted || !row.skipped_because.empty()) continue;
    const auto& m = *row.measured;
    lines.push_back({row.run.id,
                     seconds(m.step_time_s),
                     seconds(row.predicted->step_time_s),
                     signed_percent(row.step_time_error),
                     gibibytes(m.memory_GiB),
                     gibibytes(row.predicted_memory_GiB),
                     signed_percent(row.memory_error),
                     std::string(name_of(m.memory_kind)),
                     std::string(name_of(row.predicted->fits)),
                     std::string(row.measured_status())});
  }
  return lines;
}

// Means over a source's groups of plans.
std::vector<Line> group_lines(const std::vector<PlanGroup>& groups) {
  std::vector<Line> lines{{"plans of",
                           "groups",
                           "first: mean extra %",
                           "p90 %",
                           "worst %",
                           "fastest first %",
                           "fastest of three: mean extra %",
                           "fastest in first three %",
                           "Kendall tau"}};
  std::map<std::string, std::vector<const PlanGroup*>> by_source;
  for (const auto& group : groups) by_source[group.source].push_back(&group);
  for (const auto& [source, of] : by_source) {
    std::vector<double> first;
    double three = 0.0, tau = 0.0, exact = 0.0, within = 0.0;
    for (const auto* group : of) {
      first.push_back(group->first_extra);
      three += group->best_of_three_extra, tau += group->kendall_tau;
      exact += group->first_extra <= 0.0 ? 1.0 : 0.0,
          within += group->fastest_in_first_three ? 1.0 : 0.0;
    }
    const double n = static_cast<double>(of.size());
    lines.push_back({source,
                     std::to_string(of.size()),
                     percent(summary_of(first).mean_abs),
                     percent(quantile(first, 0.9)),
                     percent(quantile(first, 1.0)),
                     percent(exact / n),
                     percent(three / n),
                     percent(within / n),
                     fmt::format("{:.2f}", tau / n)});
  }
  return lines;
}

// Skipped rows by reason; notes of sources are longer than a line and are cut.
std::vector<Line> skipped_lines(const std::vector<CheckedRow>& rows) {
  std::vector<Line> lines;
  for (const auto& row : rows) {
    if (!row.skipped_because.empty())
      lines.push_back({row.run.id, core::printable(row.skipped_because, 140)});
  }
  return lines;
}

struct Style {
  std::string (*table)(const std::vector<Line>&);
  std::string_view heading;
};

std::string text_of(const CheckReport& report, const Style& style) {
  std::string out;
  const auto section = [&](std::string_view title, const std::vector<Line>& lines) {
    out += fmt::format("{}{}\n{}{}\n",
                       style.heading,
                       title,
                       style.heading.empty() ? "" : "\n",
                       style.table(lines));
  };
  section("Rows (errors: predicted / measured - 1)", row_lines(report.rows));
  const auto all = summarise_all(report.rows);
  for (const auto by : {GroupBy::source,
                        GroupBy::gpu,
                        GroupBy::framework,
                        GroupBy::precision,
                        GroupBy::memory_kind}) {
    section(
        fmt::format("By {}", by == GroupBy::memory_kind ? "kind of memory figure" : name_of(by)),
        summary_lines(summarise_by(report.rows, by), all, name_of(by)));
  }
  if (!report.groups.empty())
    section("Choice among measured plans (equal model, GPUs and batch; four plans or more)",
            group_lines(report.groups));
  if (const auto skipped = skipped_lines(report.rows); !skipped.empty()) {
    out += fmt::format("{}Not predicted: {}\n{}",
                       style.heading,
                       skipped.size(),
                       style.heading.empty() ? "" : "\n");
    for (const auto& line : skipped)
      out += fmt::format("{}{}: {}\n", style.heading.empty() ? "  " : "- ", line[0], line[1]);
    out += '\n';
  }
  for (const auto& remark : report.remarks) out += remark + '\n';
  for (const auto& failure : report.failures) out += "FAILED: " + failure + '\n';
  if (report.elapsed_s)
    out += fmt::format("{} rows in {:.1f} s\n", report.rows.size(), *report.elapsed_s);
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out;
}

std::string shortest(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string check_table(const CheckReport& report) { return text_of(report, {aligned, ""}); }
std::string check_markdown(const CheckReport& report) { return text_of(report, {pipes, "## "}); }

std::string check_csv(const CheckReport& report) {
  std::string out =
      "id,source,gpu,framework,recipe,predicted_step_time_s,measured_step_time_s,step_time_error,"
      "memory_kind,predicted_memory_GiB,"
      "measured_memory_GiB,memory_error,predicted_fits,measured_status,predicted_tflops_per_gpu,"
      "measured_tflops_per_gpu,"
      "flops_convention,plan,assumed,ignored,skipped_because,predicted_step_time_low_s,predicted_step_time_high_s\n";
  for (const auto& row : report.rows) {
    const auto joined = [](const std::vector<std::string>& notes) {
      return fmt::format("{}", fmt::join(notes, "; "));
    };
    const auto measured = row.measured.value_or(Measurement{});
    const Line cells{
        row.run.id,
        row.source,
        row.gpu,
        row.run.framework,
        row.recipe,
        shortest(row.predicted ? std::optional(row.predicted->step_time_s) : std::nullopt),
        shortest(measured.step_time_s),
        shortest(row.step_time_error),
        std::string(name_of(measured.memory_kind)),
        shortest(row.predicted_memory_GiB),
        shortest(measured.memory_GiB),
        shortest(row.memory_error),
        row.predicted ? std::string(name_of(row.predicted->fits)) : "",
        std::string(row.measured_status()),
        shortest(row.predicted_tflops_per_gpu),
        shortest(measured.tflops_per_gpu),
        std::string(name_of(measured.convention)),
        row.plan,
        joined(row.notes.assumed),
        joined(row.notes.ignored),
        row.skipped_because,
        shortest(row.predicted ? std::optional(row.predicted->low_s) : std::nullopt),
        shortest(row.predicted ? std::optional(row.predicted->high_s) : std::nullopt)};
    for (std::size_t i = 0; i < cells.size(); ++i)
      out += (i == 0 ? "" : ",") + core::csv_quoted(cells[i]);
    out += '\n';
  }
  return out;
}

// A test case a row; what fails belongs to a row where its sentence begins with the row's id, else
// to the check as a whole.
std::string check_junit(const CheckReport& report) {
  const auto starts = [](const std::string& failure, const std::string& id) {
    return failure.starts_with(id + ":");
  };
  std::string cases;
  std::size_t skipped = 0;
  std::vector<bool> told(report.failures.size(), false);
  for (const auto& row : report.rows) {
    cases += fmt::format(
        "  <testcase classname=\"check.{}\" name=\"{}\"", xml(row.source), xml(row.run.id));
    std::string inside;
    for (std::size_t i = 0; i < report.failures.size(); ++i) {
      if (!starts(report.failures[i], row.run.id)) continue;
      told[i] = true;
      inside += fmt::format("    <failure message=\"{}\"/>\n", xml(report.failures[i]));
    }
    if (!row.skipped_because.empty()) {
      ++skipped;
      inside += fmt::format("    <skipped message=\"{}\"/>\n", xml(row.skipped_because));
    }
    cases += inside.empty() ? "/>\n" : ">\n" + inside + "  </testcase>\n";
  }
  for (std::size_t i = 0; i < report.failures.size(); ++i) {
    if (told[i]) continue;
    cases += fmt::format(
        "  <testcase classname=\"check\" name=\"summary {}\">\n    <failure message=\"{}\"/>\n  "
        "</testcase>\n",
        i + 1,
        xml(report.failures[i]));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"simulate check\" tests=\"{}\" "
      "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      report.rows.size() + static_cast<std::size_t>(std::count(told.begin(), told.end(), false)),
      report.failures.size(),
      skipped,
      cases);
}

}  // namespace simulator
