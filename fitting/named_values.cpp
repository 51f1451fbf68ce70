#include "fitting/named_values.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"

namespace fitting {

std::map<std::string, double> named_values(const std::vector<std::string>& words,
                                           const std::function<void(const std::string& flag)>& check) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind("--", 0) != 0) throw core::InputError(fmt::format("found \"{}\", expected --NAME VALUE", core::printable(words[i])));
    const auto equals = words[i].find('=');
    const bool joined = equals != std::string::npos;
    const auto name = joined ? words[i].substr(2, equals - 2) : words[i].substr(2);
    if (check) check("--" + name);
    std::string value;
    if (joined) value = words[i].substr(equals + 1);
    else if (i + 1 < words.size()) value = words[++i];
    const auto cell = core::read_cell(value);
    if (cell.kind != core::Cell::Kind::number) throw core::InputError(fmt::format("--{}: found \"{}\", expected a number", core::printable(name), core::printable(value)));
    if (!values.emplace(name, cell.value).second) throw core::InputError(fmt::format("--{}: found twice, expected once", core::printable(name)));
  }
  return values;
}

}  // namespace fitting
