#pragma once

// `simulate calibrate`: argv[0] is "calibrate". Returns the exit status; throws InputError on bad
// input.
int calibrate_main(int argc, char** argv);
