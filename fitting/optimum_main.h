#pragma once

// `fit optimum LAW --flops ...`: argv[0] is "optimum". Returns the exit status; throws InputError on bad input.
int optimum_main(int argc, char** argv);
