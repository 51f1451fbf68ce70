// Any bytes as a table of gaps: every row compared or said why not, in one line, or the table refused in one line by an InputError;
// and as the text of one recipe, which nothing makes fail.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "fitting/precision/gaps.h"
#include "fitting/precision/gaps_report.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_one_line(std::string_view text) { return text.find_first_of("\n\r\x1b") == std::string_view::npos; }

void check_recipe(const std::string& text) {
  fitting::GapRow row;
  row.recipe = text;
  row.metric = "val_loss";
  row.N = 8e9;
  row.D = 1e12;
  for (const auto* method : {"training", "QAT", "PTQ", "finetune"}) {
    row.method = method;
    const auto predicted = fitting::predict_gap(row);
    if (const auto* why = std::get_if<std::string>(&predicted)) require(!why->empty() && is_one_line(*why));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  check_recipe(text);
  try {
    const auto rows = fitting::parse_gap_rows(text, "gaps.csv");
    const auto report = fitting::compare_gaps(rows, "gaps.csv");
    require(report.compared.size() + report.skipped.size() == rows.size());
    for (const auto& skipped : report.skipped) require(!skipped.why.empty() && is_one_line(skipped.id + skipped.why));
    fitting::gaps_table(report);
    fitting::gaps_json(report, "1");
  } catch (const core::InputError& error) {
    require(is_one_line(error.what()));
  }
  return 0;
}
