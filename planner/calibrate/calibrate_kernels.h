#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/calibrate/calibrate.h"
#include "planner/calibrate/kernel_fits.h"

namespace planner {

// A fit after it was made.
struct KernelCalibration {
  std::string name;
  std::vector<std::string> tables;  // that were there
  Calibration calibration;
};

// Makes the fits one after another, each on curves with what those before it found, to the tables of
// a folder. Rows whose `source` column or name of a source holds the text `leave_out` ("" for none)
// are not fitted, only judged. The result depends on fits and tables alone, not on what data/curves says of
// the parameters now. Throws InputError: no table of any fit is there, a row that cannot be priced,
// a source to be left out that no row has.
std::vector<KernelCalibration> calibrate_kernels(const std::vector<KernelFit>& fits,
                                                 const std::filesystem::path& tables,
                                                 const std::string& leave_out,
                                                 LeaveOneOut leave_one_out);

}  // namespace planner
