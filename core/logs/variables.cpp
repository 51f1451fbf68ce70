#include "core/logs/variables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/logs/cell.h"
#include "core/logs/loss_name.h"
#include "core/logs/name_words.h"

namespace core {

namespace {

// The names of each variable, the best first, in words with _ between them; without units, and of N
// without what it counts. A symbol in lower case is good only where nothing better is.
constexpr std::pair<std::string_view, std::string_view> synonyms[] = {
    {"N",
     "n_params params parameters num_params num_parameters n_parameters nparams "
     "number_of_parameters "
     "parameter_count params_count model_params model_parameters trainable_params "
     "trainable_parameters n_params_nominal n_star n_opt optimal_params model_size param_count "
     "size n"},
    {"D",
     "tokens n_tokens num_tokens ntokens total_tokens tokens_total train_tokens training_tokens "
     "tokens_seen consumed_tokens "
     "num_consumed_tokens tokens_consumed processed_tokens tokens_processed tokens_trained "
     "num_input_tokens_seen throughput_total_tokens token_count data_tokens dataset_size "
     "d_tokens tokens_6nd tokens_star d_star d_opt optimal_tokens d"},
    {"U",
     "unique_tokens n_unique_tokens num_unique_tokens distinct_tokens tokens_unique unique_data u"},
    {"C",
     "flops flop training_flops training_flop train_flops train_flop compute training_compute "
     "train_compute c_flops total_flops total_flop flops_trained compute_budget flops_budget "
     "flop_budget budget c"},
    {"epochs", "epochs n_epochs num_epochs epoch"},
    {"delta", "delta_loss loss_delta loss_gap gap degradation delta"},
    {"G", "group_size quant_group_size groupsize q_group_size group g"},
    {"E", "n_experts num_experts experts"},
    {"lr", "lr learning_rate peak_lr max_lr"},
    {"bits_w", "bits_w w_bits wbits weight_bits bits_weights p_w"},
    {"bits_a", "bits_a a_bits abits activation_bits bits_activations p_a"},
    {"bits_kv", "bits_kv kv_bits p_kv"},
    {"B",
     "batch_tokens tokens_per_step tokens_per_batch global_batch_tokens batch_size_tokens "
     "global_batch_size_tokens tokens_per_iteration b"},
    {"batch_seqs",
     "batch_seqs global_batch_size gbs global_batch global_train_batch_size train_batch_size "
     "batch_size"},
    {"seq_len",
     "seq_len seq_length sequence_length max_sequence_length max_seq_len context_length "
     "block_size"},
    {"step",
     "step global_step trainer_global_step train_global_step train_step training_step iteration "
     "iter "
     "current_step optimizer_step"},
    {"steps", "max_steps total_steps train_iters num_iterations num_steps max_iters iters"},
    {"run",
     "run run_name run_id name experiment exp_name experiment_name model_name model id tb_id"},
};

// The position of a word in a list of words between blanks, if it is there.
std::optional<int> position_in(std::string_view list, std::string_view word) {
  for (int position = 0; !list.empty(); ++position) {
    const auto end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return position;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return std::nullopt;
}

// The last words of a name where they say a size: "tokens_B", "params (billions)", "n_params
// (1e6)".
double take_unit(std::string_view column, NameWords& words) {
  static constexpr std::pair<std::string_view, double> units[] = {
      {"thousands", 1e3}, {"millions", 1e6},   {"million", 1e6},   {"billions", 1e9},
      {"billion", 1e9},   {"trillions", 1e12}, {"trillion", 1e12}, {"1e3", 1e3},
      {"1e6", 1e6},       {"1e9", 1e9},        {"1e12", 1e12},     {"1e15", 1e15},
      {"1e18", 1e18},     {"1e19", 1e19},      {"1e20", 1e20},     {"1e21", 1e21},
      {"zflop", 1e21},    {"zflops", 1e21},    {"eflop", 1e18},    {"eflops", 1e18}};
  if (words.size() < 2) return 1.0;
  double scale = 1.0;
  for (const auto& [unit, factor] : units) {
    if (words.back() == unit) scale = factor;
  }
  // "B" alone is a billion only as a unit: in brackets, or behind a name of N or D.
  if (const auto factor = size_factor(words.back());
      factor && (column.back() == ')' || column.back() == ']' ||
                 has_word(words, {"tokens", "params", "parameters", "size"}))) {
    scale = *factor;
  }
  if (scale != 1.0) words.pop_back();
  return scale;
}

// "train_gflops": the prefix of the unit. "pf_days": 8.64e19 FLOPs.
double take_flops(NameWords& words) {
  const auto n = words.size();
  if (n >= 2 && has_word({words[n - 1]}, {"day", "days"}) &&
      has_word({words[n - 2]}, {"pf", "pflop", "pflops", "petaflop", "petaflops", "s"})) {
    while (words.size() > 0 &&
           has_word({words.back()},
                    {"day", "days", "s", "pf", "pflop", "pflops", "petaflop", "petaflops"}))
      words.pop_back();
    if (words.empty()) words = {"compute"};
    return 8.64e19;
  }
  static constexpr std::pair<std::string_view, double> prefixes[] = {{"gflops", 1e9},
                                                                     {"tflops", 1e12},
                                                                     {"pflops", 1e15},
                                                                     {"eflops", 1e18},
                                                                     {"zflops", 1e21},
                                                                     {"exaflops", 1e18},
                                                                     {"petaflops", 1e15},
                                                                     {"zettaflops", 1e21}};
  for (auto& word : words) {
    for (const auto& [name, factor] : prefixes) {
      if (word != name) continue;
      word = "flops";
      return factor;
    }
  }
  return 1.0;
}

std::string convention_of_N(NameWords& words, int& rank) {
  const auto flattened = fmt::format("_{}_", fmt::join(words, "_"));
  const bool non = flattened.find("_non_") != std::string::npos ||
                   has_word(words, {"nonemb", "nonembedding", "noemb", "nonembed"});
  if (non)
    take_words(words,
               {"non",
                "no",
                "emb",
                "embed",
                "embedding",
                "embeddings",
                "nonemb",
                "nonembedding",
                "noemb",
                "nonembed"});
  const bool active = take_words(words, {"active", "activated"});
  const bool total = take_words(words, {"total"});
  rank += (non ? 100 : 0) + (active ? 100 : 0);
  if (non)
    return active ? "non-embedding, active" : total ? "non-embedding, total" : "non-embedding";
  return active ? "active" : total ? "total" : "taken as total";
}

// "N (params)", "D (B tokens)": a symbol and what it is.
std::optional<ColumnMeaning> explained_symbol(std::string_view column, NameWords words) {
  if (column.size() < 4 || std::string_view("NDUCL").find(column[0]) == std::string_view::npos ||
      (column[1] != ' ' && column[1] != '(') ||
      column.find_first_of("([") == std::string_view::npos)
    return std::nullopt;
  take_words(words, {"tokens", "params", "parameters", "flop", "flops", "loss", "nats"});
  if (words.size() > 2) return std::nullopt;
  const double scale = take_unit(column, words);
  if (words.size() > 1) return std::nullopt;
  return ColumnMeaning{std::string(1, column[0]), scale, {}, false, scale == 1.0 ? 0 : 50};
}

// Names of rates and shares, whatever else they say.
bool is_rate(const NameWords& words) {
  return has_word(words, {"per", "mfu", "throughput", "rate", "std", "tps", "tok"}) &&
         !has_word(words, {"step", "batch", "iteration", "token", "learning"});
}

}  // namespace

std::optional<ColumnMeaning> meaning_of(std::string_view column) {
  static constexpr std::array symbols = {"N", "D", "U", "C", "L", "B"};
  for (const std::string_view symbol : symbols) {
    if (column == symbol) return ColumnMeaning{std::string(symbol), 1.0, {}, false, 0};
  }
  auto words = words_of(column);
  if (words.empty() || is_score(column)) return std::nullopt;
  if (const auto symbol = explained_symbol(column, words)) return symbol;
  if (words.size() > 1 && has_word({words.front()}, {"config", "summary", "hparams", "model"}) &&
      !(words.front() == "model" && has_word({words[1]}, {"size", "name", "params", "parameters"})))
    words.erase(words.begin());
  if (auto loss = loss_meaning(words)) return loss;
  if (words.size() == 1 && words[0] == "l") return ColumnMeaning{"L", 1.0, {}, false, 60};
  if (is_rate(words)) return std::nullopt;
  ColumnMeaning meaning;
  if (words != NameWords{"tflops"}) meaning.scale = take_flops(words);
  meaning.scale *= take_unit(column, words);
  int more = 0;
  NameWords bare = words;
  const auto convention = convention_of_N(bare, more);
  const std::pair<NameWords, bool> forms[] = {{words, false}, {bare, true}};
  for (const auto& [form, is_bare] : forms) {
    const auto name = fmt::format("{}", fmt::join(form, "_"));
    for (const auto& [variable, names] : synonyms) {
      const auto position = position_in(names, name);
      if (!position || (is_bare && variable != "N")) continue;
      // A count in full before one in millions.
      meaning.variable = variable, meaning.rank = *position + (meaning.scale == 1.0 ? 0 : 50);
      if (variable == "N") meaning.convention = convention, meaning.rank += more;
      return meaning;
    }
  }
  return std::nullopt;
}

std::string_view variable_words(std::string_view variable) {
  static constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"N", "parameters"},
      {"D", "tokens trained on"},
      {"U", "distinct tokens"},
      {"C", "training FLOPs"},
      {"L", "loss, nats a token"},
      {"B", "tokens a step"},
      {"lr", "learning rate"},
      {"epochs", "passes over the data"}};
  for (const auto& [name, text] : words) {
    if (name == variable) return text;
  }
  return "a variable of the law";
}

}  // namespace core
