// torchtitan: "... step: 10  loss: 10.2391  grad_norm: 16.1413  memory: 44.84GiB(47.19%)  tps:
// 5,615 ...", a line of each rank that prints; at its start the size of the model and of a batch.
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  const auto step = line.find("step: ");
  return step != line.npos && line.find(" loss: ", step) != line.npos &&
         line.find(" memory: ", step) != line.npos && line.find("tps: ", step) != line.npos;
}

// "Model llama3 8B size: 8,030,261,248 total parameters"
void read_start(std::string_view line, LogRun& run) {
  if (line.find(" total parameters") != line.npos)
    if (const auto size = value_after(line, "size: "))
      run.N = size, run.N_words = "its count of all parameters (total)";
  if (line.find("Training starts at step") == line.npos) return;
  if (const auto batch = value_after(line, "global batch size ")) run.batch_seqs = batch;
  if (const auto length = value_after(line, "sequence length ")) run.seq_len = length;
  if (const auto total = value_after(line, "total steps ")) run.total_steps = total;
}

void read(std::string_view line, LogRun& run) {
  read_start(line, run);
  if (!recognises(line)) return;
  const auto rest = line.substr(line.find("step: "));
  const auto step = value_after(rest, "step: ");
  const bool validation = line.find("validate") != line.npos;
  const auto loss = value_after(rest, " loss: ");
  if (validation && step && loss) run.validation.add(*step, *loss);
  if (!validation) run.add_step(step, loss);
}

}  // namespace

extern const LogFormat torchtitan;
const LogFormat torchtitan = {"torchtitan", recognises, read};

}  // namespace core::formats
