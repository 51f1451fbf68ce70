#include "fitting/listing.h"

#include <fmt/format.h>

#include "fitting/fitted_law.h"
#include "fitting/law.h"

namespace fitting {

std::string listing(const std::string& kind) {
  std::string out;
  if (kind == "constants") {
    for (const auto& name : fitted_law_names()) {
      const auto law = fitted_law(name);
      out += fmt::format("{:<30} {}\n", name, law.source);
    }
    return out;
  }
  for (const auto* law : laws::all()) {
    out += fmt::format("{:<18} {} ({})\n{:<18} {} = {}\n", law->name, law->title, law->source, "", law->output, law->formula);
  }
  return out;
}

}  // namespace fitting
