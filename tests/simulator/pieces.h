#pragma once

#include "simulator/engine/cells.h"

namespace pieces {

// A piece with at most one collective before and one after it; -1 = none.
inline simulator::Piece piece(core::SimTime gather,
                              core::SimTime compute,
                              core::SimTime reduce,
                              simulator::OverlapRates rates = {}) {
  simulator::Piece p;
  p.compute = compute;
  p.rates = rates;
  if (gather >= 0) p.gathers.add(gather);
  if (reduce >= 0) p.reduces.add(reduce);
  return p;
}

}  // namespace pieces
