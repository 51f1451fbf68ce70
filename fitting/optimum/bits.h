#pragma once

#include <string>
#include <vector>

#include "fitting/optimum/optimum.h"

namespace fitting {

// The best number of bits.
struct BitsOptimum {
  double bits = 0.0;
  Optimum at;           // the size and tokens there
  bool inside = false;  // else it is an end of what was searched
};

// Bits P that give the least loss when FLOPs cost in proportion to them, C = c N D P / 16 (Kumar et al. 2024, arXiv 2411.04330,
// section 4.3): a question of 1e21 FLOPs buys those of 16 bits, and 4e21 of 4. `names`: the variables that are P together; what
// else is quantised stands in question.fixed. Where loss depends on N f(P), P is where f(P) / P is greatest, whatever the
// budget; with a size given it grows with the budget. Searched from half a bit to 32. Requires question.flops; throws InputError
// for a name that the law does not have. at.found() is false where no number of bits has a loss.
BitsOptimum best_bits(const FittedLaw& law, const OptimumQuestion& question, const std::vector<std::string>& names);

// Tokens past which a model that is quantised after training gets worse: where what training gains, as `law` has it, is what
// quantisation loses more, as `rise` has it (kumar-ptq, ouyang). Variables of either but D by their names. Nothing where there
// is none. Of Kumar's forms: (beta B N^gamma_N e^(P / gamma_post) / (gamma_D C_T))^(1 / (beta + gamma_D)).
std::optional<double> critical_tokens(const FittedLaw& law, const FittedLaw& rise, const std::map<std::string, double>& at);

}  // namespace fitting
