#include "core/logs/loss_name.h"

#include <fmt/ranges.h>

namespace core {

std::optional<ColumnMeaning> loss_meaning(NameWords words) {
  if (has_word(words, {"scale", "aux", "balancing", "balance", "z",    "router", "mtp",
                       "std",   "min", "max",       "delta",   "star", "gap",    "bpb",
                       "bits",  "log", "log2",      "log10",   "ln",   "ema"}))
    return std::nullopt;
  const bool perplexity = has_word(words, {"ppl", "perplexity"});
  const bool loss =
      has_word(words, {"loss", "ce", "nll", "xent", "crossentropyloss", "crossentropy"}) ||
      (has_word(words, {"cross"}) && has_word(words, {"entropy"}));
  if (!loss && !perplexity) return std::nullopt;
  const bool smooth = take_words(words, {"smooth", "smoothed", "avg", "mean"});
  const bool final = take_words(words, {"final", "last"});
  const bool held_out = take_words(
      words, {"val", "valid", "validation", "eval", "evaluation", "test", "heldout", "dev"});
  const bool training = take_words(words, {"train", "training", "reduced"});
  take_words(words,
             {"loss",
              "ce",
              "nll",
              "xent",
              "crossentropyloss",
              "crossentropy",
              "cross",
              "entropy",
              "lm",
              "ppl",
              "perplexity",
              "value",
              "nats",
              "per",
              "token",
              "total",
              "summary"});
  ColumnMeaning meaning{"L", 1.0, {}, perplexity, 0};
  const int kind = !words.empty() ? 40 : training ? 30 : held_out ? 10 : 20;
  meaning.rank = kind + (smooth ? 0 : final ? 1 : 2) + (perplexity ? 50 : 0);
  if (smooth && kind == 20) meaning.rank = 1;
  if (!words.empty())
    meaning.convention =
        fmt::format("{}of {}", held_out ? "held-out, " : "", fmt::join(words, "_"));
  else if (held_out || training)
    meaning.convention = held_out ? "held-out" : "training";
  return meaning;
}

}  // namespace core
