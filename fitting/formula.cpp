#include "fitting/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/io/document.h"

namespace fitting {
namespace {

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '\''; }

constexpr int max_depth = 200;
constexpr std::size_t max_nodes = 10000;

}  // namespace

class FormulaParser {
 public:
  FormulaParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Formula parse() {
    formula_.text_ = std::string(text_);
    for (;;) {
      const auto binding = binding_name();
      const int node = sum();
      if (binding.empty()) {
        formula_.result_ = node;
        break;
      }
      expect(';');
      bound_[binding] = node;
      formula_.bindings_.push_back(binding);
      formula_.binding_nodes_.push_back(node);
    }
    skip_blanks();
    if (at_ != text_.size()) complain("an operator or the end");
    return std::move(formula_);
  }

 private:
  // "name =" before an expression; else nothing is read.
  std::string binding_name() {
    skip_blanks();
    const auto begin = at_;
    const auto name = word();
    skip_blanks();
    if (name.empty() || at_ >= text_.size() || text_[at_] != '=') {
      at_ = begin;
      return {};
    }
    if (bound_.count(name) != 0) complain(fmt::format("each name to be bound once, \"{}\" is already", name));
    if (std::find(formula_.symbols_.begin(), formula_.symbols_.end(), name) != formula_.symbols_.end()) {
      complain(fmt::format("\"{}\" to be bound before it is used", name));
    }
    ++at_;
    return name;
  }

  int sum() {
    const Depth depth(*this);
    int left = product();
    for (;;) {
      if (take('+')) left = node(Formula::Op::add, left, product());
      else if (take('-')) left = node(Formula::Op::subtract, left, product());
      else return left;
    }
  }

  int product() {
    int left = signed_power();
    for (;;) {
      if (take('*')) left = node(Formula::Op::multiply, left, signed_power());
      else if (take('/')) left = node(Formula::Op::divide, left, signed_power());
      else return left;
    }
  }

  int signed_power() {
    const Depth depth(*this);
    if (take('-')) return node(Formula::Op::negate, signed_power());
    if (take('+')) return signed_power();
    const int base = atom();
    if (!take('^')) return base;
    return power(base, signed_power());
  }

  // x^y as exp(y log x) where y is not a number: log x of a column is taken once.
  int power(int base, int exponent) {
    if (formula_.nodes_[index(exponent)].op == Formula::Op::number) return node(Formula::Op::power, base, exponent);
    return node(Formula::Op::exp, node(Formula::Op::multiply, exponent, node(Formula::Op::log, base)));
  }

