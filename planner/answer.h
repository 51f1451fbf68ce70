#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search.h"
#include "simulator/report.h"

namespace planner {

// The answer to a question: the best plans at op grain, and what became of the rest.
struct Answer {
  SearchResult search;
  std::vector<simulator::StepReport> plans;  // by step time; at most `top`
  double elapsed_s = 0.0;
};

// Simulates the best plans of a search at mixed grain, on all cores, and ranks them again.
std::vector<simulator::StepReport> refine(const simulator::Setting& setting,
                                          const simulator::Bench& bench,
                                          const std::vector<Ranked>& best,
                                          std::size_t top);

// Why a plan is slower than the first: the activities that cost more, largest first ("+1.20 s: tp_exposed +1.31 s").
std::string why_slower(const simulator::StepReport& first, const simulator::StepReport& other);

struct ReportOptions {
  simulator::Request request;
  bool reproducible = false;  // leave out elapsed_s
};
std::string answer_table(const simulator::Setting& setting, const Answer& answer, const ReportOptions& options);
std::string answer_json(const simulator::Setting& setting, const Answer& answer, const ReportOptions& options);
std::string answer_csv(const simulator::Setting& setting, const Answer& answer);
std::string answer_markdown(const simulator::Setting& setting, const Answer& answer, const ReportOptions& options);

}  // namespace planner
