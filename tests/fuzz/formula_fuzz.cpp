// Any bytes as a formula of a law: read and evaluated without harm, or refused in one line by an InputError. What reads, reads again
// from its own text and has the same value; its rows have the values of its points.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "fitting/formula.h"
#include "fitting/law.h"
#include "fitting/row_formula.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void read_formula(std::string_view text) {
  const auto formula = fitting::Formula::parse(text, "--formula");
  std::vector<double> at;
  for (std::size_t i = 0; i < formula.symbols().size(); ++i) at.push_back(0.7 + static_cast<double>(i));
  const double value = formula.value(at);
  require(same(fitting::Formula::parse(formula.text(), "again").value(at), value));
  require(formula.binding_values(at).size() == formula.bindings().size());
  const auto law = fitting::law_of_formula(std::string(text), {});
  std::vector<std::vector<double>> columns;
  for (std::size_t v = 0; v < law.variables.size(); ++v) columns.emplace_back(3, 2.5);
  std::vector<double> values, jacobian;
  fitting::RowFormula(law, columns, 3).evaluate(std::vector<double>(law.parameters.size(), 0.5), values, &jacobian);
  require(values.size() == 3 && same(values[0], values[2]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    read_formula(text);
  } catch (const core::InputError& error) {
    require(std::string(error.what()).find('\n') == std::string::npos);
  }
  return 0;
}
