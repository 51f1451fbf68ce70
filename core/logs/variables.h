#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace core {

// What the name of a column says it holds, as laws of scaling and logs of runs call it:
//   N parameters, D tokens trained on, U of them distinct, C training FLOPs, L loss in nats a
//   token, epochs, lr, bits_w bits_a bits_kv, B tokens a step, batch_seqs sequences a step,
//   seq_len, step, steps (how many the run is to take), run (its name)
struct ColumnMeaning {
  std::string variable;
  double scale = 1.0;  // to the unit above: "tokens (B)" 1e9, "train_gflops" 1e9
  std::string
      convention;  // of N: "non-embedding", "active", ...; of L: "held-out", "training", "of SET"
  bool logarithm = false;  // a perplexity: L is the logarithm of the column
  int rank = 0;            // how good the name is among those of a variable, 0 the best
};

std::optional<ColumnMeaning> meaning_of(std::string_view column);

// What a variable is, for messages: N is "parameters".
std::string_view variable_words(std::string_view variable);

}  // namespace core
