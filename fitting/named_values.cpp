#include "fitting/named_values.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"

namespace fitting {

std::map<std::string, double> named_values(const std::vector<std::string>& words) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind("--", 0) != 0) throw core::InputError(fmt::format("found \"{}\", expected --NAME VALUE", core::printable(words[i])));
    auto name = words[i].substr(2);
    std::string value;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (++i < words.size()) {
      value = words[i];
    }
    const auto cell = core::read_cell(value);
    if (cell.kind != core::Cell::Kind::number) throw core::InputError(fmt::format("--{}: found \"{}\", expected a number", core::printable(name), core::printable(value)));
    if (!values.emplace(name, cell.value).second) throw core::InputError(fmt::format("--{}: found twice, expected once", core::printable(name)));
  }
  return values;
}

}  // namespace fitting
