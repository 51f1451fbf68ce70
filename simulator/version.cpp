#include "simulator/version.h"

namespace simulator {

std::string_view version() { return FORETRAIN_VERSION; }

}  // namespace simulator
