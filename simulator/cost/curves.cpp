#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator {

namespace {

constexpr std::array<std::string_view, 10> sections = {"gemm",
                                                       "attention",
                                                       "memory_bound",
                                                       "optimizer",
                                                       "scan",
                                                       "sustained",
                                                       "host",
                                                       "launch",
                                                       "overlap",
                                                       "collectives"};

// What kernels read without asking whether it is there.
constexpr std::array<std::string_view, 21> required_numbers = {
    "gemm.tile_perimeter",
    "gemm.wave_hardness",
    "gemm.k_ramp",
    "gemm.fixed_us",
    "gemm.bandwidth_efficiency",
    "gemm.grouped.k_ramp_bytes",
    "gemm.split_bandwidth_efficiency",
    "gemm.unaligned_slowdown",
    "gemm.unaligned_batched_slowdown",
    "attention.fixed_us",
    "attention.query_block",
    "attention.unfused.causal_bytes_forward",
    "attention.unfused.causal_bytes_backward",
    "attention.unfused.full_bytes_forward",
    "attention.unfused.full_bytes_backward",
    "memory_bound.efficiency",
    "memory_bound.fixed_us",
    "optimizer.efficiency",
    "launch.kernel_gap_us",
    "overlap.compute_slowdown",
    "overlap.comm_slowdown"};
constexpr std::array<std::string_view, 2> required_lists = {"gemm.tiles", "gemm.splits"};

bool ends_with_any(std::string_view key, std::initializer_list<std::string_view> endings) {
  return std::any_of(
      endings.begin(), endings.end(), [&](std::string_view e) { return key.ends_with(e); });
}

// A fraction of a peak is above 0 and at most 1 (bus bandwidth of collectives is no such fraction:
// NVLS exceeds the wire); all other numbers of a curve are not negative.
double checked_value(const core::Document& value, std::string_view key) {
  const double number = value.as_real();
  const bool fraction =
      !key.starts_with("collectives.") && ends_with_any(key, {"efficiency", "_rate"});
  if (fraction && (number <= 0.0 || number > 1.0)) {
    value.complain("a fraction above 0, at most 1");
  }
  if (number < 0.0) {
    value.complain("a number that is not negative");
  }
  return number;
}

void check_status(const core::Document& status) {
  const std::string& text = status.as_text();
  if (text != "seen" && text != "recalled" && text != "derived" && text != "estimate") {
    status.complain("seen, recalled, derived or estimate");
  }
}

Origin origin_in(const core::Document& section, const core::Gpu& gpu) {
  const core::Document& origin = section.at("origin");
  const std::string& text = origin.as_text();
  if (text != "fitted" && text != "roofline") {
    origin.complain("fitted or roofline");
  }
  const core::Document* fitted_on = section.find("fitted_on");
  section.reject_unknown({"origin", "fitted_on"});
  if (text == "roofline" || fitted_on == nullptr) {
    return text == "fitted" ? Origin::fitted : Origin::roofline;
  }
  bool measured_here = false;
  for (const core::Document& name : fitted_on->as_list()) {
    measured_here |= name.as_text() == gpu.name;
  }
  return measured_here ? Origin::fitted : Origin::roofline;
}

std::optional<core::Document> read_if_there(std::string_view name) {
  const std::filesystem::path file = core::data_dir() / "curves" / (std::string(name) + ".json");
  if (!std::filesystem::exists(file)) {
    return std::nullopt;
  }
  return core::Document::read_json_file(file);
}

}  // namespace

std::string_view name_of(Origin origin) {
  constexpr std::array<std::string_view, 3> names = {"measured", "fitted", "roofline"};
  return names[static_cast<std::size_t>(origin)];
}

Curves Curves::load(const core::Gpu& gpu) {
  std::vector<core::Document> documents;
  documents.push_back(
      core::Document::read_json_file(core::data_file("curves", gpu.arch, gpu.name + ": arch")));
  if (auto collectives = read_if_there("collectives-" + gpu.arch)) {
    documents.push_back(std::move(*collectives));
  }
  std::size_t overrides = 0;
  if (auto own = read_if_there(gpu.name)) {
    documents.push_back(std::move(*own));
    overrides = 1;
  }
  return from_documents(gpu, documents, overrides);
}

Curves Curves::from_documents(const core::Gpu& gpu,
                              const std::vector<core::Document>& documents,
                              std::size_t overrides) {
  CORE_ASSERT(overrides <= documents.size());
  Curves curves;
  curves.gpu_ = gpu;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    curves.add(documents[i], i >= documents.size() - overrides);
  }
  curves.require_all();
  return curves;
}

