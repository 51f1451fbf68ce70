// nanochat: "step 00004/21400 (0.02%) | loss: 8.893647 | lrm: 1.00 | dt: 989.44ms | tok/sec:
// 529,882 | ...", before them "Number of parameters: 560,988,160" and "Total batch size 524,288 =>
// ...". Its validation is in bits a byte, which is no loss in nats a token.
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.starts_with("step ") && line.find(" | loss: ") != line.npos &&
         line.find("| lrm: ") != line.npos;
}

void read(std::string_view line, LogRun& run) {
  if (const auto size = value_after(line, "Number of parameters: "))
    run.N = size, run.N_words = "its count of parameters (total)";
  if (line.starts_with("Total batch size"))
    if (const auto tokens = value_after(line, "Total batch size")) run.batch_tokens = tokens;
  if (!recognises(line)) return;
  run.add_step(value_after(line, "step "), value_after(line, "| loss: "));
  // Steps count from 0: the last of 21400 is 21399.
  if (const auto total = value_after(line, "/")) run.total_steps = total;
  if (const auto rate = value_after(line, "| lrm: ")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat nanochat;
const LogFormat nanochat = {"nanochat", recognises, read};

}  // namespace core::formats
