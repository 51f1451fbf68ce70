// llm.c: "step    1/18865 | loss 11.009000 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | ... tok/s",
// "val loss 3.28" between them, and at its start a table ("| num_parameters        | 124475904 |",
// "| total batch size      | 524288 |").
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.starts_with("step ") && line.find('/') != line.npos &&
         line.find("| loss ") != line.npos && line.find("tok/s") != line.npos;
}

void read_start(std::string_view line, LogRun& run) {
  if (!line.starts_with("| ")) return;
  if (const auto size = value_after(line, "| num_parameters        |"))
    run.N = size, run.N_words = "its count of parameters (total, padded vocabulary)";
  if (const auto tokens = value_after(line, "| total batch size      |")) run.batch_tokens = tokens;
}

void read(std::string_view line, LogRun& run) {
  read_start(line, run);
  if (line.starts_with("val loss ") && !run.training.empty())
    if (const auto loss = value_after(line, "val loss "))
      run.validation.add(run.training.last_step(), *loss);
  if (!recognises(line)) return;
  run.add_step(value_after(line, "step "), value_after(line, "| loss "));
  if (const auto total = value_after(line, "/")) run.total_steps = total;
  if (const auto rate = value_after(line, "| lr ")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat llm_c;
const LogFormat llm_c = {"llm.c", recognises, read};

}  // namespace core::formats
