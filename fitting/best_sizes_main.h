#pragma once

// Whether the arguments ask for a law of best sizes over compute: chinchilla-isoflop or chinchilla-envelope.
bool asks_for_best_sizes(int argc, char** argv);

// `fit chinchilla-isoflop RUNS...` and `fit chinchilla-envelope RUNS...`. Returns the exit status; throws InputError on bad input.
int best_sizes_main(int argc, char** argv);