void Curves::add(const core::Document& document, bool overrides) {
  for (const auto& [name, member] : document.as_object()) {
    if (name == "title") {
      member.as_text();
    } else if (name == "sections") {
      add_sections(member);
    } else if (std::find(sections.begin(), sections.end(), name) != sections.end()) {
      add_entry(member, name, overrides);
    } else {
      member.complain(
          "no such section here: title, sections, gemm, attention, memory_bound, "
          "optimizer, scan, sustained, host, launch, overlap or collectives");
    }
  }
}

void Curves::add_sections(const core::Document& document) {
  for (const auto& [name, section] : document.as_object()) {
    origins_.insert_or_assign(name, origin_in(section, gpu_));
  }
}

void Curves::add_entry(const core::Document& entry, const std::string& key, bool overrides) {
  if (!entry.is_object()) {
    entry.complain("{\"value\" or \"values\", \"source\", \"checked\"} or a group of such");
  }
  if (!entry.has("value") && !entry.has("values")) {
    for (const auto& [name, member] : entry.as_object()) {
      add_entry(member, key + "." + name, overrides);
    }
    return;
  }
  if (!overrides && sources_.contains(key)) {
    entry.complain("a key that no other file of the architecture holds");
  }
  add_leaf(entry, key);
}

void Curves::add_leaf(const core::Document& leaf, const std::string& key) {
  numbers_.erase(key);
  lists_.erase(key);
  if (const core::Document* value = leaf.find("value")) {
    numbers_.insert_or_assign(key, checked_value(*value, key));
  } else {
    std::vector<double> values;
    for (const core::Document& each : leaf.at("values").as_list()) {
      values.push_back(checked_value(each, key));
    }
    if (values.empty()) {
      leaf.at("values").complain("at least one number");
    }
    lists_.insert_or_assign(key, std::move(values));
  }
  const core::Document& source = leaf.at("source");
  if (source.as_text().empty()) {
    source.complain("where the number is from");
  }
  check_status(leaf.at("checked"));
  sources_.insert_or_assign(key, source.as_text());
  checked_.insert_or_assign(key, leaf.at("checked").as_text());
  leaf.reject_unknown({leaf.has("value") ? "value" : "values", "source", "checked"});
}

void Curves::require_all() const {
  const auto missing = [&](std::string_view key) {
    throw core::InputError("curves of " + gpu_.name + " (" + gpu_.arch + "): missing key " +
                           std::string(key));
  };
  for (const std::string_view key : required_numbers) {
    if (!numbers_.contains(key)) {
      missing(key);
    }
  }
  for (const std::string_view key : required_lists) {
    if (!lists_.contains(key)) {
      missing(key);
    }
  }
  for (const std::string_view format : {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}) {
    const std::string key = "gemm." + std::string(format) + ".efficiency";
    if (gpu_.peak(format) && !numbers_.contains(key)) {
      missing(key);
    }
  }
}

double Curves::at(std::string_view key) const {
  const auto found = numbers_.find(key);
  CORE_ASSERT(found != numbers_.end());
  Recording::read(key);
  return found->second;
}

double Curves::needed(std::string_view key, std::string_view what) const {
  if (const std::optional<double> number = find(key)) {
    return *number;
  }
  throw core::InputError("curves of " + gpu_.name + " (" + gpu_.arch + "): missing key " +
                         std::string(key) + ", which " + std::string(what) + " needs");
}

std::optional<double> Curves::find(std::string_view key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) return std::nullopt;
  Recording::read(key);
  return found->second;
}

const std::vector<double>& Curves::list(std::string_view key) const {
  const auto found = lists_.find(key);
  CORE_ASSERT(found != lists_.end());
  Recording::read(key);
  return found->second;
}

Origin Curves::origin_of(std::string_view section) const {
  const auto found = origins_.find(section);
  return found == origins_.end() ? Origin::roofline : found->second;
}

std::string Curves::source_of(std::string_view key) const {
  const auto found = sources_.find(key);
  CORE_ASSERT(found != sources_.end());
  return found->second;
}

std::string Curves::checked_of(std::string_view key) const {
  const auto found = checked_.find(key);
  CORE_ASSERT(found != checked_.end());
  return found->second;
}

std::vector<double> Curves::values_of(std::string_view key) const {
  if (const auto number = numbers_.find(key); number != numbers_.end()) return {number->second};
  const auto found = lists_.find(key);
  CORE_ASSERT(found != lists_.end());
  return found->second;
}

Curves Curves::with(std::string_view key, const std::vector<double>& values) const {
  Curves changed = *this;
  if (const auto number = changed.numbers_.find(key); number != changed.numbers_.end()) {
    CORE_ASSERT(values.size() == 1);
    number->second = values.front();
    return changed;
  }
  const auto list = changed.lists_.find(key);
  CORE_ASSERT(list != changed.lists_.end() && list->second.size() == values.size());
  list->second = values;
  return changed;
}

std::vector<std::string> Curves::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, source] : sources_) {
    keys.push_back(key);
  }
  return keys;
}

}  // namespace simulator
