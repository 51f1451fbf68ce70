#include "fitting/listing.h"

#include <fmt/format.h>

#include <utility>

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
  // Of best sizes over compute, not of losses.
  for (const auto& [name, source] : {std::pair{"chinchilla-envelope", "1 (section 3.1)"}, std::pair{"chinchilla-isoflop", "2 (section 3.2)"}}) {
    out += fmt::format("{:<18} best size and tokens over compute (Hoffmann et al. 2022, arXiv 2203.15556, approach {})\n{:<18} N = k C^a, D = l C^b\n", name, source, "");
  }
  return out;
}

}  // namespace fitting
