#include "fitting/optimum/optimum_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/io/json_writer.h"

namespace fitting {
namespace {

bool served(const OptimumAnswer& answer) {
  return answer.varied == "samples" || answer.question.inference_tokens > 0.0;
}

void range_json(core::JsonWriter& json, const std::string& name, double value, const std::optional<Interval>& range) {
  json.member(name, value);
  if (range) json.member(name + "_low", range->low).member(name + "_high", range->high);
}

void row_json(core::JsonWriter& json, const Optimum& at) {
  if (!at.found()) {
    json.member("found", false).member("why_not", at.why_not);
    return;
  }
  json.member("found", true);
  range_json(json, "parameters", at.N, at.N_range);
  range_json(json, "tokens", at.D, at.D_range);
  json.member("tokens_per_parameter", at.D / at.N);
  range_json(json, "loss", at.loss, at.loss_range);
  range_json(json, "training_flops", at.flops, at.flops_range);
  json.member("total_flops", at.total_flops);
  if (at.exponent) range_json(json, "exponent", *at.exponent, at.exponent_range);
  json.member("closed_form", at.closed_form);
}

void question_json(core::JsonWriter& json, const OptimumAnswer& answer) {
  const auto& question = answer.question;
  const auto member = [&](const char* name, std::optional<double> value) {
    if (value) json.member(name, *value);
  };
  json.begin_object();
  member("flops", question.flops);
  member("loss", question.loss);
  for (const auto& [name, value] : question.fixed) json.member(name, value);
  member("k", question.flops_per_nd);
  member("unique_tokens", question.unique_tokens);
  member("parameters", question.parameters);
  member("max_parameters", question.max_parameters);
  if (served(answer)) json.member("inference_tokens", question.inference_tokens).member("inference_price", question.inference_price);
  if (question.eff_N != 1.0 || question.eff_D != 1.0) json.member("eff_N", question.eff_N).member("eff_D", question.eff_D);
  json.end_object();
}

void others_json(core::JsonWriter& json, const std::vector<Detour>& others) {
  json.key("other_sizes").begin_list();
  for (const auto& other : others) {
    json.begin_object().member("parameters", other.N).member("found", other.at.found());
    if (other.at.found()) json.member("tokens", other.at.D).member("loss", other.at.loss).member("loss_above", other.loss_above);
    json.key("flops_overhead");
    if (other.flops_overhead) json.value(*other.flops_overhead);
    else json.null();
    json.end_object();
  }
  json.end_list();
}

// "7.32e10" for "7.32e+10".
std::string number(double value, int digits = 4) {
  auto text = fmt::format("{:.{}g}", value, digits);
  if (const auto plus = text.find("e+"); plus != std::string::npos) text.erase(plus + 1, text[plus + 2] == '0' ? 2 : 1);
  return text;
}

// Of what does not vary (the budget that was asked for), nothing.
std::string interval_text(const std::optional<Interval>& range, int digits = 4) {
  if (!range || !(range->high > range->low * (1.0 + 1e-6))) return "";
  return fmt::format(" ({} to {})", number(range->low, digits), number(range->high, digits));
}

std::string headline(const OptimumAnswer& answer, const Choice& row) {
  const auto& at = row.at;
  if (!at.found()) return at.why_not + "\n";
  const auto bits = answer.varied == "bits" ? fmt::format("{} bits, ", number(row.value)) : "";
  auto out = fmt::format("{}{} parameters{}, {} tokens{}: {} = {}{}\n", bits, number(at.N), interval_text(at.N_range), number(at.D),
                                interval_text(at.D_range), answer.law.law.output, number(at.loss, 6), interval_text(at.loss_range, 6));
  out += fmt::format("  {} tokens a parameter; {} FLOPs of training{}", number(at.D / at.N, 3), number(at.flops),
                     interval_text(at.flops_range));
  if (served(answer)) out += fmt::format(", {} with inference", number(at.total_flops));
  if (at.exponent) out += fmt::format("\n  there the best size grows as C^{:.4f}{}", *at.exponent, interval_text(at.exponent_range, 3));
  return out + fmt::format("\n  {}\n", answer.question.parameters ? "the size is given" : at.closed_form ? "closed form" : "by search");
}

std::string others_text(const std::vector<Detour>& others, const std::string& loss) {
  std::string out = "  other sizes on the same FLOPs:\n";
  for (const auto& other : others) {
    if (!other.at.found()) {
      out += fmt::format("    {:>9} parameters: {}\n", number(other.N, 3), other.at.why_not);
      continue;
    }
    const auto overhead = other.flops_overhead ? fmt::format("{:.1f} % more FLOPs reach that of the best", 100.0 * *other.flops_overhead)
                                               : std::string("no number of tokens reaches that of the best");
    out += fmt::format("    {:>9} parameters, {:>9} tokens: {} = {:.5f} ({:+.5f}); {}\n", number(other.N, 3), number(other.at.D, 3), loss,
                       other.at.loss, other.loss_above, overhead);
  }
  return out;
}

std::vector<std::string> row_cells(const Choice& row) {
  const auto& at = row.at;
  if (!at.found()) return {number(row.value, 6), "", "", "", "", "", at.why_not};
  return {number(row.value, 6), number(at.N), number(at.D), number(at.D / at.N, 3), number(at.loss, 6), number(at.total_flops), ""};
}

std::vector<std::string> heads(const OptimumAnswer& answer) {
  return {answer.varied, "parameters", "tokens", "tokens/param", answer.law.law.output, "FLOPs", ""};
}

std::string rows_text(const OptimumAnswer& answer) {
  const auto line = [](const std::vector<std::string>& cells) {
    return fmt::format("  {:>10} {:>12} {:>12} {:>13} {:>10} {:>12}  {}", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5],
                       cells[6]);
  };
  std::string out = line(heads(answer)) + "\n";
  for (const auto& row : answer.rows) {
    out += line(row_cells(row)) + (answer.best && *answer.best == row.value ? "best\n" : "\n");
  }
  return out;
}

std::string cell(std::optional<double> value) { return value ? fmt::format("{:.17g}", *value) : ""; }

}  // namespace

