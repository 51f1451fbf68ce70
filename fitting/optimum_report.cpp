#include "fitting/optimum_report.h"

#include <fmt/format.h>

#include "core/io/json_writer.h"

namespace fitting {
namespace {

std::string range_text(const std::optional<Interval>& range) {
  return range ? fmt::format("   ({:.4g} to {:.4g})", range->low, range->high) : "";
}

void member(core::JsonWriter& json, const std::string& name, double value, const std::optional<Interval>& range) {
  json.member(name, value);
  if (range) json.member(name + "_low", range->low).member(name + "_high", range->high);
}

}  // namespace

OptimumAnswer answer_optimum(const FittedLaw& law, const OptimumQuestion& question) {
  OptimumAnswer answer{law, question, optimum(law, question), {}};
  if (!answer.optimum.found() || !question.flops || question.parameters) return answer;
  for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
    auto at = detour(law, question, factor * answer.optimum.N);
    if (at.at.found()) answer.detours.push_back(std::move(at));
  }
  return answer;
}

std::string optimum_table(const OptimumAnswer& answer) {
  const auto& o = answer.optimum;
  if (!o.found()) return fmt::format("{}: no optimum: {}\n", answer.law.name, o.why_not);
  std::string out = fmt::format("{}: {} = {}\n", answer.law.name, answer.law.law.output, answer.law.law.formula);
  out += fmt::format("  N          {:.6g} parameters{}{}\n", o.N, answer.law.counts.empty() ? "" : " (" + answer.law.counts + ")", range_text(o.N_range));
  out += fmt::format("  D          {:.6g} tokens, {:.3g} a parameter{}\n", o.D, o.D / o.N, range_text(o.D_range));
  out += fmt::format("  {:<10} {:.6g} {}{}\n", answer.law.law.output, o.loss, answer.law.law.output_meaning, range_text(o.loss_range));
  out += fmt::format("  C          {:.6g} FLOPs of training{}\n", o.flops, range_text(o.flops_range));
  if (o.total_flops > o.flops * 1.000001) out += fmt::format("             {:.6g} with inference\n", o.total_flops);
  if (o.exponent) out += fmt::format("  N grows as C^{:.4f}{}\n", *o.exponent, range_text(o.exponent_range));
  if (!answer.detours.empty()) out += "  other sizes with the same FLOPs:\n";
  for (const auto& detour : answer.detours) {
    out += fmt::format("    {:.3g} parameters, {:.3g} tokens: {:.5g} ({:+.4f}), {}\n", detour.at.N, detour.at.D, detour.at.loss, detour.loss_above,
                       detour.flops_overhead ? fmt::format("{:+.1f} % FLOPs to the best loss", 100.0 * *detour.flops_overhead) : "never reaches the best loss");
  }
  return out + fmt::format("  {}; constants: {}\n", o.closed_form ? "closed form" : "by search", answer.law.source);
}

std::string optimum_json(const OptimumAnswer& answer, const std::string& version) {
  const auto& o = answer.optimum;
  core::JsonWriter json;
  json.begin_object().member("version", version).member("law", answer.law.name).member("formula", answer.law.law.formula);
  json.member("found", o.found());
  if (!o.found()) {
    json.member("why_not", o.why_not);
  } else {
    member(json, "N", o.N, o.N_range);
    member(json, "D", o.D, o.D_range);
    member(json, "loss", o.loss, o.loss_range);
    member(json, "flops", o.flops, o.flops_range);
    json.member("total_flops", o.total_flops).member("tokens_per_parameter", o.D / o.N).member("counts", answer.law.counts);
    if (o.exponent) member(json, "exponent", *o.exponent, o.exponent_range);
    json.member("closed_form", o.closed_form).key("other_sizes").begin_list();
    for (const auto& detour : answer.detours) {
      json.begin_object().member("N", detour.at.N).member("D", detour.at.D).member("loss", detour.at.loss).member("loss_above", detour.loss_above);
      json.key("flops_overhead");
      if (detour.flops_overhead) json.value(*detour.flops_overhead);
      else json.null();
      json.end_object();
    }
    json.end_list();
  }
  json.key("sources").begin_list().value(answer.law.source).end_list().key("warnings").begin_list();
  for (const auto& warning : o.warnings) json.value(warning);
  return json.end_list().end_object().text();
}

}  // namespace fitting
