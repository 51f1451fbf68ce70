#include "fitting/evaluate_main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/evaluate.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace {

// "--N 70e9 --D=1.4e12": the law says which names there are.
std::map<std::string, double> values_of(const std::vector<std::string>& words) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind("--", 0) != 0) throw core::InputError(fmt::format("found \"{}\", expected --NAME VALUE", core::printable(words[i])));
    auto name = words[i].substr(2);
    std::string value;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (++i < words.size()) {
      value = words[i];
    }
    const auto cell = core::read_cell(value);
    if (cell.kind != core::Cell::Kind::number) throw core::InputError(fmt::format("--{}: found \"{}\", expected a number", core::printable(name), core::printable(value)));
    if (!values.emplace(name, cell.value).second) throw core::InputError(fmt::format("--{}: found twice, expected once", core::printable(name)));
  }
  return values;
}

}  // namespace

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
  const auto value = fitting::evaluate(fitting::fitted_law(name), values_of(app.remaining()), confidence);
  simulator::warn("fit", value.warnings, quiet || format == "json");
  simulator::deliver(format == "json" ? fitting::evaluation_json(value, std::string(simulator::version())) : fitting::evaluation_table(value), output);
  return 0;
}
