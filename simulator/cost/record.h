#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace simulator {

// One step on the way to a duration: "waves" 3.2, "compute" 712 us.
struct PriceStep {
  std::string what;
  double value = 0.0;
  std::string unit;  // "" for a plain number
  bool operator==(const PriceStep&) const = default;
};

// What costs are made of: while it lives, the curves' keys that this thread reads and the steps that costs note, each once and
// in their order. What explains a duration is so what made it. Of nested ones the innermost records.
class Recording {
 public:
  Recording() : outer_(current) { current = this; }
  ~Recording() { current = outer_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<PriceStep>& steps() const { return steps_; }

  static void read(std::string_view key) {
    if (current != nullptr) current->add_key(key);
  }
  static void note(std::string_view what, double value, std::string_view unit = "") {
    if (current != nullptr) current->steps_.push_back({std::string(what), value, std::string(unit)});
  }

 private:
  void add_key(std::string_view key);

  static constinit inline thread_local Recording* current = nullptr;
  Recording* outer_;
  std::vector<std::string> keys_;
  std::vector<PriceStep> steps_;
};

}  // namespace simulator
