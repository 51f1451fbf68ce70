// llm.c: "step    1/18865 | loss 11.009000 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | ... tok/s", of
// its other programs "step 0: train loss 5.356189 (took 4.8 ms)" and "step 1/37: train loss 4.7
// (acc 4.7) (30 ms, 5120 tok/s)"; "val loss 3.28" between them; at its start "| num_parameters |
// 124475904 |" and "| total batch size      | 524288 |", or "num_parameters: 124439808".
#include <algorithm>

#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.starts_with("step ") && line.find("loss ") != line.npos &&
         (line.find("tok/s") != line.npos || line.find("(took ") != line.npos);
}

void read_start(std::string_view line, LogRun& run) {
  for (const std::string_view words : {"| num_parameters        |", "num_parameters:"}) {
    if (!line.starts_with(words)) continue;
    if (const auto size = value_after(line, words))
      run.N = size, run.N_words = "its count of parameters (total, the vocabulary padded)";
  }
  if (line.starts_with("| total batch size "))
    if (const auto tokens = value_after(line, "| total batch size      |"))
      run.batch_tokens = tokens;
}

void read(std::string_view line, LogRun& run) {
  read_start(line, run);
  if (line.starts_with("val loss "))
    if (const auto loss = value_after(line, "val loss "))
      run.validation.add(run.training.empty() ? 0.0 : run.training.last_step(), *loss);
  if (!recognises(line)) return;
  run.add_step(value_after(line, "step "), value_after(line, "loss "));
  const auto step = line.substr(0, std::min(line.find("loss "), line.size()));
  if (const auto total = value_after(step, "/")) run.total_steps = total;
  if (const auto rate = value_after(line, "| lr ")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat llm_c;
const LogFormat llm_c = {"llm.c", recognises, read};

}  // namespace core::formats
