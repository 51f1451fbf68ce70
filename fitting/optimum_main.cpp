#include "fitting/optimum_main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/io/document.h"
#include "fitting/named_values.h"
#include "fitting/optimum/bits.h"
#include "fitting/optimum/optimum_report.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/request.h"
#include "simulator/version.h"

namespace {

struct Options {
  std::string law, k, inference, unique, parameters, max_parameters, over, tokens_a_sample, queries, format = "table", output;
  std::vector<std::string> flops, loss, bits, samples, compare;
  fitting::OptimumQuestion question;
  bool quiet = false;
};

std::optional<double> count(const std::string& text, const std::string& flag) {
  return text.empty() ? std::nullopt : std::optional(simulator::parse_count(text, flag));
}

std::vector<double> counts(const std::vector<std::string>& texts, const std::string& flag) {
  std::vector<double> values;
  for (const auto& text : texts) values.push_back(simulator::parse_count(text, flag));
  return values;
}

// "--G 8 --S=0.95": other variables of the law, and the size, "--N 7e9". `flags`: the program's own, for misspelt ones.
void read_variables(const std::vector<std::string>& words,
                    std::vector<std::string> flags,
                    const fitting::Law& law,
                    fitting::OptimumQuestion& question) {
  std::vector<std::string> known;
  for (const auto& variable : law.variables) known.push_back("--" + variable.name);
  flags.insert(flags.end(), known.begin(), known.end());
  const auto check = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    const auto near = core::nearest_name(name, flags);
    throw core::InputError(fmt::format("found \"{}\", expected an option of --help, or a variable of {}: {}{}", core::printable(name),
                                       law.name, fmt::join(known, ", "), near ? fmt::format("; nearest is {}", *near) : ""));
  };
  question.fixed = fitting::named_values(words, check);
  const auto size = question.fixed.extract("N");
  if (size.empty()) return;
  if (question.parameters) throw core::InputError("--N: found with --parameters, expected one of them");
  question.parameters = size.mapped();
}

// "E=1,2,4".
std::pair<std::string, std::vector<double>> read_over(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) {
    throw core::InputError(fmt::format("--over: found \"{}\", expected VARIABLE=VALUE,VALUE", core::printable(text)));
  }
  std::pair<std::string, std::vector<double>> over{text.substr(0, equals), {}};
  for (const auto& value : CLI::detail::split(text.substr(equals + 1), ',')) {
    over.second.push_back(simulator::parse_count(value, "--over"));
  }
  return over;
}

// One row for each budget, or each loss.
void answer_each(const std::vector<double>& values,
                 std::optional<double> fitting::OptimumQuestion::*asked,
                 fitting::OptimumAnswer& answer) {
  for (const double value : values) {
    answer.question.*asked = value;
    answer.rows.push_back({value, fitting::optimum(answer.law, answer.question)});
  }
  (answer.question.*asked).reset();
}

void answer_one(const Options& options, fitting::OptimumAnswer& answer) {
  auto& question = answer.question;
  if (!options.bits.empty()) {
    const auto best = fitting::best_bits(answer.law, question, options.bits);
    answer.varied = "bits";
    answer.rows = {{best.bits, best.at}};
    if (!best.inside) {
      answer.rows.front().at.warnings.push_back("no number of bits is best: the answer lies at the end of what was searched");
    }
  } else if (!options.samples.empty()) {
    answer.varied = "samples";
    answer.rows = fitting::sample_choices(answer.law, question, simulator::parse_count(options.tokens_a_sample, "--tokens-a-sample"),
                                          simulator::parse_count(options.queries, "--queries"), counts(options.samples, "--samples"));
  } else if (!options.over.empty()) {
    const auto [variable, values] = read_over(options.over);
    answer.varied = variable;
    answer.rows = fitting::choices(answer.law, question, variable, values);
  }
  if (const auto* best = fitting::best_choice(answer.rows, question)) answer.best = best->value;
}

// Sizes against the best: those that are asked for, else some around it.
void compare(std::vector<double> sizes, fitting::OptimumAnswer& answer) {
  const bool given = !sizes.empty();
  const auto& best = answer.rows.front().at;
  if (given && answer.question.parameters) {
    throw core::InputError("--compare: found with a size that is given, expected the best to compare with");
  }
  if (answer.question.parameters) return;
  if (!given) sizes = {0.25 * best.N, 0.5 * best.N, 2.0 * best.N, 4.0 * best.N};
  for (const double size : sizes) {
    auto other = fitting::detour(answer.law, answer.question, size);
    if (given || other.at.found()) answer.others.push_back(std::move(other));
  }
}

void check(const Options& options) {
  const auto one = [](bool given) { return given ? 1 : 0; };
  const int alternatives = one(!options.bits.empty()) + one(!options.samples.empty()) + one(!options.over.empty());
  if (alternatives > 1) throw core::InputError("--bits, --samples, --over: found more than one, expected one of them");
  const auto asked = options.flops.size() + options.loss.size();
  if (alternatives == 1 && asked > 1) {
    throw core::InputError("--flops, --loss: found several values, expected one with --bits, --samples or --over");
  }
  if (!options.bits.empty() && options.flops.empty()) throw core::InputError("--bits: found --loss, expected --flops");
  if (!options.compare.empty() && (options.flops.size() != 1 || alternatives > 0)) {
    throw core::InputError("--compare: expected one value of --flops, and none of --bits, --samples and --over");
  }
}

