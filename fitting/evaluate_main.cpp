#include "fitting/evaluate_main.h"

#include <CLI/CLI.hpp>
#include <string>

#include "fitting/evaluate.h"
#include "fitting/named_values.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

int evaluate_main(int argc, char** argv) {
  std::string name, format = "table", output;
  double confidence = 0.95;
  bool quiet = false;
  CLI::App app("Evaluates a law: fit evaluate LAW --N 70e9 --D 1.4e12", "fit evaluate");
  app.allow_extras();
  app.add_option("law", name, "constants of `fit --list constants`, or a law that --save wrote")->required();
  app.add_option("--format", format, "table or json")->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  app.add_option("--confidence", confidence, "share of the law's draws in an interval")->check(CLI::Range(0.01, 0.999))->capture_default_str();
  app.add_option("--output", output, "file for the result");
  app.add_flag("--quiet", quiet, "no warnings");
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  const auto value = fitting::evaluate(fitting::fitted_law(name), fitting::named_values(app.remaining()), confidence);
  simulator::warn("fit", value.warnings, quiet || format == "json");
  simulator::deliver(format == "json" ? fitting::evaluation_json(value, std::string(simulator::version())) : fitting::evaluation_table(value), output);
  return 0;
}