bool OptimumAnswer::found() const {
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.at.found(); });
}

std::vector<std::string> warnings_of(const OptimumAnswer& answer) {
  std::vector<std::string> all;
  for (const auto& row : answer.rows) {
    for (const auto& warning : row.at.warnings) {
      if (std::find(all.begin(), all.end(), warning) == all.end()) all.push_back(warning);
    }
  }
  return all;
}

std::string optimum_table(const OptimumAnswer& answer) {
  std::string out = answer.rows.size() == 1 ? headline(answer, answer.rows.front()) : rows_text(answer);
  if (!answer.others.empty()) out += others_text(answer.others, answer.law.law.output);
  const auto& counts = answer.law.counts;
  out += fmt::format("  {}: {} = {}\n", answer.law.name, answer.law.law.output, answer.law.law.formula);
  return out + fmt::format("  constants: {}{}\n", answer.law.source, counts.empty() ? "" : "; N is " + counts);
}

std::string optimum_json(const OptimumAnswer& answer) {
  core::JsonWriter json;
  json.begin_object().member("version", answer.version).member("law", answer.law.name).member("formula", answer.law.law.formula);
  json.member("counts", answer.law.counts);
  question_json(json.key("question"), answer);
  if (answer.rows.size() == 1) {
    if (answer.varied != "flops" && answer.varied != "loss") json.member(answer.varied, answer.rows.front().value);
    row_json(json, answer.rows.front().at);
  } else {
    json.member("varied", answer.varied).key("optima").begin_list();
    for (const auto& row : answer.rows) {
      json.begin_object().member(answer.varied, row.value);
      row_json(json, row.at);
      json.end_object();
    }
    json.end_list();
    if (answer.best) json.member("best", *answer.best);
  }
  if (!answer.others.empty()) others_json(json, answer.others);
  if (!answer.law.draws.empty()) json.member("confidence", answer.question.confidence);
  json.key("sources").begin_list().value(answer.law.source).end_list().key("warnings").begin_list();
  for (const auto& warning : warnings_of(answer)) json.value(warning);
  return json.end_list().end_object().text();
}

std::string optimum_csv(const OptimumAnswer& answer) {
  auto out = answer.varied + ",parameters,parameters_low,parameters_high,tokens,tokens_low,tokens_high," +
             (answer.varied == "loss" ? "reached_loss" : "loss") + ",loss_low,loss_high,training_flops,total_flops,exponent\n";
  const auto ends = [](const std::optional<Interval>& range) {
    return range ? fmt::format("{:.17g},{:.17g}", range->low, range->high) : std::string(",");
  };
  for (const auto& [value, at] : answer.rows) {
    out += at.found() ? fmt::format("{:.17g},{:.17g},{},{:.17g},{},{:.17g},{},{:.17g},{:.17g},{}\n", value, at.N, ends(at.N_range), at.D,
                                    ends(at.D_range), at.loss, ends(at.loss_range), at.flops, at.total_flops, cell(at.exponent))
                      : fmt::format("{:.17g},,,,,,,,,,,,\n", value);
  }
  return out;
}

std::string optimum_markdown(const OptimumAnswer& answer) {
  const auto line = [](const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells.begin(), cells.end() - 1, " | "));
  };
  std::string out = fmt::format("**{}**: `{} = {}`\n\n", answer.law.name, answer.law.law.output, answer.law.law.formula);
  out += line(heads(answer)) + "|---|---|---|---|---|---|\n";
  for (const auto& row : answer.rows) out += line(row_cells(row));
  for (const auto& row : answer.rows) {
    if (!row.at.found()) out += fmt::format("\n- {}: {}", number(row.value), row.at.why_not);
  }
  const auto warnings = warnings_of(answer);
  for (const auto& warning : warnings) out += fmt::format("\n- {}", warning);
  return out + (warnings.empty() ? "" : "\n");
}

}  // namespace fitting
