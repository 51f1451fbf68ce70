#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/io/document.h"
#include "simulator/pricer.h"

namespace simulator {

// Measured runs of a class over their predictions.
struct ClassBand {
  RunPattern runs;
  std::int64_t rows = 0, sources = 0;
  double low = 1.0, high = 1.0;  // factors on a prediction: `share` of the runs of a source not yet seen lie between
  double after_one_run = 0.0;    // the same by one run of the same source, GPU and class: log of a factor either way
};

// How far measured step times lie from predicted ones: data/uncertainty.json, which `simulate calibrate --intervals --write`
// makes.
struct Uncertainty {
  double share = 0.0;                // of runs between low and high: 0.9
  double unmeasured_widening = 1.0;  // of the interval's logarithms on architectures that no run was measured on
  std::string unmeasured_source;
  std::vector<SoftwareGroup> software;
  std::vector<std::string> architectures;  // that have measured runs
  std::vector<ClassBand> classes;          // wider ones first; the first holds all runs
  // After one run of the same source that differs in this: "gpu", "experts"; log of a factor. Absent: such a run tells nothing.
  std::map<std::string, double> after_other_run;
  std::string command;  // that made it

  const ClassBand& narrowest(const RunClass& run) const;
};

// {"name", "frameworks"} of a data file.
SoftwareGroup software_group_of(const core::Document& entry);

const Uncertainty& uncertainty();  // that of data/
// Throws InputError naming file and key.
Uncertainty read_uncertainty(const std::filesystem::path& file);
std::string to_json(const Uncertainty& uncertainty);

// The interval of a prediction, as factors, and what it rests on in words.
struct Band {
  double low = 1.0, high = 1.0;
  std::string
      because;  // "90 % of comparable measured runs (dense, ...): 0.85 to 1.31 times the prediction; 92 runs of 6 sources"
};
Band band_of(const Uncertainty& uncertainty, const RunClass& run, const std::string& architecture);

// The interval of a prediction that runs of the same system have calibrated, no wider than `before`; by those among them that
// are most like the run: same GPU, software and kind of model, else those that differ in one of GPU and kind of model.
// `gpu`: of the run that is predicted.
Band narrowed(const Uncertainty& uncertainty,
              const Band& before,
              const RunClass& run,
              const std::string& gpu,
              const std::vector<CalibratingRun>& by);
// What a calibrating run differs in from a run: "another GPU (b200)", "other software", ...; "" where comparable.
std::string difference_text(const CalibratingRun& by, const RunClass& run, const std::string& gpu);

}  // namespace simulator
