#include "core/recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace {

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

TEST(Recipe, Fp8NeverShrinksTheStates) {
  const Recipe fp8 = load_recipe("fp8");
  EXPECT_GE(state_bytes(fp8), state_bytes(load_recipe("bf16")));
  EXPECT_DOUBLE_EQ(fp8.weight_copy_bytes, 2.0);
  EXPECT_DOUBLE_EQ(fp8.gemm_input_bytes, 1.0);
  EXPECT_EQ(fp8.gemm_output, "bf16");
  EXPECT_EQ(fp8.compute_format, "bf16");
}

TEST(Recipe, EveryShippedRecipeLoads) {
  for (const std::string& name : core::data_names("recipes")) {
    const Recipe r = load_recipe(name);
    EXPECT_EQ(r.name, name);
    EXPECT_FALSE(r.sources.empty()) << name;
  }
}

// The complaint about the bf16 recipe with `from` replaced by `to`.
std::string complaint(const std::string& from, const std::string& to) {
  std::stringstream text;
  text << std::ifstream(core::data_file("recipes", "bf16", "--recipe")).rdbuf();
  std::string json = text.str();
  const std::size_t place = json.find(from);
  EXPECT_NE(place, std::string::npos);
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
  EXPECT_NE(complaint("\"moment2\": 4,", "").find("moment2"), std::string::npos);
  EXPECT_NE(complaint("\"moment2\": 4", "\"moment2\": -4").find("moment2"), std::string::npos);
  EXPECT_NE(complaint("\"gemm_output\": \"bf16\"", "\"gemm_output\": \"bf15\"").find("gemm_output"),
            std::string::npos);
}

TEST(Recipe, AnUnknownNameIsAnInputError) { EXPECT_THROW(load_recipe("bf61"), core::InputError); }

}  // namespace