  int atom() {
    skip_blanks();
    if (take('(')) {
      const int inner = sum();
      expect(')');
      return inner;
    }
    if (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] >= '0' && text_[at_] <= '9'))) return number();
    const auto name = word();
    if (name.empty()) complain("a number, a name or (");
    if (take('(')) return function(name);
    if (const auto bound = bound_.find(name); bound != bound_.end()) return bound->second;
    return symbol(name);
  }

  int number() {
    double value = 0.0;
    const auto* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) complain("a number");
    at_ += static_cast<std::size_t>(end - begin);
    return constant(value);
  }

  int function(const std::string& name) {
    using Op = Formula::Op;
    const int a = sum();
    if (name == "min" || name == "max" || name == "pow") {
      expect(',');
      const int b = sum();
      expect(')');
      return name == "pow" ? power(a, b) : node(name == "min" ? Op::min : Op::max, a, b);
    }
    expect(')');
    if (name == "exp") return node(Op::exp, a);
    if (name == "log" || name == "ln") return node(Op::log, a);
    if (name == "sqrt") return node(Op::sqrt, a);
    if (name == "abs") return node(Op::abs, a);
    if (name == "log10") return node(Op::divide, node(Op::log, a), constant(std::log(10.0)));
    if (name == "log2") return node(Op::divide, node(Op::log, a), constant(std::log(2.0)));
    complain(fmt::format("one of exp log log2 log10 sqrt abs min max pow before \"(\", found \"{}\"", core::printable(name)));
  }

  int constant(double value) { return add({Formula::Op::number, -1, -1, value}); }

  int symbol(const std::string& name) {
    auto& symbols = formula_.symbols_;
    auto found = std::find(symbols.begin(), symbols.end(), name);
    if (found == symbols.end()) found = symbols.insert(symbols.end(), name);
    return add({Formula::Op::symbol, static_cast<int>(found - symbols.begin()), -1, 0.0});
  }

  // An operation on numbers is a number.
  int node(Formula::Op op, int a, int b = -1) {
    const auto& nodes = formula_.nodes_;
    const bool fixed = nodes[index(a)].op == Formula::Op::number && (b < 0 || nodes[index(b)].op == Formula::Op::number);
    const Formula::Node made{op, a, b, 0.0};
    if (fixed) return constant(apply(made, nodes[index(a)].number, b < 0 ? 0.0 : nodes[index(b)].number));
    return add(made);
  }

  int add(const Formula::Node& made) {
    const auto key = std::make_tuple(made.op, made.a, made.b, made.number);
    if (const auto found = seen_.find(key); found != seen_.end()) return found->second;
    auto& nodes = formula_.nodes_;
    if (nodes.size() >= max_nodes) complain("a shorter formula");
    nodes.push_back(made);
    const int place = static_cast<int>(nodes.size()) - 1;
    if (!std::isnan(made.number)) seen_[key] = place;
    return place;
  }

  std::string word() {
    const auto begin = at_;
    if (at_ < text_.size() && starts_name(text_[at_])) {
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) complain(fmt::format("\"{}\"", c));
  }

  [[noreturn]] void complain(const std::string& expected) const {
    const auto found = at_ < text_.size() ? fmt::format("\"{}\"", core::printable(text_.substr(at_, 12))) : std::string("the end");
    throw core::InputError(fmt::format("{}: at character {}: found {}, expected {}", name_, at_ + 1, found, expected));
  }

  // Deep nesting is refused before the stack ends.
  struct Depth {
    explicit Depth(FormulaParser& parser) : parser_(parser) {
      if (++parser_.depth_ > max_depth) parser_.complain("fewer levels of parentheses");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    FormulaParser& parser_;
  };

  static std::size_t index(int node) { return static_cast<std::size_t>(node); }

  std::string_view text_, name_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, int> bound_;
  std::map<std::tuple<Formula::Op, int, int, double>, int> seen_;
  Formula formula_;
};

Formula Formula::parse(std::string_view text, std::string_view name) { return FormulaParser(text, name).parse(); }

bool Formula::uses(std::string_view symbol) const {
  return std::find(symbols_.begin(), symbols_.end(), symbol) != symbols_.end();
}

double apply(const Formula::Node& node, double a, double b) {
  using Op = Formula::Op;
  switch (node.op) {
    case Op::number: return node.number;
    case Op::symbol: return a;
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return a / b;
    case Op::power: return std::pow(a, b);
    case Op::negate: return -a;
    case Op::exp: return std::exp(a);
    case Op::log: return std::log(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::abs: return std::fabs(a);
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
  }
  return std::nan("");
}

std::vector<double> Formula::node_values(std::span<const double> symbols) const {
  CORE_ASSERT(symbols.size() == symbols_.size());
  std::vector<double> values(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto& node = nodes_[i];
    const auto place = static_cast<std::size_t>(std::max(node.a, 0));
    const double a = node.op == Op::symbol ? symbols[place] : node.a < 0 ? 0.0 : values[place];
    values[i] = apply(node, a, node.b < 0 ? 0.0 : values[static_cast<std::size_t>(node.b)]);
  }
  return values;
}

double Formula::value(std::span<const double> symbols) const {
  return node_values(symbols)[static_cast<std::size_t>(result_)];
}

std::vector<double> Formula::binding_values(std::span<const double> symbols) const {
  const auto nodes = node_values(symbols);
  std::vector<double> values;
  for (const int node : binding_nodes_) values.push_back(nodes[static_cast<std::size_t>(node)]);
  return values;
}

bool is_symbol(std::string_view text) {
  return !text.empty() && starts_name(text.front()) && std::all_of(text.begin(), text.end(), in_name);
}

}  // namespace fitting
