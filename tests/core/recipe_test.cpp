#include "core/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace {

using core::GemmRole;
using core::LinearKind;
using core::load_recipe;
using core::Recipe;

double state_bytes(const Recipe& r) {
  return r.weight_bytes + r.main_weight_bytes + r.gradient_bytes + r.moment1_bytes +
         r.moment2_bytes;
}

// What the distributed optimizer divides by the data-parallel size.
double optimizer_bytes(const Recipe& r) {
  return r.main_weight_bytes + r.moment1_bytes + r.moment2_bytes;
}

TEST(Recipe, Bf16Takes18BytesAParameter) {
  const Recipe r = load_recipe("bf16");
  EXPECT_DOUBLE_EQ(state_bytes(r), 18.0);
  EXPECT_DOUBLE_EQ(state_bytes(r) - optimizer_bytes(r) + optimizer_bytes(r) / 8, 7.5);
  EXPECT_EQ(r.gemm_forward, "bf16");
  EXPECT_DOUBLE_EQ(r.gradient_reduce_bytes, 4.0);
}

TEST(Recipe, SixteenBitGradientsTake16BytesAParameter) {
  for (const char* name : {"bf16-grad16", "fp16"}) {
    const Recipe r = load_recipe(name);
    EXPECT_DOUBLE_EQ(state_bytes(r), 16.0) << name;
    EXPECT_DOUBLE_EQ(state_bytes(r) - optimizer_bytes(r), 4.0) << name;
    EXPECT_DOUBLE_EQ(r.gradient_reduce_bytes, 2.0) << name;
  }
}

// Field case F30: bf16 weights are kept and copies come on top, whatever the scaling.
TEST(Recipe, FewerBitsInGemmsNeverShrinkTheStates) {
  for (const char* name : {"fp8", "fp8-current", "mxfp8", "nvfp4", "bitnet"}) {
    const Recipe r = load_recipe(name);
    EXPECT_GE(state_bytes(r), state_bytes(load_recipe("bf16"))) << name;
    EXPECT_GT(r.weight_copy_bytes, 0.0) << name;
  }
  const Recipe fp8 = load_recipe("fp8");
  EXPECT_DOUBLE_EQ(fp8.weight_copy_bytes, 2.0);
  EXPECT_DOUBLE_EQ(fp8.gemm_input_bytes, 1.0);
  EXPECT_EQ(fp8.gemm_output, "bf16");
  EXPECT_EQ(fp8.compute_format, "bf16");
}

