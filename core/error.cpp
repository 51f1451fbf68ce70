#include "core/error.h"

#include <cstdio>
#include <cstdlib>

namespace core {

void contract_violated(const char* condition, std::source_location place) {
  std::fprintf(stderr,
               "internal error: %s does not hold (%s:%u, %s)\n",
               condition,
               place.file_name(),
               place.line(),
               place.function_name());
  std::abort();
}

}  // namespace core
