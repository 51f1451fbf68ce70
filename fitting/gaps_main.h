#pragma once

// `fit gaps [TABLE]`: published costs of few bits against predicted ones.
int gaps_main(int argc, char** argv);
