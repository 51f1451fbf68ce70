#include "simulator/check/sources.h"

#include <string_view>

#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace simulator {

namespace {

using core::Document;
using core::MeasuredRun;

// The runs that facts are of: those for which all that is named holds.
struct Pattern {
  std::string source_ref, gpu, id_starts, id_has, id_ends, test_case, cuda_graphs;
  std::int64_t gpus_at_least = 0;

  bool holds(const MeasuredRun& run) const {
    const auto has = [](std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; };
    const auto is = [](std::string_view text, std::string_view wanted) { return wanted.empty() || text == wanted; };
    return has(run.source_ref, source_ref) && is(run.gpu, gpu) && run.id.starts_with(id_starts) && has(run.id, id_has) &&
           run.id.ends_with(id_ends) && has(run.test_case, test_case) && is(run.cuda_graphs, cuda_graphs) &&
           run.gpus.value_or(0) >= gpus_at_least;
  }
};

struct Entry {
  Pattern of;
  SourceFacts facts;
};

constexpr std::int64_t most_gpus = std::int64_t{1} << 20, most_micro_batches = std::int64_t{1} << 20;

std::string text_of(const Document& document, std::string_view key) {
  const auto* text = document.find(key);
  return text == nullptr ? "" : text->as_text();
}

bool flag_of(const Document& document, std::string_view key) {
  const auto* flag = document.find(key);
  return flag != nullptr && flag->as_bool();
}

Pattern pattern_of(const Document& document) {
  document.reject_unknown({"source_ref", "gpu", "id_starts", "id_has", "id_ends", "test_case", "cuda_graphs", "gpus_at_least"});
  if (document.as_object().empty()) document.complain("at least one thing that tells the runs");
  Pattern pattern{text_of(document, "source_ref"), text_of(document, "gpu"),    text_of(document, "id_starts"),
                  text_of(document, "id_has"),     text_of(document, "id_ends"), text_of(document, "test_case"),
                  text_of(document, "cuda_graphs")};
  if (const auto* gpus = document.find("gpus_at_least")) pattern.gpus_at_least = gpus->as_int(1, most_gpus);
  return pattern;
}

Entry entry_of(const Document& document) {
  document.reject_unknown({"of", "gpu", "node", "cross_entropy_fusion", "deferred_output_gradients", "launches_wait",
                           "divides_checkpoints", "fp8_attention", "fp8_output", "says", "source"});
  if (document.at("source").as_text().empty()) document.at("source").complain("where it is said");
  Entry entry{pattern_of(document.at("of")), {}};
  auto& facts = entry.facts;
  facts.gpu = text_of(document, "gpu"), facts.node = text_of(document, "node");
  if (const auto* fusion = document.find("cross_entropy_fusion")) facts.cross_entropy_fusion = fusion->as_text();
  if (const auto* deferred = document.find("deferred_output_gradients"))
    facts.deferred_output_gradients = deferred->as_int(1, most_micro_batches);
  facts.launches_wait = flag_of(document, "launches_wait");
  facts.divides_checkpoints = flag_of(document, "divides_checkpoints");
  facts.fp8_attention = flag_of(document, "fp8_attention");
  facts.fp8_output = flag_of(document, "fp8_output");
  facts.says = {document.at("says").as_text()};
  return entry;
}

std::vector<Entry> read_entries() {
  const auto document = Document::read_json_file(core::data_dir() / "measured" / "sources.json");
  document.reject_unknown({"title", "facts"});
  std::vector<Entry> entries;
  for (const auto& each : document.at("facts").as_list()) entries.push_back(entry_of(each));
  return entries;
}

}  // namespace

SourceFacts facts_of(const MeasuredRun& run) {
  static const std::vector<Entry> entries = read_entries();
  SourceFacts all;
  for (const auto& [of, facts] : entries) {
    if (!of.holds(run)) continue;
    if (!facts.gpu.empty()) all.gpu = facts.gpu;
    if (!facts.node.empty()) all.node = facts.node;
    if (facts.cross_entropy_fusion) all.cross_entropy_fusion = facts.cross_entropy_fusion;
    if (facts.deferred_output_gradients) all.deferred_output_gradients = facts.deferred_output_gradients;
    all.launches_wait = all.launches_wait || facts.launches_wait;
    all.divides_checkpoints = all.divides_checkpoints || facts.divides_checkpoints;
    all.fp8_attention = all.fp8_attention || facts.fp8_attention;
    all.fp8_output = all.fp8_output || facts.fp8_output;
    all.says.insert(all.says.end(), facts.says.begin(), facts.says.end());
  }
  return all;
}

}  // namespace simulator
