#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fitting/law.h"

namespace fitting {

// A law with some parameters fixed at a value or tied to another: its formula binds their names, and only the rest is fitted.
class Reduced {
 public:
  // Throws InputError for a name that the law does not have, a parameter both fixed and tied, or tied to one that is not free.
  Reduced(const Law& law, const std::map<std::string, double>& fixed, const std::map<std::string, std::string>& tied);

  const Law& law() const { return law_; }   // what is fitted
  const Law& full() const { return full_; }
  // All parameters of the full law from the fitted ones.
  std::vector<double> expand(const std::vector<double>& fitted) const;

 private:
  std::size_t place(const std::vector<Parameter>& parameters, const std::string& name, const std::string& flag) const;

  Law full_, law_;
  std::vector<std::optional<double>> value_;  // [parameter of full] where fixed
  std::vector<std::size_t> from_;             // [parameter of full] which fitted one it equals
};

}  // namespace fitting
