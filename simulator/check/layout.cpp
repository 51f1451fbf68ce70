#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/io/document.h"
#include "simulator/check/plan_of.h"

namespace simulator {

namespace {

constexpr std::size_t most_slots = 1 << 16;

class Layout {
 public:
  explicit Layout(std::string_view text) : text_(text) {}

  // All repetitions written out.
  std::string expanded() {
    std::string out = sequence(0);
    if (at_ != text_.size()) refuse();
    return out;
  }

 private:
  std::string sequence(int depth) {
    std::string out;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string item = one(depth);
      const auto times = repetitions();
      for (std::size_t i = 0; i < times; ++i) {
        out += item;
        if (out.size() > most_slots) refuse();
      }
    }
    return out;
  }
  std::string one(int depth) {
    const char c = text_[at_++];
    if (std::string_view("EtmL|").find(c) != std::string_view::npos) return std::string(1, c);
    if (c != '(' || depth > 8) refuse();
    std::string group = sequence(depth + 1);
    if (at_ >= text_.size() || text_[at_++] != ')') refuse();
    return group;
  }
  std::size_t repetitions() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t times = 0;
    for (++at_; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 &&
                times < most_slots;
         ++at_) {
      times = 10 * times + static_cast<std::size_t>(text_[at_] - '0');
    }
    if (times == 0) refuse();
    return times;
  }
  [[noreturn]] void refuse() const {
    throw core::InputError(fmt::format("pp_layout {}: expected stages such as Et*3|(tt|)*6mL",
                                       core::printable(text_)));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::int64_t> layers_of_layout(std::string_view layout) {
  std::vector<std::int64_t> layers{0};
  for (const char c : Layout(layout).expanded()) {
    if (c == '|')
      layers.push_back(0);
    else
      layers.back() += c == 't' ? 1 : 0;
  }
  return layers;
}

}  // namespace simulator
