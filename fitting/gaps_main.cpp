#include "fitting/gaps_main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/precision/gaps_report.h"
#include "fitting/precision/post_training.h"
#include "fitting/precision/precision_floor.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace {

std::optional<double> size_of(const std::string& text, const std::string& flag) {
  if (text.empty()) return std::nullopt;
  const auto cell = core::read_cell(text);
  if (cell.kind != core::Cell::Kind::number || cell.value <= 0.0) throw core::InputError(fmt::format("{}: found \"{}\", expected a positive number", flag, core::printable(text)));
  return cell.value;
}

std::string listed(const std::string& list, const std::optional<double>& N, const std::optional<double>& D, const std::optional<double>& speed) {
  if (list == "floors") return fitting::floors_text();
  if (list == "post-training") return fitting::post_training_text(N, D);
  return fitting::recipes_text(N, D, speed);
}

// One recipe's gap, as text.
std::string of_recipe(const std::string& recipe, const std::string& method, const std::optional<double>& N, const std::optional<double>& D) {
  fitting::GapRow row;
  row.recipe = recipe;
  row.method = method;
  row.metric = "acc";  // what is known in points is told in points
  row.notes = "mmlu gsm8k";
  row.N = N;
  row.D = D;
  const auto predicted = fitting::predict_gap(row);
  if (const auto* why = std::get_if<std::string>(&predicted)) throw core::InputError(fmt::format("--recipe: found \"{}\": {}", core::printable(recipe), *why));
  return fitting::prediction_text(std::get<fitting::PredictedGap>(predicted));
}

std::string written(const fitting::GapReport& report, const std::string& format) {
  if (format == "json") return fitting::gaps_json(report, std::string(simulator::version()));
  if (format == "csv") return fitting::gaps_csv(report);
  return format == "markdown" ? fitting::gaps_markdown(report) : fitting::gaps_table(report);
}

}  // namespace

int gaps_main(int argc, char** argv) {
  std::string table, format = "table", output, list, recipe, method = "training", N, D, speed;
  CLI::App app("What few bits cost in loss: published gaps against predicted ones. fit gaps, fit gaps TABLE.csv, fit gaps --list recipes --N 8e9 --D 1e12", "fit gaps");
  app.add_option("table", table, "rows of gaps, in the columns of data/measured/precision_gaps.csv, which is taken without it");
  app.add_option("--format", format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}))->capture_default_str();
  app.add_option("--list", list, "recipes (factors of training), post-training (weights, caches, LoRA) or floors: what is known, in place of a comparison")
      ->check(CLI::IsMember({"recipes", "post-training", "floors"}));
  app.add_option("--recipe", recipe, "a recipe to predict, such as \"w=e2m1/16x16;a,g=e2m1/1x16;SR on grads\", in place of a comparison; with --N and --D");
  app.add_option("--method", method, "with --recipe: training, QAT, PTQ or finetune")->check(CLI::IsMember({"training", "QAT", "PTQ", "finetune"}))->capture_default_str();
  app.add_option("--N", N, "with --list or --recipe: parameters");
  app.add_option("--D", D, "with --list or --recipe: tokens");
  app.add_option("--speed", speed, "with --list recipes: speed against 16 bits, to say which pay");
  app.add_option("--output", output, "file for the result");
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  if ((table.empty() ? 0 : 1) + (list.empty() ? 0 : 1) + (recipe.empty() ? 0 : 1) > 1) throw core::InputError("TABLE, --list and --recipe: found more than one, expected one");
  if (list.empty() && recipe.empty() && !(N.empty() && D.empty())) {
    throw core::InputError(fmt::format("{}: found with a table, whose rows have their own; expected with --list or --recipe", N.empty() ? "--D" : "--N"));
  }
  if (!speed.empty() && list != "recipes") throw core::InputError("--speed: found without --list recipes, expected with it");
  if (!recipe.empty()) return simulator::deliver(of_recipe(recipe, method, size_of(N, "--N"), size_of(D, "--D")), output), 0;
  if (!list.empty()) return simulator::deliver(listed(list, size_of(N, "--N"), size_of(D, "--D"), size_of(speed, "--speed")), output), 0;
  simulator::deliver(written(fitting::compare_gaps(table.empty() ? core::data_dir() / "measured" / "precision_gaps.csv" : std::filesystem::path(table)), format), output);
  return 0;
}
