#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fitting/plots/figure.h"
#include "fitting/fitted_law.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

enum class PlotKind : std::uint8_t {
  loss,       // against compute, with the law at each size and the compute-optimal envelope
  isoflop,    // against size, a curve a budget
  contour,    // equal losses over compute and size, with the compute-optimal path
  residuals,  // measured against the law, over compute
};

// What a plot of a law shows. `rows` may be empty, where a law is drawn without runs.
struct LawPicture {
  const FittedLaw& law;
  const Rows& rows;
  std::vector<bool> held_out;  // [row] drawn open; empty: none
  std::string runs;            // "240 rows of runs.csv", for the title
  double confidence = 0.95;    // of the bands of the law's draws
};

// "loss", "isoflop", "contour", "residuals". Throws InputError for another word.
PlotKind plot_kind(std::string_view text, const std::string& flag);

// Draws a law and its runs. Throws InputError naming the flag for a kind that the law or the runs do not have.
Figure law_figure(const LawPicture& picture, PlotKind kind, const std::string& flag);

}  // namespace fitting
