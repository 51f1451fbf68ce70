#include "core/model/block_kind.h"

#include <algorithm>

#include "core/error.h"

namespace core {

const BlockKind& block_kind(std::string_view name) {
  const auto all = blocks::all();
  const auto found = std::find_if(all.begin(), all.end(), [&](const BlockKind* k) { return k->name == name; });
  CORE_ASSERT(found != all.end());
  return **found;
}

}  // namespace core
