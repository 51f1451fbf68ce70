// nanoGPT: "iter 100: loss 3.2100, time 120.13ms, mfu 30.12%", "step 250: train loss 2.4, val
// loss 2.5" where it evaluates, and at its start "tokens per iteration will be: 491,520" and
// "number of parameters: 123.59M" (without the table of positions).
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool is_iteration(std::string_view line) {
  return line.starts_with("iter ") && line.find(": loss ") != line.npos &&
         line.find(", time ") != line.npos;
}

bool is_evaluation(std::string_view line) {
  return line.starts_with("step ") && line.find(": train loss ") != line.npos &&
         line.find(", val loss ") != line.npos;
}

bool recognises(std::string_view line) { return is_iteration(line) || is_evaluation(line); }

void read(std::string_view line, LogRun& run) {
  if (const auto tokens = value_after(line, "tokens per iteration will be: "))
    run.batch_tokens = tokens;
  if (const auto size = value_after(line, "number of parameters: "))
    run.N = size, run.N_words = "its count of parameters (without the table of positions)";
  if (is_iteration(line)) run.add_step(value_after(line, "iter "), value_after(line, ": loss "));
  if (!is_evaluation(line)) return;
  const auto step = value_after(line, "step "), loss = value_after(line, ", val loss ");
  if (step && loss) run.validation.add(*step, *loss);
}

}  // namespace

extern const LogFormat nanogpt;
const LogFormat nanogpt = {"nanoGPT", recognises, read};

}  // namespace core::formats
