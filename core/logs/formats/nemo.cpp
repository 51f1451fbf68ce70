// NeMo: "Training epoch 0, iteration 98/99 | lr: 1.484e-05 | global_batch_size: 128 | global_step:
// 98 | reduced_train_loss: 6.181 | ... | consumed_samples: 12672", and the progress bars of its
// first version, where = stands for the colon. Steps count from 0, and so does the number behind
// the stroke.
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.find("reduced_train_loss") != line.npos && line.find("global_step") != line.npos;
}

void read(std::string_view line, LogRun& run) {
  if (const auto length = value_after(line, "seq_length: ")) run.seq_len = length;
  if (!recognises(line)) return;
  const auto step = value_after(line, "global_step");
  run.add_step(step, value_after(line, "reduced_train_loss"));
  if (const auto loss = value_after(line, "val_loss"); loss && step)
    run.validation.add(*step, *loss);
  if (const auto at = line.find("iteration "); at != line.npos)
    if (const auto total = value_after(line.substr(at), "/")) run.total_steps = total;
  if (const auto samples = value_after(line, "consumed_samples")) run.samples = samples;
  if (const auto batch = value_after(line, "global_batch_size")) run.batch_seqs = batch;
  if (const auto rate = value_after(line, "| lr: ")) run.training.add_learning_rate(*rate);
}

}  // namespace

extern const LogFormat nemo;
const LogFormat nemo = {"NeMo", recognises, read};

}  // namespace core::formats
