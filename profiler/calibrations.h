#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace profiler {

// A system of the user: what a question names.
struct SystemKey {
  std::string gpu, framework, cluster;  // cluster "": the GPU's usual nodes
  auto operator<=>(const SystemKey&) const = default;
  std::string text() const;  // "h100-sxm megatron my-cluster"
};

// A run that calibrated a system: simulator::CalibratingRun in plain words.
struct KeptRun {
  std::string name, gpu, software;
  bool experts = false, own_curves = false;
  double measured_s = 0.0, predicted_s = 0.0;
  bool operator==(const KeptRun&) const = default;
};

struct KeptCalibration {
  SystemKey key;
  std::string version;  // of the program that made it
  double kernels = 1.0, communication = 1.0, host = 1.0;
  std::vector<KeptRun> runs;
  bool operator==(const KeptCalibration&) const = default;
};

// Puts a calibration in place of the one of its system. Makes file and folders where there are none. Throws InputError naming
// the file where it cannot be written or is none of ours.
void keep(const KeptCalibration& calibration, const std::filesystem::path& file);
// That of a system, or nothing; also where there is no file.
std::optional<KeptCalibration> kept(const SystemKey& key, const std::filesystem::path& file);
// All of them, by system.
std::vector<KeptCalibration> all_kept(const std::filesystem::path& file);

}  // namespace profiler
