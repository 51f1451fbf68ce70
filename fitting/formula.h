#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fitting {

// A formula over named symbols, as a person writes it: bindings "name = expression;", then the expression that is its value.
//   "R = D / U - 1; E + A / N^alpha + B / (U * (1 + R))^beta"
// Operators + - * / ^ (from the right, stronger than a sign), parentheses, numbers, names (letters, digits, _ and ') and the
// functions exp log log2 log10 sqrt abs min max.
class Formula {
 public:
  enum class Op : std::uint8_t { number, symbol, add, subtract, multiply, divide, power, negate, exp, log, sqrt, abs, min, max };
  // Operands stand before their node; equal nodes stand once.
  struct Node {
    Op op = Op::number;
    int a = -1, b = -1;    // operands; of a symbol, `a` is its index
    double number = 0.0;
    bool operator==(const Node&) const = default;
  };

  // Throws InputError "<name>: ..." that says what was found and at which character.
  static Formula parse(std::string_view text, std::string_view name);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& symbols() const { return symbols_; }  // free names, in order of first use
  const std::vector<std::string>& bindings() const { return bindings_; }
  bool uses(std::string_view symbol) const;

  // The value, symbols given in the order of symbols(). Not-a-number where it is not defined.
  double value(std::span<const double> symbols) const;
  // Values of the bindings, in the order of bindings().
  std::vector<double> binding_values(std::span<const double> symbols) const;

  const std::vector<Node>& nodes() const { return nodes_; }
  int result() const { return result_; }

 private:
  friend class FormulaParser;
  std::vector<double> node_values(std::span<const double> symbols) const;

  std::string text_;
  std::vector<std::string> symbols_, bindings_;
  std::vector<int> binding_nodes_;
  std::vector<Node> nodes_;
  int result_ = -1;
};

// One node from the values of its operands.
double apply(const Formula::Node& node, double a, double b);

// Whether a text can stand as the name of a symbol.
bool is_symbol(std::string_view text);

}  // namespace fitting
