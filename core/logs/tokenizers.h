#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace core {

// Entries of a tokenizer's vocabulary, by the name that arguments give it: a model on the Hugging Face hub
// ("meta-llama/Llama-3.1-8B"), a file of a tokenizer ("nemotron_2_256k.model", in any folder), or a type of Megatron-LM that has
// only one ("GPT2BPETokenizer"). Nothing where data/tokenizers.json does not have the name. Throws InputError.
std::optional<std::int64_t> tokenizer_vocabulary(std::string_view name);

}  // namespace core
