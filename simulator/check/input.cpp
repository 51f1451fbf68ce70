#include "simulator/check/input.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "core/error.h"

namespace simulator {

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file))
    throw core::InputError(fmt::format("{}: cannot be opened", file.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

core::MeasuredTable table_of(const std::filesystem::path& file,
                             const core::MegatronRun& run,
                             const core::MegatronMachine& machine) {
  if (machine.gpu.empty())
    throw core::InputError(fmt::format(
        "--gpu: missing, expected the GPU of {}, which a log does not name", file.string()));
  return {
      file.string(), core::MeasuredSchema::training_runs, {core::measured_run_of(run, machine)}};
}

bool has_id_column(std::string_view text) {
  const auto header = text.substr(0, text.find_first_of("\r\n"));
  return header == "id" || header.starts_with("id,") ||
         header.find(",id,") != std::string_view::npos || header.ends_with(",id") ||
         header.starts_with("\xef\xbb\xbfid,");
}

}  // namespace

core::MeasuredTable read_measured_input(const std::filesystem::path& file,
                                        const core::MegatronMachine& machine) {
  const auto text = text_of(file);
  if (file.extension() == ".json") {
    const auto arguments = file.parent_path() / "model_config.yaml";
    return table_of(
        file,
        core::parse_megatron_golden(text, file.string(), text_of(arguments), arguments.string()),
        machine);
  }
  if (core::is_megatron_log(text))
    return table_of(file, core::parse_megatron_log(text, file.string()), machine);
  if (!has_id_column(text)) {
    throw core::InputError(fmt::format(
        "{}: neither a table of measured runs (a header with a column id) nor a log of Megatron-LM "
        "(iterations with their elapsed time)",
        file.string()));
  }
  return core::parse_measured_table(text, file.string());
}

}  // namespace simulator
