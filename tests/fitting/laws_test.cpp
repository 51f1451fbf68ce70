#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "fitting/fitted_law.h"
#include "fitting/law.h"

namespace fitting {
namespace {

using Point = std::map<std::string, double>;

double value_of(const std::string& law, const Point& parameters, const Point& at) {
  const auto& form = law_of(law);
  std::vector<double> values;
  for (const auto& parameter : form.parameters) values.push_back(parameters.at(parameter.name));
  EXPECT_EQ(values.size(), parameters.size()) << law;
  return LawFunction(form).value(values, variables_of(form, at));
}

// A point where every law is defined.
double usual(const std::string& variable) {
  static const Point values = {{"N", 1e9}, {"D", 1e11}, {"U", 1e11}, {"C", 1e20}, {"S", 0.5}, {"E", 4.0}, {"G", 8.0}, {"M", 3.0},
                               {"B", 128.0}, {"L", 2.5}, {"P", 4.0}, {"k", 10.0}, {"x", 1e9}, {"N_once", 1e8}, {"N_rec", 1e9}, {"r", 2.0},
                               {"Q", 1.0}, {"D_F", 1e8}, {"P_w", 8.0}, {"P_a", 8.0}, {"P_kv", 8.0}, {"N_shared", 1e8},
                               {"eff_N", 0.9}, {"eff_D", 0.9}};
  return values.at(variable);
}

std::vector<double> usual_point(const Law& law) {
  std::vector<double> values;
  for (const auto& variable : law.variables) values.push_back(usual(variable.name));
  return values;
}

TEST(Laws, UseEachVariableAndParameter) {
  for (const auto* law : laws::all()) {
    const auto formula = Formula::parse(law->formula, law->name);
    for (const auto& parameter : law->parameters) EXPECT_TRUE(formula.uses(parameter.name)) << law->name << " " << parameter.name;
    for (const auto& variable : law->variables) {
      const bool of_flops = !law->training_flops.empty() && Formula::parse(law->training_flops, law->name).uses(variable.name);
      EXPECT_TRUE(formula.uses(variable.name) || of_flops) << law->name << " " << variable.name;
    }
    EXPECT_NO_THROW(LawFunction{*law}) << law->name;
      EXPECT_FALSE(law->source.empty()) << law->name;
  }
}

TEST(Laws, StartWithinTheirBounds) {
  for (const auto* law : laws::all()) {
    double starts = 1.0;
    for (const auto& parameter : law->parameters) {
      EXPECT_LT(parameter.low, parameter.high) << law->name << " " << parameter.name;
      EXPECT_FALSE(parameter.starts.empty()) << law->name << " " << parameter.name;
      EXPECT_TRUE(std::is_sorted(parameter.starts.begin(), parameter.starts.end())) << law->name << " " << parameter.name;
      for (const double start : parameter.starts) {
        EXPECT_TRUE((start >= parameter.low && start <= parameter.high) || law->name == "chinchilla") << law->name << " " << parameter.name;
      }
      starts *= static_cast<double>(parameter.starts.size());
    }
    EXPECT_LE(starts, 5000.0) << law->name;
  }
}

TEST(Laws, SpendFlopsInProportionToTokens) {
  for (const auto* law : laws::all()) {
    if (law->training_flops.empty()) continue;
    auto point = usual_point(*law);
    const double once = training_flops(*law, point);
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (law->variables[i].name == "D") point[i] *= 2.0;
    }
    EXPECT_GT(once, 0.0) << law->name;
    EXPECT_DOUBLE_EQ(training_flops(*law, point), 2.0 * once) << law->name;
  }
}

TEST(LawSets, BelongToTheLawOfTheirName) {
  static const std::set<std::string> counts = {"", "total", "nonemb", "active", "dense base", "total without embeddings", "with output layer"};
  for (const auto& name : fitted_law_names()) {
    const auto set = fitted_law(name);
    EXPECT_EQ(name.rfind(set.law.name + "-", 0), 0U) << name;
    EXPECT_FALSE(set.source.empty()) << name;
    EXPECT_EQ(counts.count(set.counts), 1U) << name << " " << set.counts;
    const bool has_size = std::any_of(set.law.variables.begin(), set.law.variables.end(), [](const auto& v) { return v.name == "N"; });
    EXPECT_TRUE(!has_size || !set.counts.empty()) << name;
    for (const auto& warning : set.warnings) EXPECT_EQ(warning.find('\n'), std::string::npos) << name;
  }
}

TEST(LawSets, LieWithinTheBoundsOfAFitAndHaveAValue) {
  for (const auto& name : fitted_law_names()) {
    const auto set = fitted_law(name);
    for (std::size_t i = 0; i < set.parameters.size(); ++i) {
      const auto& parameter = set.law.parameters[i];
      const double at = parameter.scale == Scale::log ? std::log(set.parameters[i]) : set.parameters[i];
      EXPECT_TRUE(at >= parameter.low && at <= parameter.high) << name << " " << parameter.name;
    }
    EXPECT_TRUE(std::isfinite(LawFunction(set.law).value(set.parameters, usual_point(set.law)))) << name;
    for (const auto& [symbol, ends] : set.range) EXPECT_LT(ends.low, ends.high) << name << " " << symbol;
  }
}

// Forms that become another one.
const Point base = {{"A", 400.0}, {"B", 2000.0}, {"E", 1.8}, {"alpha", 0.35}, {"beta", 0.37}};
const Point at = {{"N", 1e9}, {"D", 2e10}};

Point with(Point values, const Point& more) {
  values.insert(more.begin(), more.end());
  return values;
}

double chinchilla() { return 1.8 + 400.0 / std::pow(1e9, 0.35) + 2000.0 / std::pow(2e10, 0.37); }

TEST(Laws, BecomeChinchilla) {
  EXPECT_NEAR(value_of("chinchilla", base, at), chinchilla(), 1e-12);
  EXPECT_NEAR(value_of("general-q", with(base, {{"q", 1.0}}), at), chinchilla(), 1e-12);
  EXPECT_NEAR(value_of("pearce-song", with(base, {{"omega", 0.0}}), at), chinchilla(), 1e-12);
  EXPECT_NEAR(value_of("effective", base, at), chinchilla(), 1e-12);
  EXPECT_NEAR(value_of("frantar", with(base, {{"eff", 0.5}}), with(at, {{"Q", 0.0}})), chinchilla(), 1e-12);
  EXPECT_NEAR(value_of("looped", with(base, {{"phi", 0.46}}), {{"N_once", 4e8}, {"N_rec", 6e8}, {"r", 1.0}, {"D", 2e10}}), chinchilla(), 1e-12);
  const Point gammas = {{"gamma_w", 2.6}, {"gamma_a", 2.2}, {"gamma_kv", 0.95}};
  EXPECT_NEAR(value_of("kumar-plain", with(base, gammas), at), chinchilla(), 1e-12);
  const Point chen = {{"k", 0.1}, {"gamma_N", 0.2}, {"gamma_D", 0.1}, {"gamma_G", 0.8}};
  EXPECT_NEAR(value_of("chen", with(base, chen), with(at, {{"G", 1.0}})), chinchilla(), 1e-12);
}

// One exponent for both terms: a = A 6^eta, b = B 6^eta, eta = alpha / 2.
TEST(Laws, GadreIsChinchillaOfOneExponent) {
  const double eta = 0.175, six = std::pow(6.0, eta);
  const Point gadre = {{"a", 400.0 * six}, {"b", 2000.0 * six}, {"E", 1.8}, {"eta", eta}};
  EXPECT_NEAR(value_of("gadre", gadre, at), 1.8 + 400.0 / std::pow(1e9, 0.35) + 2000.0 / std::pow(2e10, 0.35), 1e-12);
}

TEST(Laws, RepeatedTokensAreWorthLess) {
  const Point repeated = with(base, {{"R_D_star", 15.0}, {"R_N_star", 5.0}});
  const auto loss = [&](double n, double u) { return value_of("data-constrained", repeated, {{"N", n}, {"D", 2e10}, {"U", u}}); };
  // 2e10 tokens are best for 6.6e8 parameters: N = G (G D)^(beta / alpha), G = (0.35 400 / (0.37 2000))^(1 / 0.72).
  const double once = 1.8 + 400.0 / std::pow(5e8, 0.35) + 2000.0 / std::pow(2e10, 0.37);
  EXPECT_NEAR(loss(5e8, 2e10), once, 1e-12);
  EXPECT_NEAR(loss(5e8, 1e12), once, 1e-12);
  EXPECT_GT(loss(5e8, 5e9), once);
  EXPECT_GT(loss(1e9, 2e10), chinchilla());  // parameters beyond those count less
}

TEST(Laws, RepetitionsDecay) {
  const auto bindings = LawFunction(law_of("data-constrained")).bindings({400.0, 2000.0, 1.8, 0.35, 0.37, 15.0, 5.0}, {1e9, 2e10, 4e9});
  const auto found = std::find_if(bindings.begin(), bindings.end(), [](const auto& b) { return b.first == "D'"; });
  ASSERT_NE(found, bindings.end());
  EXPECT_NEAR(found->second, 4e9 * (1.0 + 15.0 * (1.0 - std::exp(-4.0 / 15.0))), 1.0);  // five epochs: R_D = 4
}

TEST(Laws, BitsThatLeaveNothingHaveNoLoss) {
  const auto law = fitted_law("kumar-published");
  const LawFunction function(law.law);
  // At 3 bits the factor of activations is negative; with that of keys and values at 2 bits (also negative) it must not turn positive.
  EXPECT_TRUE(std::isnan(function.value(law.parameters, variables_of(law.law, {{"N", 1e8}, {"D", 1e10}, {"P_a", 3.0}}))));
  EXPECT_TRUE(std::isnan(function.value(law.parameters, variables_of(law.law, {{"N", 1e8}, {"D", 1e10}, {"P_a", 3.0}, {"P_kv", 2.0}}))));
}

TEST(Laws, KumarsFormsAgree) {
  const Point gammas = {{"gamma_w", 2.6}, {"gamma_a", 2.2}, {"gamma_kv", 0.95}};
  const Point bits = {{"N", 1e9}, {"D", 2e10}, {"P_w", 4.0}, {"P_a", 8.0}, {"P_kv", 8.0}};
  const double main = value_of("kumar-plain", with(base, gammas), bits);
  const double N_eff = 1e9 * (1.0 - std::exp(-4.0 / 2.6)) * (1.0 - std::exp(-8.0 / 2.2)) * (1.0 - std::exp(-8.0 / 0.95));
  EXPECT_NEAR(main, 1.8 + 400.0 / std::pow(N_eff, 0.35) + 2000.0 / std::pow(2e10, 0.37), 1e-12);
  EXPECT_NEAR(value_of("kumar", with(with(base, gammas), {{"n_w", 0.0}, {"n_a", 0.0}, {"n_kv", 0.0}}), bits), main, 1e-12);
  const Point after = {{"C_T", 0.06}, {"gamma_D", 0.5}, {"gamma_N", 0.34}, {"gamma_post", 0.6}, {"C_w", 1e3}, {"C_a", 1e3}, {"C_kv", 1e3}};
  const double delta = 0.06 * std::pow(2e10, 0.5) / std::pow(N_eff, 0.34) * std::exp(-3.0 / 0.6);
  EXPECT_NEAR(value_of("kumar-unified", with(with(base, gammas), after), with(bits, {{"P", 3.0}})), main + delta, 1e-12);
}

// The same loss as E experts of a base: at one expert that is the base itself.
TEST(Laws, ClarkKnowsTheDenseModelOfTheSameLoss) {
  const auto law = fitted_law("clark-s-base");
  const LawFunction function(law.law);
  const auto dense = [&](double experts) {
    for (const auto& [name, value] : function.bindings(law.parameters, {1e9, experts})) {
      if (name == "N_dense") return value;
    }
    return 0.0;
  };
  EXPECT_NEAR(dense(1.0) / 1e9, 1.0, 1e-9);
  EXPECT_GT(dense(64.0), 2e9);
  EXPECT_NEAR(function.value(law.parameters, {dense(64.0), 1.0}), function.value(law.parameters, {1e9, 64.0}), 1e-12);
}

// For fixed experts it is m N^mu + n D^nu + c with mu = alpha + gamma ln E_hat.
TEST(Laws, JointMixtureIsChinchillaAtFixedExperts) {
  const Point joint = {{"a", 35.0}, {"b", 400.0}, {"c", 1.5}, {"alpha", -0.2}, {"beta", -0.3}, {"gamma", 0.004}, {"delta", -0.2},
                       {"omega", 0.1}, {"zeta", 0.01}, {"E_start", 2.0}, {"E_max", 300.0}};
  const double E_hat = 1.0 / (1.0 / (8.0 - 1.0 + 1.0 / (1.0 / 2.0 - 1.0 / 300.0)) + 1.0 / 300.0);
  const double expected = 35.0 * std::pow(E_hat, -0.2) * std::pow(1e9, -0.2 + 0.004 * std::log(E_hat)) +
                          400.0 * std::pow(E_hat, 0.1) * std::pow(2e10, -0.3 + 0.01 * std::log(E_hat)) + 1.5;
  EXPECT_NEAR(value_of("joint-moe", joint, with(at, {{"E", 8.0}})), expected, 1e-12);
}

// D_crit is where loss stops to fall.
TEST(Laws, FloatingPointOfFewBitsHasACriticalNumberOfTokens) {
  const auto law = fitted_law("sun-published");
  const LawFunction function(law.law);
  const auto loss = [&](double d, double e, double m) { return function.value(law.parameters, {1e9, d, e, m, 128.0}); };
  const double d_crit = function.bindings(law.parameters, {1e9, 1e11, 2.0, 1.0, 128.0}).back().second;
  EXPECT_GT(loss(1.02 * d_crit, 2.0, 1.0), loss(d_crit, 2.0, 1.0));
  EXPECT_GT(loss(0.98 * d_crit, 2.0, 1.0), loss(d_crit, 2.0, 1.0));
  // Of P = E + M + 1 bits: E = delta P / (delta + nu) - 1/2.
  const double share = 3.1926 / (3.1926 + 2.9543);
  const double e = share * 8.0 - 0.5, m = 7.0 - e;
  EXPECT_LT(loss(1e12, e, m), loss(1e12, e + 0.1, m - 0.1));
  EXPECT_LT(loss(1e12, e, m), loss(1e12, e - 0.1, m + 0.1));
}

TEST(Laws, CriticalBatchIsAHyperbola) {
  const Point values = {{"S_min", 1e4}, {"B_crit", 2e6}};
  const double S = value_of("mccandlish", values, {{"B", 5e5}});
  EXPECT_NEAR((S / 1e4 - 1.0) * (5e5 * S / (2e6 * 1e4) - 1.0), 1.0, 1e-12);
}

TEST(Laws, RemainingFormsAreAsWritten) {
  EXPECT_NEAR(value_of("kaplan-steps", {{"alpha_N", 0.1}, {"alpha_S", 0.5}, {"N_c", 1e13}, {"S_c", 100.0}}, {{"N", 1e9}, {"S", 1e4}}),
              std::pow(1e4, 0.1) + 0.1, 1e-12);
  EXPECT_NEAR(value_of("broken", {{"a", 1.0}, {"b", 2.0}, {"c_0", 0.5}, {"c_1", 0.25}, {"d_1", 1e4}, {"f_1", 1.0}}, {{"x", 1e4}}),
              1.0 + 2.0 / 100.0 * std::pow(2.0, -0.25), 1e-12);
  EXPECT_NEAR(value_of("rosenfeld", {{"a", 1.0}, {"b", 1.0}, {"c", 2.8}, {"alpha", 1.0}, {"beta", 1.0}, {"epsilon_0", 0.9}, {"eta", 4.0}},
                       {{"N", 10.0}, {"D", 10.0}}),
              0.9 * 3.0 / 5.0, 1e-12);
  EXPECT_NEAR(value_of("frantar-sparse", {{"a_S", 3.0}, {"b_S", 2.0}, {"c_S", 1.0}, {"b_N", 0.5}, {"a_D", 1e6}, {"b_D", 0.5}, {"c", 1.5}},
                       {{"N", 1e8}, {"D", 1e10}, {"S", 0.5}}),
              1.75 / 1e4 + 0.01 + 1.5, 1e-12);
  EXPECT_NEAR(value_of("farseer", {{"a_1", 0.1}, {"b_1", -1.0}, {"a_2", 0.2}, {"b_2", 1.0}, {"a_3", -0.1}, {"b_3", 0.5}, {"alpha", 0.1},
                                   {"beta", 0.2}, {"gamma", 0.15}},
                       {{"N", 1e9}, {"D", 1e10}}),
              std::exp(-0.1 * std::pow(1e9, 0.15) + 0.5) +
                  std::exp(0.2 * std::pow(1e9, 0.2) + 1.0) * std::pow(1e10, -std::exp(0.1 * std::pow(1e9, 0.1) - 1.0)),
              1e-9);
  EXPECT_NEAR(value_of("henighan", {{"L_inf", 1.5}, {"x_0", 1e12}, {"alpha", 0.25}}, {{"x", 1e20}}), 1.51, 1e-12);
  EXPECT_NEAR(value_of("gadre-error", {{"epsilon", 0.9}, {"k", 2.0}, {"gamma", 0.5}}, {{"L", 3.0}}), 0.9 - 2.0 * std::exp(-1.5), 1e-12);
  EXPECT_NEAR(value_of("minicpm", {{"k", 0.01}, {"eta", -0.1}}, {{"C", 6e20}}), 0.01 * 1e-2, 1e-12);
  EXPECT_NEAR(value_of("coverage", {{"a", -2.0}, {"b", -0.5}}, {{"k", 100.0}}), std::exp(-0.2), 1e-12);
}

// Published statements that follow from the constants.
TEST(LawSets, GiveWhatTheirPapersSay) {
  const auto value = [](const std::string& name, const Point& point) {
    const auto set = fitted_law(name);
    return LawFunction(set.law).value(set.parameters, variables_of(set.law, point));
  };
  EXPECT_NEAR(value("llama3-tokens-published", {{"C", 3.8e25}}) / 16.55e12, 1.0, 0.02);  // the constants have three digits
  EXPECT_NEAR(value("deepseek-batch-published", {{"C", 1e20}}) / 1.0e6, 1.0, 0.02);
  EXPECT_NEAR(value("spectra-trilm", {{"N", 1.1e9}}) / value("spectra-floatlm", {{"N", 1.1e9}}), 1.087, 0.001);
  EXPECT_NEAR(value("spectra-trilm", {{"N", 3.9e9}}) / value("spectra-floatlm", {{"N", 3.9e9}}), 1.080, 0.001);
  const auto clark = fitted_law("clark-s-base");
  EXPECT_NEAR(LawFunction(clark.law).value(clark.parameters, {1.3e9, 1.0}), 2.24, 0.02);
  // Extrapolated to 5.88e23 FLOPs: 3e12, 787e9, 292e9, 183e9 and 77e9 parameters. Exponents have four digits.
  const std::vector<std::pair<std::string, double>> porian = {
      {"kaplan", 3e12}, {"output-layer", 787e9}, {"warmup", 292e9}, {"cosine", 183e9}, {"tuned", 77e9}};
  for (const auto& [set, size] : porian) EXPECT_NEAR(value("porian-" + set, {{"C", 5.88e23}}) / size, 1.0, 0.02) << set;
  // 1.16 times the compute of latent attention near 4 PF-days.
  EXPECT_NEAR(value("kimi-mla", {{"C", 1.16 * 4.0 * 8.64e19}}), value("kimi-linear", {{"C", 4.0 * 8.64e19}}), 0.001);
}

}  // namespace
}  // namespace fitting