fitting::OptimumAnswer answer_of(const Options& options, const std::vector<std::string>& words, const std::vector<std::string>& flags) {
  check(options);
  fitting::OptimumAnswer answer;
  answer.version = simulator::version();
  answer.law = fitting::fitted_law(options.law);
  auto& question = answer.question = options.question;
  question.flops_per_nd = count(options.k, "--k");
  question.inference_tokens = count(options.inference, "--inference-tokens").value_or(0.0);
  question.unique_tokens = count(options.unique, "--unique-tokens");
  question.parameters = count(options.parameters, "--parameters");
  question.max_parameters = count(options.max_parameters, "--max-parameters");
  read_variables(words, flags, answer.law.law, question);
  if (question.unique_tokens && answer.law.law.formula == fitting::law_of("chinchilla").formula) {
    answer.law = fitting::with_repetition(answer.law);
  }

  const auto flops = counts(options.flops, "--flops"), loss = counts(options.loss, "--loss");
  if (!flops.empty()) question.flops = flops.front();
  if (!loss.empty()) question.loss = loss.front();
  answer.varied = flops.empty() ? "loss" : "flops";
  if (!options.bits.empty() || !options.samples.empty() || !options.over.empty()) answer_one(options, answer);
  else if (flops.size() > 1) answer_each(flops, &fitting::OptimumQuestion::flops, answer);
  else if (loss.size() > 1) answer_each(loss, &fitting::OptimumQuestion::loss, answer);
  else answer.rows = {{question.flops.value_or(question.loss.value_or(0.0)), fitting::optimum(answer.law, question)}};
  if (flops.size() == 1 && answer.varied == "flops" && answer.found()) compare(counts(options.compare, "--compare"), answer);
  return answer;
}

void add_options(CLI::App& app, Options& options) {
  auto& question = options.question;
  app.allow_extras();
  app.add_option("law", options.law, "constants of `fit --list constants`, or a law that --save wrote")->required();
  app.add_option("--flops", options.flops, "FLOPs to spend, or several")->delimiter(',');
  app.add_option("--loss", options.loss, "loss to reach with the fewest FLOPs, or several")->delimiter(',');
  app.add_option("--k", options.k, "k of C = k N D, in place of the law's own FLOPs");
  app.add_option("--inference-tokens", options.inference, "tokens served over the model's life, at a third of the FLOPs of training");
  app.add_option("--inference-price", question.inference_price, "price of a FLOP of inference over one of training")->capture_default_str();
  app.add_option("--unique-tokens", options.unique, "distinct training tokens");
  app.add_option("--parameters", options.parameters, "the size, where it is given; also --N");
  app.add_option("--max-parameters", options.max_parameters, "largest size");
  app.add_option("--eff-N", question.eff_N, "share of parameters that a recipe leaves effective")->capture_default_str();
  app.add_option("--eff-D", question.eff_D, "share of tokens that a recipe leaves effective")->capture_default_str();
  app.add_option("--bits", options.bits, "variables whose common number of bits is searched, FLOPs in proportion: P_w,P_a,P_kv")
      ->delimiter(',');
  app.add_option("--samples", options.samples, "samples of each query, to choose from: 1,10,100")->delimiter(',');
  app.add_option("--tokens-a-sample", options.tokens_a_sample, "tokens of a sample");
  app.add_option("--queries", options.queries, "queries over the model's life");
  app.add_option("--over", options.over, "a variable of the law and values to choose from: E=1,8,64");
  app.add_option("--compare", options.compare, "sizes to hold against the best; default a quarter, half, twice and four times it")
      ->delimiter(',');
  app.add_option("--confidence", question.confidence, "share of the law's draws in an interval")
      ->check(CLI::Range(0.01, 0.999))
      ->capture_default_str();
  app.add_option("--format", options.format, "table, json, csv or markdown")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown"}))
      ->capture_default_str();
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--quiet", options.quiet, "no warnings");
}

}  // namespace

int optimum_main(int argc, char** argv) {
  Options options;
  CLI::App app("The best size and tokens of a law: fit optimum LAW --flops 5.76e23. Other variables of the law, or a size: --G 8 --N 7B",
               "fit optimum");
  add_options(app, options);
  // Words of no option are variables of the law.
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  std::vector<std::string> flags;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const auto answer = answer_of(options, app.remaining(), flags);
  simulator::warn("fit", fitting::warnings_of(answer), options.quiet || options.format == "json");
  simulator::deliver(options.format == "json"       ? fitting::optimum_json(answer)
                     : options.format == "csv"      ? fitting::optimum_csv(answer)
                     : options.format == "markdown" ? fitting::optimum_markdown(answer)
                                                    : fitting::optimum_table(answer),
                     options.output);
  return answer.found() ? 0 : 1;
}
