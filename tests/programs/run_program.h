#pragma once

#include <string>
#include <vector>

// What a run of one of our programs gave.
struct Answer {
  int status = -1;
  std::string out, err;
};

// Runs a shell line that begins with one of our programs ("simulate --gpus 2") with nothing on
// stdin, and with `environment` ("NO_COLOR=1") besides the test's. Throws std::runtime_error when
// no process could be started.
Answer run_program(const std::string& line, const std::string& environment = "");

// Lines of a text; a last line without its end counts.
int lines_of(const std::string& text);

// Expects what bad input gets: exit status 2, nothing on stdout, one line on stderr that has all
// these words.
void expect_refused(const std::string& line,
                    const std::vector<std::string>& words,
                    const std::string& environment = "");
