// nanotron: "... iteration: 211364 / 1500000 | consumed_tokens: 480B | ... | lm_loss: 2.04 | lr:
// 0.0001 | ...", numbers in three digits with a size.
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.find("iteration: ") != line.npos && line.find("| lm_loss: ") != line.npos;
}

void read(std::string_view line, LogRun& run) {
  if (!recognises(line)) return;
  const auto at = line.find("iteration: ");
  run.add_step(value_after(line, "iteration: "), value_after(line, "| lm_loss: "));
  if (const auto total = value_after(line.substr(at), " / ")) run.total_steps = total;
  if (const auto tokens = value_after(line, "consumed_tokens: ")) run.tokens = tokens;
  if (const auto rate = value_after(line, "| lr: ")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat nanotron;
const LogFormat nanotron = {"nanotron", recognises, read};

}  // namespace core::formats
