#pragma once

// `fit LAW RUNS...`. Returns the exit status; throws InputError on bad input.
int fit_main(int argc, char** argv);