TEST(Recipe, EveryShippedRecipeLoads) {
  std::set<std::string> names;
  for (const std::string& name : core::data_names("recipes")) {
    const Recipe r = load_recipe(name);
    EXPECT_EQ(r.name, name);
    EXPECT_FALSE(r.sources.empty()) << name;
    // Router and output layer stay in 16 bits in all of them, but for the one named after what it adds.
    for (const auto kind : {LinearKind::router, LinearKind::output}) {
      if (name == "mxfp8-wide" && kind == LinearKind::output) continue;
      for (const auto& gemm : r.linear(kind).gemms) EXPECT_DOUBLE_EQ(gemm.left.stored(), 2.0) << name;
    }
    names.insert(name);
  }
  for (const char* name : {"bf16", "bf16-grad16", "fp16", "fp8", "fp8-current", "fp8-block", "mxfp8", "mxfp8-wide", "nvfp4",
                           "fp4-wang2025", "bitnet", "bf16-adam8bit", "bf16-states16", "bf16-muon", "bf16-adafactor",
                           "bf16-pure"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// Weights, main weights, gradients and moments, by each recipe's own paper.
TEST(Recipe, StatesAreThoseOfThePapers) {
  // arXiv 2412.19437, section 3.3.3: bf16 moments, fp32 main weights and gradients.
  EXPECT_DOUBLE_EQ(state_bytes(load_recipe("bf16-states16")), 2 + 4 + 4 + 2 + 2);
  EXPECT_DOUBLE_EQ(state_bytes(load_recipe("fp8-block")), 2 + 4 + 4 + 2 + 2);
  // All in the format of the weights.
  EXPECT_DOUBLE_EQ(state_bytes(load_recipe("bf16-pure")), 4 * 2);
  // One byte a moment and a 4-byte scale for each block of 256.
  EXPECT_DOUBLE_EQ(state_bytes(load_recipe("bf16-adam8bit")), 2 + 2 + 2 * (1 + 4.0 / 256));
  // Field case F21: what makes a full fine-tune of 7B fit 80 GB.
  EXPECT_LT(state_bytes(load_recipe("bf16-adam8bit")) * 6.74e9, 45e9);
  EXPECT_GT(12.0 * 6.74e9, 80e9);
}

// Scale factors: 4 bytes for 128 or 128 x 128 elements, 1 for 32, 1 for 16.
TEST(Recipe, ScaleFactorsAreCounted) {
  const auto number = [](const char* name, GemmRole role) { return load_recipe(name).linear(LinearKind::linear).of(role); };
  EXPECT_DOUBLE_EQ(number("fp8", GemmRole::forward).left.stored(), 1.0);
  EXPECT_DOUBLE_EQ(number("fp8-block", GemmRole::forward).left.stored(), 1 + 4.0 / 128);
  EXPECT_DOUBLE_EQ(number("fp8-block", GemmRole::forward).right.stored(), 1 + 4.0 / 16384);
  EXPECT_DOUBLE_EQ(number("mxfp8", GemmRole::weight_gradient).left.stored(), 1 + 1.0 / 32);
  EXPECT_DOUBLE_EQ(number("nvfp4", GemmRole::input_gradient).right.stored(), 0.5 + 1.0 / 16);
  EXPECT_DOUBLE_EQ(load_recipe("mxfp8").weight_copy_bytes, 2 * (1 + 1.0 / 32));
  EXPECT_DOUBLE_EQ(load_recipe("nvfp4").weight_copy_bytes, 2 * (0.5 + 1.0 / 16));
  EXPECT_NEAR(load_recipe("fp8-block").weight_copy_bytes, 2 * (1 + 4.0 / 16384), 1e-9);
}

// What is saved for the weight gradient is its operand, where the operand is made in the forward pass.
TEST(Recipe, SavedInputsAreOperandsOfTheWeightGradient) {
  for (const char* name : {"bf16", "fp16", "fp8", "fp8-current", "fp8-block", "mxfp8", "nvfp4", "fp4-wang2025", "bitnet"}) {
    const Recipe r = load_recipe(name);
    EXPECT_DOUBLE_EQ(r.gemm_input_bytes, r.linear(LinearKind::linear).of(GemmRole::weight_gradient).right.stored()) << name;
  }
}

// A pass that makes an operand reads at least what it writes from: two bytes an element, or the cached operand.
TEST(Recipe, PassesWriteTheOperands) {
  const auto written = [](const std::string& name, core::CastPass::Tensor tensor) {
    double bytes = 0.0;
    for (const auto& pass : load_recipe(name).passes) bytes += pass.tensor == tensor ? pass.bytes : 0.0;
    return bytes;
  };
  using Tensor = core::CastPass::Tensor;
  // Fused cast and transpose: 2 + 1 + 1; current scaling reads once more.
  EXPECT_DOUBLE_EQ(written("fp8", Tensor::input), 4.0);
  EXPECT_DOUBLE_EQ(written("fp8-current", Tensor::input), 6.0);
  // Cast 2 + 1, and once more from the cached tile; gradients by rows and columns in one pass.
  EXPECT_DOUBLE_EQ(written("fp8-block", Tensor::input), 2 + 3 * (1 + 4.0 / 128));
  EXPECT_DOUBLE_EQ(written("fp8-block", Tensor::gradient), 2 + 2 * (1 + 4.0 / 128));
  EXPECT_DOUBLE_EQ(written("mxfp8", Tensor::input), 2 + 2 * (1 + 1.0 / 32));
  // Largest values; then along rows, and transformed along columns, in one kernel: two reads, two operands.
  EXPECT_DOUBLE_EQ(written("nvfp4", Tensor::gradient), 2 * 2 + 2 * (0.5 + 1.0 / 16));
  EXPECT_DOUBLE_EQ(written("bf16", Tensor::input), 0.0);
}

// arXiv 2509.25149: 2 + 8 of 62 blocks, 16 % of the linear layers; a layer is two blocks.
TEST(Recipe, Nvfp4KeepsSomeLayersHigh) {
  const Recipe r = load_recipe("nvfp4");
  std::int64_t high = 0;
  for (std::int64_t layer = 0; layer < 31; ++layer) high += r.keeps_high(layer, 31) ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(high) / 31, 10.0 / 62, 1e-12);
  EXPECT_TRUE(r.keeps_high(0, 31) && r.keeps_high(30, 31) && r.keeps_high(27, 31));
  EXPECT_FALSE(r.keeps_high(1, 31) || r.keeps_high(26, 31));
  EXPECT_FALSE(load_recipe("fp8").keeps_high(0, 31));
  EXPECT_EQ(r.high.of(GemmRole::forward).rate, core::Format::bf16);
}

// One pass of two bytes read and two scaled copies written, as before a GEMM; layers kept high have none.
TEST(Recipe, AttentionInMxfp8) {
  EXPECT_FALSE(load_recipe("mxfp8").core_attention);
  const Recipe wide = load_recipe("mxfp8-wide");
  ASSERT_TRUE(wide.core_attention);
  EXPECT_EQ(wide.core_attention->rate, core::Format::fp8);
  EXPECT_DOUBLE_EQ(wide.core_attention->cast_bytes, 2 + 2 * (1 + 1.0 / 32));
  EXPECT_DOUBLE_EQ(wide.core_attention->gradient_cast_bytes, 2 + 2 * (1 + 1.0 / 32));
  EXPECT_EQ(wide.linear(LinearKind::output), wide.linear(LinearKind::linear));
  EXPECT_EQ(wide.gemm_output, "fp8");
  EXPECT_FALSE(wide.kept_high().core_attention);
}

// arXiv 2412.19437, section 3.3.3: fp8 to the experts in both directions, both combines in bf16.
TEST(Recipe, DispatchTravelsInFp8) {
  const Recipe r = load_recipe("fp8-block");
  EXPECT_DOUBLE_EQ(r.dispatch_bytes, 1 + 4.0 / 128);
  EXPECT_DOUBLE_EQ(r.gradient_dispatch_bytes, 1 + 4.0 / 128);
  EXPECT_DOUBLE_EQ(r.combine_bytes, 2.0);
  EXPECT_DOUBLE_EQ(r.gradient_combine_bytes, 2.0);
  EXPECT_DOUBLE_EQ(load_recipe("bf16").dispatch_bytes, 2.0);
}

TEST(Recipe, RatesAreThoseThatItsGemmsNeed) {
  EXPECT_EQ(load_recipe("bf16").rates(), std::vector<std::string>{"bf16"});
  EXPECT_EQ(load_recipe("fp8").rates(), (std::vector<std::string>{"fp8", "bf16"}));
  EXPECT_EQ(load_recipe("fp4-wang2025").rates(), (std::vector<std::string>{"fp4", "fp8", "bf16"}));
  // Ternary weights are a matter of values, not of tensor cores.
  EXPECT_EQ(load_recipe("bitnet").rates(), std::vector<std::string>{"bf16"});
}

// --- the optimizer ---

// Adam: the gradient read for the norm and for the update, main weights and moments in and out, weights out.
TEST(OptimizerWork, OfAdam) {
  const auto work = core::optimizer_work(load_recipe("bf16"), {1000.0, 900.0, 5e9});
  EXPECT_DOUBLE_EQ(work.states.value, 1000.0 * (4 + 4 + 4));
  EXPECT_DOUBLE_EQ(work.traffic.value, 1000.0 * (2 * 4 + 2 * 12 + 2));
  EXPECT_DOUBLE_EQ(work.flops.value, 0.0);
}

// Without main weights the weights themselves are read and written.
TEST(OptimizerWork, WithoutMainWeights) {
  const auto work = core::optimizer_work(load_recipe("bf16-pure"), {1000.0, 900.0, 0.0});
  EXPECT_DOUBLE_EQ(work.states.value, 1000.0 * 4);
  EXPECT_DOUBLE_EQ(work.traffic.value, 1000.0 * (2 * 2 + 2 * 4 + 2 * 2));
}

// Muon keeps one moment of matrices; Adam's two of the rest.
TEST(OptimizerWork, OfMuon) {
  const auto work = core::optimizer_work(load_recipe("bf16-muon"), {1000.0, 900.0, 7.0});
  EXPECT_DOUBLE_EQ(work.states.value, 4.0 * 1000 + 4.0 * 900 + 8.0 * 100);
  EXPECT_DOUBLE_EQ(work.flops.value, 5 * 7.0);
  EXPECT_DOUBLE_EQ(core::newton_schulz_flops(3, 5), 4 * 9.0 * 5 + 2 * 27.0);
  EXPECT_DOUBLE_EQ(core::newton_schulz_flops(5, 3), core::newton_schulz_flops(3, 5));
}

// Jordan et al. 2024: T steps take at most 6 T n m^2 FLOPs a matrix, T m / B of the 6 n m B of training on B tokens: 0.7 %
// of nanoGPT's (m = 768, B = 524,288, T = 5) and 0.5 % of Llama 405B's (m = 16,384, B = 16,000,000).
TEST(OptimizerWork, MuonsOverheadIsThePublishedOne) {
  const auto overhead = [](double m, double batch) { return 5 * core::newton_schulz_flops(m, m) / (6 * m * m * batch); };
  EXPECT_NEAR(overhead(768, 524288), 0.007, 0.0005);
  EXPECT_NEAR(overhead(16384, 16e6), 0.005, 0.0005);
}

// Adafactor keeps next to nothing (arXiv 1804.04235); four bytes of weight and gradient remain.
TEST(OptimizerWork, OfAdafactor) {
  const auto work = core::optimizer_work(load_recipe("bf16-adafactor"), {1e9, 9e8, 0.0});
  EXPECT_LT(work.states.value, 0.01 * 1e9);
  EXPECT_GT(work.states.value, 0.0);
}

// --- complaints ---

// The complaint about a recipe with `from` replaced by `to`.
std::string complaint(const std::string& from, const std::string& to, const std::string& recipe = "bf16") {
  std::stringstream text;
  text << std::ifstream(core::data_file("recipes", recipe, "--recipe")).rdbuf();
  std::string json = text.str();
  const std::size_t place = json.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place == std::string::npos) return "";
  json.replace(place, from.size(), to);
  try {
    core::read_recipe(core::Document::parse_json(json, "mine.json"), "mine");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Recipe, ComplaintsNameFileAndKey) {
  const std::string unknown = complaint("\"moment2\": 4", "\"moment2\": 4, \"moment3\": 4");
  EXPECT_NE(unknown.find("mine.json"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("moment3"), std::string::npos) << unknown;
  const auto names = [](const std::string& message, const std::string& what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find("mine.json"), std::string::npos) << message;
  };
  names(complaint("\"moment2\": 4,", ""), "moment2");
  names(complaint("\"moment2\": 4", "\"moment2\": -4"), "moment2");
  names(complaint("\"output\": \"bf16\"", "\"output\": \"bf15\""), "gemms.output");
  names(complaint("\"output\": \"bf16\"", "\"outptu\": \"bf16\""), "output");
  names(complaint("\"scaling\": \"none\"", "\"scaling\": \"slow\""), "scaling");
  names(complaint("\"kind\": \"adam\"", "\"kind\": \"adamw\""), "optimizer.kind");
  names(complaint("\"precision_law\": \"none\",", ""), "precision_law");
  names(complaint("\"gemms\": \"Megatron-LM --bf16\",", ""), "sources");
  names(complaint("\"rate\": \"fp8\"", "\"rate\": \"fp9\"", "mxfp8"), "gemms.linear.forward.rate");
  names(complaint("\"input\": \"e4m3_1x32\"", "\"input\": \"e4m3_1x23\"", "mxfp8"), "e4m3_1x32");
  names(complaint("\"block\": \"1x32\"", "\"block\": \"1by32\"", "mxfp8"), "numbers.e4m3_1x32.block");
  names(complaint("\"before\": \"forward\"", "\"before\": \"step\"", "mxfp8"), "before");
  names(complaint("\"kind\": \"adam\"", "\"kind\": \"muon\", \"matrix_moment1\": 4, \"matrix_moment2\": 0, "
                  "\"newton_schulz_steps\": 5, \"newton_schulz_format\": \"bf16\", \"matrix_gather\": 2", "nvfp4"),
        "high_layers");
  names(complaint(", \"matrix_gather\": 2", "", "bf16-muon"), "matrix_gather");
}

TEST(Recipe, AnUnknownNameIsAnInputError) { EXPECT_THROW(load_recipe("bf61"), core::InputError); }

}  // namespace
