// Hugging Face's Trainer: "{'loss': 2.5, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.01}"
// a line, without its step: that is the share of epochs that are done, or stands in the progress
// bar before it ("10/1000 [").
#include <cmath>

#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.find("{'loss': ") != line.npos || line.find("{'eval_loss': ") != line.npos ||
         line.find("{'train_runtime': ") != line.npos;
}

// "***** Running training *****" and what follows it.
void read_start(std::string_view line, LogRun& run) {
  const auto keep = [&](std::string_view words, std::optional<double>& value) {
    if (const auto found = value_after(line, words)) value = found;
  };
  keep("Total optimization steps = ", run.total_steps);
  keep("accumulation) = ", run.batch_seqs);
  if (const auto size = value_after(line, "Number of trainable parameters = "))
    run.N = size, run.N_words = "its count of trainable parameters (total)";
  if (const auto epochs = number_after(line, "Num Epochs = "))
    run.arguments["epochs"] = std::to_string(*epochs);
}

// The progress bar in a line ("50%|##   | 50/100 [00:10<...") where it counts the steps of the run,
// not those of an evaluation.
void read_bar(std::string_view line, LogRun& run) {
  const auto bracket = line.rfind(" [", line.find("{'"));
  const auto stroke = bracket == line.npos ? line.npos : line.rfind('/', bracket);
  if (stroke == line.npos || stroke == 0) return;
  const auto blank = line.find_last_not_of("0123456789", stroke - 1);
  const auto step = number_after(line.substr(blank == line.npos ? 0 : blank + 1), "");
  const auto total = number_after(line.substr(stroke + 1), "");
  if (!step || !total || *step > *total || (run.total_steps && *run.total_steps != *total)) return;
  run.total_steps = total;
  run.arguments["bar"] = std::to_string(*step);
}

std::optional<double> step_of(std::string_view line, const LogRun& run) {
  if (const auto bar = run.arguments.find("bar"); bar != run.arguments.end())
    return number_after(bar->second, "");
  const auto epochs = run.arguments.find("epochs");
  const auto epoch = value_after(line, "'epoch': ");
  if (!run.total_steps || !epoch || epochs == run.arguments.end()) return std::nullopt;
  const auto all = number_after(epochs->second, "");
  if (!all || *all <= 0.0) return std::nullopt;
  return std::round(*run.total_steps * *epoch / *all);
}

void read(std::string_view line, LogRun& run) {
  read_bar(line, run);
  if (!recognises(line)) {
    read_start(line, run);
    return;
  }
  auto step = step_of(line, run);
  const auto loss = value_after(line, "{'loss': "), evaluated = value_after(line, "{'eval_loss': ");
  if (!step) {
    step = static_cast<double>(run.training.points() + (loss ? 1 : 0));
    if (loss || evaluated) run.counts_steps = false;
  }
  run.add_step(step, loss);
  if (evaluated) run.validation.add(*step, *evaluated);
  for (const std::string_view key : {"'num_input_tokens_seen': ", "'num_tokens': "})
    if (const auto tokens = value_after(line, key)) run.tokens = tokens;
  if (const auto rate = value_after(line, "'learning_rate': "))
    run.training.add_learning_rate(*rate);
}

// Steps that are only an order say nothing of how many there were to be.
void finish(LogRun& run) {
  if (!run.counts_steps) run.total_steps.reset();
}

}  // namespace

extern const LogFormat hugging_face;
const LogFormat hugging_face = {"the Hugging Face Trainer", recognises, read, finish};

}  // namespace core::formats
