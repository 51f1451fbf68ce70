// fit: scaling laws from runs, and what they say.
#include <string_view>

#include "fitting/best_sizes_main.h"
#include "fitting/evaluate_main.h"
#include "fitting/fit_main.h"
#include "fitting/gaps_main.h"
#include "fitting/optimum_main.h"
#include "simulator/cli.h"

int main(int argc, char** argv) {
  return simulator::guarded("fit", [&] {
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (first == "evaluate") return evaluate_main(argc - 1, argv + 1);
    if (first == "optimum") return optimum_main(argc - 1, argv + 1);
    if (first == "gaps") return gaps_main(argc - 1, argv + 1);
    if (asks_for_best_sizes(argc, argv)) return best_sizes_main(argc, argv);
    return fit_main(argc, argv);
  });
}
