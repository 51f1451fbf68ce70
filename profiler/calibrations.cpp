#include "profiler/calibrations.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "core/error.h"

namespace profiler {

namespace {

constexpr const char* tables = R"(
create table if not exists calibrations (
  gpu text not null, framework text not null, cluster text not null, version text not null,
  kernels real not null, communication real not null, host real not null,
  primary key (gpu, framework, cluster));
create table if not exists calibration_runs (
  gpu text not null, framework text not null, cluster text not null, place integer not null,
  name text not null, run_gpu text not null, software text not null, experts integer not null, own_curves integer not null,
  measured_s real not null, predicted_s real not null,
  primary key (gpu, framework, cluster, place));
)";

// What SQLite complains of, as a complaint about the file.
template <class Work>
auto guarded(const std::filesystem::path& file, const Work& work) {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    throw core::InputError(fmt::format("profile database {}: {}", file.string(), error.what()));
  }
}

void bind_key(SQLite::Statement& statement, const SystemKey& key) {
  statement.bind(1, key.gpu);
  statement.bind(2, key.framework);
  statement.bind(3, key.cluster);
}

void remove(SQLite::Database& database, const SystemKey& key) {
  for (const auto* table : {"calibrations", "calibration_runs"}) {
    SQLite::Statement statement(database, fmt::format("delete from {} where gpu = ? and framework = ? and cluster = ?", table));
    bind_key(statement, key);
    statement.exec();
  }
}

void insert_run(SQLite::Database& database, const SystemKey& key, int place, const KeptRun& run) {
  SQLite::Statement statement(database, "insert into calibration_runs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_key(statement, key);
  statement.bind(4, place);
  statement.bind(5, run.name);
  statement.bind(6, run.gpu);
  statement.bind(7, run.software);
  statement.bind(8, static_cast<int>(run.experts));
  statement.bind(9, static_cast<int>(run.own_curves));
  statement.bind(10, run.measured_s);
  statement.bind(11, run.predicted_s);
  statement.exec();
}

void insert(SQLite::Database& database, const KeptCalibration& c) {
  SQLite::Statement statement(database, "insert into calibrations values (?, ?, ?, ?, ?, ?, ?)");
  bind_key(statement, c.key);
  statement.bind(4, c.version);
  statement.bind(5, c.kernels);
  statement.bind(6, c.communication);
  statement.bind(7, c.host);
  statement.exec();
  int place = 0;
  for (const auto& run : c.runs) insert_run(database, c.key, place++, run);
}

std::vector<KeptRun> runs_of(SQLite::Database& database, const SystemKey& key) {
  SQLite::Statement statement(
      database,
      "select name, run_gpu, software, experts, own_curves, measured_s, predicted_s from calibration_runs "
      "where gpu = ? and framework = ? and cluster = ? order by place");
  bind_key(statement, key);
  std::vector<KeptRun> runs;
  while (statement.executeStep()) {
    runs.push_back({statement.getColumn(0).getString(), statement.getColumn(1).getString(), statement.getColumn(2).getString(),
                    statement.getColumn(3).getInt() != 0, statement.getColumn(4).getInt() != 0,
                    statement.getColumn(5).getDouble(), statement.getColumn(6).getDouble()});
  }
  return runs;
}

std::vector<KeptCalibration> read_all(SQLite::Database& database) {
  std::vector<KeptCalibration> out;
  if (!database.tableExists("calibrations")) return out;
  SQLite::Statement statement(database,
                              "select gpu, framework, cluster, version, kernels, communication, host from calibrations "
                              "order by gpu, framework, cluster");
  while (statement.executeStep()) {
    auto& c = out.emplace_back();
    c.key = {statement.getColumn(0).getString(), statement.getColumn(1).getString(), statement.getColumn(2).getString()};
    c.version = statement.getColumn(3).getString();
    c.kernels = statement.getColumn(4).getDouble();
    c.communication = statement.getColumn(5).getDouble();
    c.host = statement.getColumn(6).getDouble();
    c.runs = runs_of(database, c.key);
  }
  return out;
}

}  // namespace

std::string SystemKey::text() const { return fmt::format("{} {}{}", gpu, framework, cluster.empty() ? "" : " " + cluster); }

void keep(const KeptCalibration& calibration, const std::filesystem::path& file) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw core::InputError(fmt::format("profile database {}: its folder cannot be made: {}", file.string(), error.message()));
  guarded(file, [&] {
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000);
    SQLite::Transaction transaction(database);
    database.exec(tables);
    remove(database, calibration.key);
    insert(database, calibration);
    transaction.commit();
  });
}

std::vector<KeptCalibration> all_kept(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  return guarded(file, [&] {
    SQLite::Database database(file.string(), SQLite::OPEN_READONLY, 5000);
    return read_all(database);
  });
}

std::optional<KeptCalibration> kept(const SystemKey& key, const std::filesystem::path& file) {
  for (auto& calibration : all_kept(file)) {
    if (calibration.key == key) return std::move(calibration);
  }
  return std::nullopt;
}

}  // namespace profiler
