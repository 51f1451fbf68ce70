#include "fitting/optimum_main.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/named_values.h"
#include "fitting/optimum_report.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace {

struct Options {
  std::string name, format = "table", output;
  std::string flops, loss, k, unique_tokens, parameters, max_parameters, inference_tokens;
  fitting::OptimumQuestion question;
  bool quiet = false;
};

std::optional<double> number(const std::string& text, const std::string& flag) {
  if (text.empty()) return std::nullopt;
  const auto cell = core::read_cell(text);
  if (cell.kind == core::Cell::Kind::number) return cell.value;
  throw core::InputError(flag + ": found \"" + core::printable(text) + "\", expected a number");
}

void fill(Options& o, const std::vector<std::string>& rest) {
  auto& q = o.question;
  q.flops = number(o.flops, "--flops");
  q.loss = number(o.loss, "--loss");
  q.flops_per_nd = number(o.k, "--k");
  q.unique_tokens = number(o.unique_tokens, "--unique-tokens");
  q.parameters = number(o.parameters, "--parameters");
  q.max_parameters = number(o.max_parameters, "--max-parameters");
  q.inference_tokens = number(o.inference_tokens, "--inference-tokens").value_or(0.0);
  q.fixed = fitting::named_values(rest);
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("law", o.name, "constants of `fit --list constants`, or a law that --save wrote")->required();
  app.add_option("--flops", o.flops, "to spend");
  app.add_option("--loss", o.loss, "to reach with the fewest FLOPs");
  app.add_option("--parameters", o.parameters, "the size, where it is given");
  app.add_option("--max-parameters", o.max_parameters, "the largest size");
  app.add_option("--unique-tokens", o.unique_tokens, "tokens there are, for a law of repeated data");
  app.add_option("--inference-tokens", o.inference_tokens, "tokens served over the model's life: each costs a third of a training token");
  app.add_option("--inference-price", o.question.inference_price, "of a FLOP of inference over one of training")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--k", o.k, "FLOPs of a token and parameter, in place of the law's (6)");
  app.add_option("--eff-n", o.question.eff_N, "effective parameters of a recipe, as a share")->check(CLI::Range(1e-6, 10.0))->capture_default_str();
  app.add_option("--eff-d", o.question.eff_D, "effective tokens of a recipe, as a share")->check(CLI::Range(1e-6, 10.0))->capture_default_str();
  app.add_option("--confidence", o.question.confidence, "share of the law's draws in an interval")->check(CLI::Range(0.01, 0.999))->capture_default_str();
  app.add_option("--format", o.format, "table or json")->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  app.add_option("--output", o.output, "file for the result");
  app.add_flag("--quiet", o.quiet, "no warnings");
}

}  // namespace

int optimum_main(int argc, char** argv) {
  Options o;
  CLI::App app("The best size and tokens of a law: fit optimum LAW --flops 5.76e23; other variables of the law by name, such as --G 8", "fit optimum");
  app.allow_extras();
  add_options(app, o);
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  fill(o, app.remaining());
  const auto answer = fitting::answer_optimum(fitting::fitted_law(o.name), o.question);
  simulator::warn("fit", answer.optimum.warnings, o.quiet || o.format == "json");
  simulator::deliver(o.format == "json" ? fitting::optimum_json(answer, std::string(simulator::version())) : fitting::optimum_table(answer), o.output);
  return answer.optimum.found() ? 0 : 1;
}
