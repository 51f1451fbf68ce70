#include "fitting/precision/precision_floor.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace fitting {
namespace {

struct Line {
  double bits = 0.0;             // at least
  std::optional<double> block;   // at most
  bool only_whole_tensor = false;
  Floor floor;
};

struct Tensor {
  std::string name, what, refused;
  std::vector<Line> lines;
};

Line line_in(const core::Document& entry) {
  Line line;
  line.bits = entry.at("bits").as_positive_real();
  if (const auto* block = entry.find("block")) line.block = block->as_positive_real();
  if (const auto* whole = entry.find("whole_tensor")) line.only_whole_tensor = whole->as_bool();
  const auto& grade = entry.at("grade").as_text();
  if (grade != "ok" && grade != "flag") entry.at("grade").complain("ok or flag");
  line.floor.grade = grade == "ok" ? Grade::ok : Grade::flag;
  if (const auto* why = entry.find("why")) line.floor.why = why->as_text();
  entry.reject_unknown({"bits", "block", "whole_tensor", "grade", "why"});
  return line;
}

const std::vector<Tensor>& tensors() {
  static const std::vector<Tensor> read = [] {
    std::vector<Tensor> out;
    const auto file = core::Document::read_json_file(core::data_dir() / "precision_floors.json");
    file.at("rule").mark_used();
    for (const auto& [name, entry] : file.at("tensors").as_object()) {
      Tensor tensor{name, entry.at("what").as_text(), entry.at("refused").as_text(), {}};
      for (const auto& line : entry.at("lines").as_list()) tensor.lines.push_back(line_in(line));
      entry.reject_unknown({"what", "lines", "refused"});
      out.push_back(std::move(tensor));
    }
    file.reject_unknown({"rule", "tensors"});
    return out;
  }();
  return read;
}

bool satisfies(double bits, double block, const Line& line) {
  if (bits < line.bits || (line.only_whole_tensor && block != whole_tensor)) return false;
  return !line.block || block <= *line.block;
}

}  // namespace

std::string_view name_of(Grade grade) {
  if (grade == Grade::ok) return "ok";
  return grade == Grade::flag ? "flag" : "refuse";
}

Floor floor_of(std::string_view tensor, double bits, double block) {
  std::vector<std::string> known;
  for (const auto& entry : tensors()) {
    known.push_back(entry.name);
    if (entry.name != tensor) continue;
    for (const auto& line : entry.lines) {
      if (satisfies(bits, block, line)) return line.floor;
    }
    return {Grade::refuse, "refused: " + entry.refused};
  }
  const auto near = core::nearest_name(tensor, known);
  throw core::InputError(fmt::format("tensor: found \"{}\", expected one of `fit gaps --list floors`{}",
                                     core::printable(tensor), near ? fmt::format("; nearest is {}", *near) : ""));
}

std::string floors_text() {
  std::string out;
  for (const auto& tensor : tensors()) {
    out += fmt::format("{:<12} {}\n", tensor.name, tensor.what);
    for (const auto& line : tensor.lines) {
      const auto block = line.only_whole_tensor ? ", one scale a tensor" : line.block ? fmt::format(", blocks to {:g}", *line.block) : "";
      out += fmt::format("  {:<7} from {:g} bits{}{}\n", name_of(line.floor.grade), line.bits, block,
                         line.floor.why.empty() ? "" : "; " + line.floor.why);
    }
    out += fmt::format("  {:<7} {}\n", name_of(Grade::refuse), tensor.refused);
  }
  return out;
}

}  // namespace fitting
