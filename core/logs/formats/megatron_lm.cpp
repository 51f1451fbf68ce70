// Megatron-LM, Megatron-DeepSpeed and Megatron-Bridge: "iteration 44/ 100 | consumed samples: 5632
// | ... | lm loss: 1.875063E+00 | ...", what they say of validation, and the arguments at the
// start, whose model is counted where the log has no total.
#include <charconv>

#include "core/logs/log_format.h"
#include "core/logs/log_text.h"

namespace core::formats {

namespace {

bool recognises(std::string_view line) {
  return line.find("elapsed time per iteration (") != line.npos &&
         line.find("iteration") != line.npos;
}

// Arguments of the model as numbers.
class Shape {
 public:
  explicit Shape(const std::map<std::string, std::string>& arguments) : arguments_(arguments) {}
  std::string text(const std::string& name) const {
    const auto found = arguments_.find(name);
    return found == arguments_.end() || found->second == "None" ? std::string() : found->second;
  }
  bool on(const std::string& name) const { return text(name) == "True"; }
  double number(const std::string& name, double otherwise) const {
    return number_after(text(name), "").value_or(otherwise);
  }

 private:
  const std::map<std::string, std::string>& arguments_;
};

double attention(const Shape& s, double h) {
  const double heads = s.number("num_attention_heads", 0.0);
  const double q = heads * s.number("kv_channels", heads > 0.0 ? h / heads : 0.0);
  const double groups = s.on("group_query_attention") ? s.number("num_query_groups", heads) : heads;
  const double kv = heads > 0.0 ? q / heads * groups : 0.0;
  const double bias =
      s.on("disable_bias_linear") || s.text("add_bias_linear") == "False" ? 0.0 : q + 2 * kv + h;
  return 2 * h * q + 2 * h * kv + bias;
}

double mlp(const Shape& s, double h) {
  const bool gated = s.on("swiglu") || !s.text("glu_activation").empty();
  const double f = s.number("ffn_hidden_size", 4 * h), up = gated ? 2 * f : f;
  const double bias =
      s.on("disable_bias_linear") || s.text("add_bias_linear") == "False" ? 0.0 : up + h;
  return h * up + f * h + bias;
}

// All parameters of a dense decoder: Narayanan et al. 2021 (arXiv 2104.04473), equation 2, with the
// biases and norms that it counts as 13 h a layer, and with what later arguments change. Nothing
// where the arguments are of another kind of model.
std::optional<double> parameters(const Shape& s, std::optional<double> vocabulary) {
  const double h = s.number("hidden_size", 0.0), layers = s.number("num_layers", 0.0);
  if (h <= 0.0 || layers <= 0.0 || !vocabulary || !s.text("num_experts").empty() ||
      s.on("multi_latent_attention"))
    return std::nullopt;
  const double norm = s.text("normalization") == "RMSNorm" ? h : 2 * h;
  const auto positions = s.text("position_embedding_type");
  const bool learned = positions.empty() || positions.find("absolute") != std::string::npos;
  const double tables =
      *vocabulary * h * (s.on("untie_embeddings_and_output_weights") ? 2.0 : 1.0) +
      (learned ? h * s.number("max_position_embeddings", s.number("seq_length", 0.0)) : 0.0) +
      (s.on("embed_layernorm") ? norm : 0.0);
  return layers * (attention(s, h) + mlp(s, h) + 2 * norm) + norm + tables;
}

void read_start(std::string_view line, LogRun& run) {
  if (const auto argument = dotted_argument(line))
    run.arguments[std::string(argument->first)] = argument->second;
  if (line.find("> padded vocab (size: ") != line.npos)
    if (const auto size = value_after(line, "(size: "))
      run.arguments["entries"] = std::to_string(*size);
  if (const auto billions = value_after(line, "Total number of parameters in billions: "))
    run.N = *billions * 1e9, run.N_words = "its total, in billions (total)";
}

void read(std::string_view line, LogRun& run) {
  read_start(line, run);
  if (const auto at = line.find("validation loss at iteration "); at != line.npos) {
    const auto step = value_after(line, "validation loss at iteration "),
               loss = value_after(line, "lm loss value: ");
    if (step && loss) run.validation.add(*step, *loss);
  }
  if (!recognises(line)) return;
  const auto rest = line.substr(line.find("iteration"));
  const auto loss = value_after(rest, "| lm loss: ");
  run.add_step(value_after(rest, "iteration"), loss ? loss : value_after(rest, "| lm-loss: "));
  const auto keep = [&](std::string_view word, std::optional<double>& value) {
    if (const auto found = value_after(rest, word)) value = found;
  };
  keep("/", run.total_steps);
  keep("consumed samples:", run.samples);
  keep("consumed tokens:", run.tokens);
  keep("global batch size:", run.batch_seqs);
  if (const auto rate = value_after(rest, "| learning rate:"))
    run.training.add_learning_rate(*rate);
}

void finish(LogRun& run) {
  const Shape shape(run.arguments);
  if (const auto length = number_after(shape.text("seq_length"), "")) run.seq_len = length;
  if (!run.batch_seqs) run.batch_seqs = number_after(shape.text("global_batch_size"), "");
  if (run.N) return;
  auto vocabulary = number_after(shape.text("entries"), "");
  if (!vocabulary) vocabulary = number_after(shape.text("padded_vocab_size"), "");
  run.N = parameters(shape, vocabulary);
  run.N_words = "counted from its arguments (total)";
}

}  // namespace

extern const LogFormat megatron_lm;
const LogFormat megatron_lm = {"Megatron-LM", recognises, read, finish};

}  // namespace core::formats
