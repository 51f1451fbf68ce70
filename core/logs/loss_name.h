#pragma once

#include <optional>

#include "core/logs/name_words.h"
#include "core/logs/variables.h"

namespace core {

// What a name of a loss says: held-out, training, of a set of its own, or a perplexity; nothing
// where the name is none of a loss in nats a token.
std::optional<ColumnMeaning> loss_meaning(NameWords words);

}  // namespace core
