#pragma once

// `simulate check`: argv[0] is "check". Returns the exit status; throws InputError on bad input.
int check_main(int argc, char** argv);
