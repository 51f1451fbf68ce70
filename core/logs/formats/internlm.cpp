// InternLM: "... -- tflops=188.0,step=36,loss=5.459,tgs (tokens/gpu/second)=4233.73,lr=7.6e-06,...,
// num_consumed_tokens=4849664,...".
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.find(",loss=") != line.npos && line.find("step=") != line.npos &&
         line.find("num_consumed_tokens=") != line.npos;
}

void read(std::string_view line, LogRun& run) {
  if (!recognises(line)) return;
  run.add_step(value_after(line, "step="), value_after(line, ",loss="));
  if (const auto tokens = value_after(line, "num_consumed_tokens=")) run.tokens = tokens;
  if (const auto rate = value_after(line, ",lr=")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat internlm;
const LogFormat internlm = {"InternLM", recognises, read};

}  // namespace core::formats
