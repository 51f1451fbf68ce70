#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "simulator/cost/cost.h"

namespace {

using core::Document;
using simulator::Curves;

core::Gpu gpu_of_arch(std::string arch) {
  core::Gpu gpu;
  gpu.name = "test-gpu";
  gpu.arch = std::move(arch);
  gpu.sms = 100;
  gpu.dense_tflops = {{"fp16", 100.0}};
  return gpu;
}

// The complaint about a document put over the shipped curves of an A100, or nothing.
std::string complaint(const std::string& text) {
  const core::Gpu gpu = gpu_of_arch("ampere");
  try {
    const Document shipped =
        Document::read_json_file(FORETRAIN_SOURCE_DIR "/data/curves/ampere.json");
    Curves::from_documents(gpu, {shipped, Document::parse_json(text, "own.json")}, 1);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Curves, EveryShippedNumberHasASource) {
  for (const char* arch : {"volta",
                           "ampere",
                           "ada",
                           "hopper",
                           "blackwell",
                           "blackwell-rtx",
                           "cdna2",
                           "cdna3",
                           "cdna4",
                           "gaudi",
                           "tpu",
                           "trainium"}) {
    core::Gpu gpu = gpu_of_arch(arch);
    if (gpu.arch == "tpu") gpu.dense_tflops = {{"bf16", 100.0}};
    const Curves curves = Curves::load(gpu);
    EXPECT_GT(curves.keys().size(), 40u);
    for (const std::string& key : curves.keys()) {
      EXPECT_GE(curves.source_of(key).size(), 6u) << arch << " " << key;
    }
  }
}

TEST(Curves, EveryShippedGpuHasThem) {
  for (const std::string& name : core::data_names("gpus")) {
    const Curves curves = Curves::load(core::load_gpu(name));
    EXPECT_TRUE(curves.find("collectives.ring.domains") || !curves.list("collectives.ring.domains").empty());
    EXPECT_GT(curves.at("collectives.all_to_all.nic_efficiency"), 0.0) << name;
    EXPECT_GT(curves.at("host.pcie_efficiency"), 0.0) << name;
  }
}

TEST(Curves, NamesTheNumberThatAPredictionLacks) {
  const Curves curves = Curves::load(gpu_of_arch("volta"));
  try {
    curves.needed("host.c2c_efficiency", "copy_to_host");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "curves of test-gpu (volta): missing key host.c2c_efficiency, which copy_to_host needs");
  }
}

TEST(Curves, FlattensGroupsToDottedKeys) {
  const Curves curves = Curves::load(gpu_of_arch("ampere"));
  EXPECT_GT(curves.at("gemm.bf16.efficiency"), 0.5);
  EXPECT_EQ(curves.list("gemm.tiles").size() % 2, 0u);
  EXPECT_FALSE(curves.find("gemm.bf15.efficiency").has_value());
}

TEST(Curves, AGpusOwnFileOverrides) {
  const core::Gpu gpu = gpu_of_arch("ampere");
  const Document shipped =
      Document::read_json_file(FORETRAIN_SOURCE_DIR "/data/curves/ampere.json");
  const Document own = Document::parse_json(
      R"({"sections": {"gemm": {"origin": "fitted", "fitted_on": ["test-gpu"]}},
          "gemm": {"fp16": {"efficiency": {"value": 0.5, "source": "own", "checked": "seen"}}}})",
      "own.json");
  const Curves curves = Curves::from_documents(gpu, {shipped, own}, 1);
  EXPECT_DOUBLE_EQ(curves.at("gemm.fp16.efficiency"), 0.5);
  EXPECT_EQ(curves.source_of("gemm.fp16.efficiency"), "own");
  EXPECT_EQ(curves.origin_of("gemm"), simulator::Origin::fitted);
  EXPECT_EQ(curves.origin_of("attention"), simulator::Origin::roofline);
}

TEST(Curves, ComplainsOfMalformedEntries) {
  EXPECT_NE(complaint(R"({"gem": {}})").find("gem"), std::string::npos);
  EXPECT_NE(complaint(R"({"gemm": {"k_ramp": 3}})").find("gemm.k_ramp"), std::string::npos);
  EXPECT_NE(complaint(R"({"gemm": {"k_ramp": {"value": 3, "checked": "seen"}}})").find("source"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"gemm": {"k_ramp": {"value": 3, "source": "s", "checked": "sure"}}})")
                .find("checked"),
            std::string::npos);
  EXPECT_NE(
      complaint(
          R"({"gemm": {"k_ramp": {"value": 3, "source": "s", "checked": "seen", "unit": "us"}}})")
          .find("unit"),
      std::string::npos);
  EXPECT_NE(complaint(R"({"gemm": {"fp16": {"efficiency":
                   {"value": 1.5, "source": "s", "checked": "seen"}}}})")
                .find("efficiency"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"gemm": {"tiles": {"value": 1, "source": "s", "checked": "seen"}}})")
                .find("gemm.tiles"),
            std::string::npos);
}

TEST(Curves, NamesAMissingNumber) {
  try {
    Curves::from_documents(gpu_of_arch("ampere"), {Document::parse_json("{}", "empty.json")});
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("gemm."), std::string::npos) << error.what();
  }
}

TEST(Curves, NamesAnArchitectureWithoutCurves) {
  EXPECT_THROW(Curves::load(gpu_of_arch("kepler")), core::InputError);
}

TEST(Curves, TwoFilesOfAnArchitectureDoNotSayTheSame) {
  const Document shipped =
      Document::read_json_file(FORETRAIN_SOURCE_DIR "/data/curves/ampere.json");
  EXPECT_THROW(Curves::from_documents(gpu_of_arch("ampere"), {shipped, shipped}), core::InputError);
}

}  // namespace
