#include "planner/calibrate/curve_targets.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "planner/calibrate/data_text.h"

namespace planner {

namespace {

// The files of data/curves that a GPU reads, the one that hides the others first.
class CurveFiles {
 public:
  explicit CurveFiles(const core::Gpu& gpu) {
    for (const auto& name : {gpu.name, "collectives-" + gpu.arch, gpu.arch}) {
      const auto file = core::data_dir() / "curves" / (name + ".json");
      if (std::filesystem::exists(file)) files_.emplace_back(name, core::Document::read_json_file(file));
    }
  }

  // The file that a number is read from; "" where there is none.
  std::string of(std::string_view key) const {
    for (const auto& [name, root] : files_) {
      if (member_at(root, key) != nullptr) return name;
    }
    return "";
  }

 private:
  std::vector<std::pair<std::string, core::Document>> files_;
};

simulator::Curves with(const simulator::Curves& curves, const Target& target, double factor) {
  if (!target.element) {
    auto numbers = target.start;
    for (auto& number : numbers) number *= factor;
    return curves.with(target.key, numbers);
  }
  auto numbers = curves.list(target.key);
  numbers[*target.element] = factor * target.start.front();
  return curves.with(target.key, numbers);
}

}  // namespace

CurveTargets::CurveTargets(const std::vector<Parameter>& parameters, CurvesByGpu shipped)
    : shipped_(std::move(shipped)) {
  for (const auto& [name, curves] : shipped_) {
    const CurveFiles files(curves.gpu());
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      for (const auto& target : parameters[j].targets) {
        if (target.folder == "curves" && files.of(target.key) == target.name)
          reads_[name].push_back({j, &target});
      }
    }
  }
}

bool CurveTargets::reaches(std::size_t parameter, const std::string& gpu) const {
  const auto found = reads_.find(gpu);
  return found != reads_.end() && std::ranges::any_of(found->second, [&](const Read& read) {
           return read.parameter == parameter;
         });
}

CurvesByGpu CurveTargets::at(const std::vector<double>& x) const {
  auto result = shipped_;
  for (const auto& [gpu, reads] : reads_) {
    auto& curves = result.at(gpu);
    for (const auto& [parameter, target] : reads) curves = with(curves, *target, std::exp(x[parameter]));
  }
  return result;
}

}  // namespace planner
