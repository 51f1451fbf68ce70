#pragma once

// `fit evaluate LAW --N ... --D ...`: argv[0] is "evaluate". Returns the exit status; throws InputError on bad input.
int evaluate_main(int argc, char** argv);
