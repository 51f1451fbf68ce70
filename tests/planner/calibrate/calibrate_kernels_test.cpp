#include "planner/calibrate/calibrate_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/curve_targets.h"
#include "planner/calibrate/data_text.h"
#include "planner/calibrate/kernel_rows.h"
#include "planner/calibrate/report.h"
#include "planner/calibrate/write.h"

namespace {

namespace fs = std::filesystem;
using planner::KernelFit;
using planner::LeaveOneOut;

fs::path shipped_tables() { return core::data_dir() / "measured"; }

std::vector<KernelFit> shipped_fits() {
  return planner::read_kernel_fits(core::data_dir() / "calibration" / "kernels.json");
}

KernelFit fit_named(const std::string& name) {
  for (const auto& fit : shipped_fits()) {
    if (fit.name == name) return fit;
  }
  throw std::logic_error("no fit " + name);
}

// A folder of a test with nothing in it.
fs::path empty_folder(const std::string& name) {
  const auto folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void write_text(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

// What a message of bad input says; "" where nothing was wrong.
std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

// A table of 16-bit GEMMs of an A100 whose times our own model gives with the parameters of a fit at
// their starts times the factors.
void write_gemms(const fs::path& folder, const KernelFit& fit, const std::vector<double>& factors) {
  const auto gpu = core::load_gpu("a100-sxm-80");
  planner::CurvesByGpu shipped;
  shipped.emplace(gpu.name, simulator::Curves::load(gpu));
  std::vector<double> x;
  for (const double factor : factors) x.push_back(std::log(factor));
  const auto curves = planner::CurveTargets(fit.spec.parameters, shipped).at(x).at(gpu.name);
  std::string text = "gpu,format,m,n,k,batch,grouped,time_us,fitted,model,source\n";
  for (const int m : {64, 128, 300, 512, 1000, 2048, 3000, 4096, 8192}) {
    for (const int n : {512, 1280, 4096, 10240}) {
      for (const int k : {256, 1024, 4096, 8192}) {
        core::OpSpec op;
        op.kind = core::OpKind::gemm;
        op.format = core::Format::fp16;
        op.m = m, op.n = n, op.k = k;
        const double us = simulator::kernel_time(op, curves).time.value * 1e6;
        text += fmt::format("a100-sxm-80,fp16,{},{},{},1,0,{},yes,made-{},a formula\n", m, n, k, us, n);
      }
    }
  }
  write_text(folder / "gemm.csv", text);
}

TEST(CalibrateKernels, FindsTheNumbersThatMadeATable) {
  auto fit = fit_named("GEMM, Ampere");
  for (auto& p : fit.spec.parameters) p.log_sigma = 100.0;  // times without noise need no prior
  // In their order: efficiency, tile perimeter, wave hardness, k ramp, overhead, bandwidth.
  const std::vector<double> factors = {0.9, 1.3, 1.5, 0.7, 1.2, 1.1};
  ASSERT_EQ(fit.spec.parameters.size(), factors.size());
  const auto folder = empty_folder("made_gemms");
  write_gemms(folder, fit, factors);
  const auto result = planner::calibrate_kernels({fit}, folder, "", LeaveOneOut::no);
  const auto& c = result.at(0).calibration;
  EXPECT_TRUE(c.converged) << c.message;
  EXPECT_EQ(c.rows, 9u * 4 * 4);
  for (std::size_t j = 0; j < factors.size(); ++j) {
    const double wanted = factors[j] * fit.spec.parameters[j].start();
    EXPECT_NEAR(c.fitted[j].value, wanted, 0.02 * wanted) << fit.spec.parameters[j].name;
  }
  EXPECT_LT(c.all().after.p90_abs, 0.002);
  EXPECT_GT(c.all().before.median_abs, 0.05);
}

TEST(CalibrateKernels, JudgesASourceThatIsLeftOutByAFitWithoutIt) {
  auto fit = fit_named("GEMM, Ampere");
  const auto folder = empty_folder("one_odd_source");
  write_gemms(folder, fit, {1, 1, 1, 1, 1, 1});
  // As made, but for one source that takes twice as long.
  const std::string odd = "a100-sxm-80,fp16,4096,4096,4096,1,0,1300,yes,odd,another formula\n";
  std::ofstream(folder / "gemm.csv", std::ios::app) << odd;
  const auto c =
      planner::calibrate_kernels({fit}, folder, "odd", LeaveOneOut::no).at(0).calibration;
  EXPECT_EQ(c.held_back, 1u);
  EXPECT_EQ(c.rows, 9u * 4 * 4);
  for (std::size_t j = 0; j < c.fitted.size(); ++j)
    EXPECT_NEAR(c.fitted[j].value, fit.spec.parameters[j].start(), 1e-5 * fit.spec.parameters[j].start());
  const auto judged = std::ranges::find(c.sources, "odd (held back)", &planner::SourceErrors::source);
  ASSERT_NE(judged, c.sources.end());
  EXPECT_GT(judged->after.median_abs, 0.3);
  EXPECT_EQ(complaint([&] { planner::calibrate_kernels({fit}, folder, "vidur", LeaveOneOut::no); }),
            "--leave-out vidur: no row of the tables has this source");
}

TEST(CalibrateKernels, KeepsWhatNoRowInformsAtItsStart) {
  const auto fit = fit_named("flash2, Ampere");
  const auto c =
      planner::calibrate_kernels({fit}, shipped_tables(), "", LeaveOneOut::no).at(0).calibration;
  const auto at = std::ranges::find(fit.spec.parameters, "flash2 rate, Ampere, 256", &planner::Parameter::name);
  ASSERT_NE(at, fit.spec.parameters.end());
  const auto j = static_cast<std::size_t>(at - fit.spec.parameters.begin());
  EXPECT_EQ(c.fitted[j].rows_touched, 0u);
  EXPECT_EQ(c.fitted[j].value, at->start());
  EXPECT_EQ(planner::remark_on(c.fitted[j]), "no row touches it: stays at its start");
}

// Of a list whose numbers are fitted one by one, all are written, with one source.
TEST(CalibrateKernels, WritesAListThatIsFittedOneByOne) {
  const auto fit = fit_named("flash2, Ampere");
  const auto c =
      planner::calibrate_kernels({fit}, shipped_tables(), "", LeaveOneOut::no).at(0).calibration;
  const auto texts = planner::written(c, core::data_dir(), "simulate calibrate");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].file, "curves/ampere.json");
  const auto root = core::Document::parse_json(texts[0].text, "ampere.json");
  const auto& rate = root.at("attention").at("flash2").at("forward_rate");
  ASSERT_EQ(rate.at("values").as_list().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(rate.at("values").as_list()[i].as_real(), c.fitted[i].value);
  EXPECT_EQ(rate.at("source").as_text().find("simulate calibrate: 5 parameters on 18 rows"), 0u);
}

// Times to the microsecond, small kernels, other machines: a fit of the shipped tables must not lose to
// where it starts, and a source that it has not seen must not surprise it.
TEST(CalibrateKernels, MeetsTheShippedTablesAndSourcesLeftOut) {
  for (const auto& fit : shipped_fits()) {
    const auto c =
        planner::calibrate_kernels({fit}, shipped_tables(), "", LeaveOneOut::yes).at(0).calibration;
    EXPECT_TRUE(c.converged) << fit.name << ": " << c.message;
    EXPECT_GT(c.rows, 0u) << fit.name;
    EXPECT_LT(c.all().after.mean_abs, c.all().before.mean_abs + 0.003) << fit.name;
    if (!c.all().left_out) continue;
    EXPECT_LT(c.all().left_out->median_abs, 0.16) << fit.name;
  }
}

// The numbers of a figure of data/curves.
std::vector<double> shipped_numbers(const planner::Target& target) {
  const auto root = core::Document::read_json_file(core::data_dir() / target.file());
  const auto* figure = planner::member_at(root, target.key);
  if (figure->has("value")) return {figure->at("value").as_real()};
  std::vector<double> numbers;
  for (const auto& each : figure->at("values").as_list()) numbers.push_back(each.as_real());
  return numbers;
}

// After a change of tables or declarations: `simulate calibrate --write`.
TEST(CalibrateKernels, ShippedCurvesAreWhatItWrites) {
  for (const auto& fit :
       planner::calibrate_kernels(shipped_fits(), shipped_tables(), "", LeaveOneOut::no)) {
    const auto& c = fit.calibration;
    for (std::size_t j = 0; j < c.fitted.size(); ++j) {
      if (c.fitted[j].rows_touched == 0) continue;
      for (std::size_t t = 0; t < c.spec.parameters[j].targets.size(); ++t) {
        const auto& target = c.spec.parameters[j].targets[t];
        const auto shipped = shipped_numbers(target);
        const auto first = target.element.value_or(0);
        const auto fitted = c.numbers(j, t);
        for (std::size_t i = 0; i < fitted.size(); ++i)
          EXPECT_NEAR(shipped[first + i], fitted[i], 1e-3 * fitted[i]) << target.file() << " " << target.key;
      }
    }
  }
}

// Kernels and runs each have their own figures: neither calibration undoes the other.
TEST(CalibrateKernels, FitsNoFigureThatRunsAreFittedFor) {
  const auto runs = planner::read_calibration(core::data_dir() / "calibration" / "parameters.json");
  std::set<std::string> of_runs;
  for (const auto& p : runs.parameters) {
    for (const auto& target : p.targets) of_runs.insert(target.file() + " " + target.key);
  }
  for (const auto& fit : shipped_fits()) {
    for (const auto& p : fit.spec.parameters) {
      for (const auto& target : p.targets)
        EXPECT_FALSE(of_runs.contains(target.file() + " " + target.key)) << p.name;
    }
  }
}

std::string refusal_of(const std::string& table, const std::string& text) {
  const auto folder = empty_folder("bad_table");
  write_text(folder / table, text);
  return complaint([&] { planner::calibrate_kernels(shipped_fits(), folder, "", LeaveOneOut::no); });
}

TEST(CalibrateKernels, NamesWhatIsWrongInASustainedTable) {
  const std::string gemm = "gpu,format,stage,m,n,k,batch,grouped,time_us,source\n";
  EXPECT_NE(refusal_of("gemm_sustained.csv", gemm + "b200-simumax,bf16,backward,1,1,1,1,0,1,x\n")
                .find("line 2, column stage: found \"backward\", expected forward, input_gradient or weight_gradient"),
            std::string::npos);
  const std::string attention = "gpu,kernel,pass,head_size,value_size,causal,sequence,heads,kv_heads,time_us,source\n";
  EXPECT_NE(refusal_of("attention_sustained.csv", attention + "b200-simumax,flash2,fwd,128,128,1,4096,64,7,1,x\n")
                .find("line 2, column kv_heads: found \"7\", expected a divisor of heads"),
            std::string::npos);
}

// What an fp32 sum moves: operands of two bytes, an output that is read and written in four.
TEST(CalibrateKernels, AddsWeightGradientsToFp32Sums) {
  planner::KernelTable table;
  table.name = "a.csv";
  table.columns = {"gpu", "format", "stage", "m", "n", "k", "batch", "grouped", "time_us"};
  table.rows = {{2, {"b200", "bf16", "weight_gradient", "100", "200", "300", "4", "1", "7"}},
                {3, {"b200", "bf16", "input_gradient", "100", "200", "300", "4", "1", "7"}}};
  const auto op_of = [&](std::size_t i) {
    return planner::kernel_row("gemm", planner::KernelCells(table, table.rows[i])).kernels.front();
  };
  EXPECT_EQ(op_of(0).direction, core::Direction::backward);
  EXPECT_EQ(op_of(0).bytes.value, 4.0 * (2.0 * (100 * 300 + 300 * 200) + 8.0 * 100 * 200));
  EXPECT_EQ(op_of(1).bytes.value, 0.0);  // the kernel's own
}

TEST(CalibrateKernels, NamesWhatIsWrongInATable) {
  const std::string gemm = "gpu,format,m,n,k,batch,grouped,time_us,fitted,source\n";
  EXPECT_EQ(refusal_of("gemm.csv", gemm + "a40,fp16,1024,1024,1024,1,0,,yes,x\n"),
            "gemm.csv: line 2, column time_us: found \"\", expected a number above 0");
  EXPECT_EQ(refusal_of("gemm.csv", gemm + "a40,fp16,1024,1024,10.5,1,0,9,yes,x\n"),
            "gemm.csv: line 2, column k: found \"10.5\", expected a count from 1");
  EXPECT_EQ(refusal_of("gemm.csv", gemm + "\na40,fp16,1024,1024,1024,1,maybe,9,yes,x\n"),
            "gemm.csv: line 3, column grouped: found \"maybe\", expected 0 or 1");
  EXPECT_NE(refusal_of("gemm.csv", gemm + "a40,fp16,1024\n").find("line 2: found 3 cells, expected 10"),
            std::string::npos);
  EXPECT_EQ(refusal_of("gemm.csv", "gpu,m\na40,1\n"), "gemm.csv: expected a column format");
  EXPECT_NE(refusal_of("gemm.csv", "").find("gemm.csv: expected a header"), std::string::npos);
  EXPECT_EQ(refusal_of("attention.csv",
                       "gpu,kernel,pass,head_size,causal,sequence,tokens,heads,tflops,source\n"
                       "a100-sxm-80,flash1,sideways,64,0,1024,16384,32,92,x\n"),
            "attention.csv: line 2, column pass: found \"sideways\", expected fwd, bwd or fwd+bwd");
  EXPECT_EQ(refusal_of("collectives.csv",
                       "op,gpu,node,gpus,nodes,bytes,time_us,algorithm,quality,source\n"
                       "all_reduce,h100-sxm,dgx-h1000,8,1,65536,18.85,,measured,x\n"),
            "collectives.csv: line 2, column node: found \"dgx-h1000\", expected a node of data/nodes");
  EXPECT_NE(refusal_of("other.csv", "a\n").find("expected a folder with one of attention.csv"),
            std::string::npos);
}

std::string refusal_of_fits(const std::string& from, const std::string& to) {
  std::ifstream in(core::data_dir() / "calibration" / "kernels.json");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto file = empty_folder("bad_fits") / "kernels.json";
  write_text(file, text);
  return complaint([&] { planner::read_kernel_fits(file); });
}

TEST(CalibrateKernels, NamesWhatIsWrongInItsFits) {
  EXPECT_NE(refusal_of_fits("\"kind\": \"gemm\"", "\"kind\": \"gems\"")
                .find("kind: expected one of gemm, attention, timed_attention, memory_bound, scan, collectives"),
            std::string::npos);
  EXPECT_NE(refusal_of_fits("\"gemm.tile_perimeter\"", "\"gemm.tile_perimetre\"")
                .find("key: expected the key of a number in curves/ampere.json"),
            std::string::npos);
  EXPECT_NE(refusal_of_fits("[\"64\", \"128\", \"256\"]", "[\"64\", \"128\"]")
                .find("each: expected a name for each number of the lists"),
            std::string::npos);
  EXPECT_NE(refusal_of_fits("\"where\"", "\"were\"").find("were"), std::string::npos);
}

}  // namespace
