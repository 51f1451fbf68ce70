#include "fitting/precision/recipe_text.h"

#include <gtest/gtest.h>

#include "fitting/precision/recipe_match.h"

namespace fitting {
namespace {

std::string matched(const std::string& recipe, const std::string& method = "training") {
  GapRow row;
  row.recipe = recipe;
  row.method = method;
  row.N = 7e9;
  const auto match = match_recipe(row, read_recipe(recipe));
  return match.by == RecipeMatch::By::nothing ? "" : match.name;
}

TEST(RecipeText, ReadsTensors) {
  const auto recipe = read_recipe("w=e4m3/128x128;a=e4m3/1x128;g=e5m2/1x128;acc=fp32 every 128;high=embed,head");
  ASSERT_TRUE(recipe.weights && recipe.activations && recipe.gradients);
  EXPECT_EQ(recipe.weights->element, "fp8");
  EXPECT_EQ(recipe.weights->rows, 128.0);
  EXPECT_EQ(recipe.activations->rows, 1.0);
  EXPECT_EQ(recipe.activations->columns, 128.0);
  EXPECT_EQ(recipe.gradients->bits, 8.0);
  EXPECT_FALSE(recipe.low_moments);
}

TEST(RecipeText, TakesTheFormatOfTheWholeWhereATensorHasABlockAlone) {
  const auto recipe = read_recipe("NVFP4 NVIDIA recipe: w=16x16;a,g=1x16;SR+RHT on backward;all linears");
  ASSERT_TRUE(recipe.weights && recipe.activations);
  EXPECT_EQ(recipe.weights->bits, 4.0);
  EXPECT_EQ(recipe.weights->rows, 16.0);
  EXPECT_EQ(recipe.activations->block_scale, "nv");
  EXPECT_TRUE(recipe.all_linears);
}

TEST(RecipeText, SharesScalesAsTold) {
  EXPECT_EQ(format_in("float8 tensorwise")->sharing, Sharing::tensor);
  EXPECT_EQ(format_in("float8 rowwise")->sharing, Sharing::channel);
  EXPECT_EQ(format_in("int4 group 128 AWQ")->columns, 128.0);
  EXPECT_EQ(format_in("2.25-bit NormalFloat")->bits, 2.25);
  EXPECT_EQ(format_in("W4A4 QAT")->bits, 4.0);
  EXPECT_FALSE(format_in("Smooth-SwiGLU"));
}

TEST(RecipeText, SaysWhatItTakesForGranted) {
  EXPECT_EQ(match_training(read_recipe("NVFP4 NVIDIA recipe")).note, "");
  EXPECT_NE(match_training(read_recipe("NVFP4")).note.find("NVIDIA's recipe"), std::string::npos);
  EXPECT_NE(match_training(read_recipe("FP8")).note.find("not stated"), std::string::npos);
  EXPECT_NE(match_training(read_recipe("w=mxfp4;a=mxfp8;SR on grads")).note.find("coarser"), std::string::npos);
}

// By the forward format, its scales and the method's name.
TEST(RecipeText, MatchesWhatWasMeasured) {
  EXPECT_EQ(matched("w=e4m3/128x128;a=e4m3/1x128;g=e4m3/1x128"), "fp8-block");
  EXPECT_EQ(matched("w,a,g=e4m3/1x32 e8m0;scale rounded up"), "mxfp8");
  EXPECT_EQ(matched("w,a=e4m3;g=e5m2;per-tensor current scaling"), "fp8-current");
  EXPECT_EQ(matched("TE per-tensor delayed; w,a=e4m3;g=e5m2"), "fp8");
  EXPECT_EQ(matched("float8 rowwise + bf16 all-gather"), "fp8-row");
  EXPECT_EQ(matched("TE FP8 linears + activations saved e4m3 (1x16 groups) + adam m,v=e4m3 with range expansion"), "fp8 + bf16-adam8bit");
  EXPECT_EQ(matched("w=e2m1/16x16 e4m3+fp32;a,g=e2m1/1x16 e4m3+fp32;SR on grads;RHT16 on Wgrad"), "nvfp4");
  EXPECT_EQ(matched("NVFP4 NVIDIA recipe + 4/6"), "nvfp4-four-over-six");
  EXPECT_EQ(matched("NVFP4 Quartet II: 1x16 forward + four-over-six;MS-EDEN unbiased backward H128"), "nvfp4-quartet2");
  EXPECT_EQ(matched("NVFP4 TetraJet-v2"), "nvfp4-tetrajet-v2");
  EXPECT_EQ(matched("w,a,g=e2m1/1x32 e8m0;SR on grads"), "mxfp4");
  EXPECT_EQ(matched("w,a=MXFP4 QuEST+Hadamard;g=MXFP4 SR+Hadamard"), "mxfp4-quartet");
  EXPECT_EQ(matched("w,a=MXFP4 QuEST+Hadamard (forward only);g=bf16"), "mxfp4-quartet-forward");
  EXPECT_EQ(matched("forward bf16;backward operands=MXFP4 SR+Hadamard"), "mxfp4-backward");
  EXPECT_EQ(matched("w=e2m1/per-channel;a=e2m1/per-token;grad communication=fp8;adam m=fp8,v=bf16"), "fp4-wang2025");
  EXPECT_EQ(matched("LUQ-INT4 as re-implemented there"), "early-4bit");
  EXPECT_EQ(matched("w,a=int4 per tensor;g=bf16"), "kumar-published");
  EXPECT_EQ(matched("w=bf16;a=bf16;high=all"), "bf16");
}

TEST(RecipeText, TellsLateSwitchesApart) {
  const std::string nvfp4 = "w=e2m1/16x16;a,g=e2m1/1x16;high=norm; ";
  EXPECT_EQ(matched(nvfp4 + "forward AND backward to bf16 for the last 18%"), "nvfp4-late16");
  EXPECT_EQ(matched(nvfp4 + "forward only to bf16 for the last 18%"), "nvfp4-late16-forward");
  EXPECT_EQ(matched(nvfp4 + "forward AND backward to bf16 for the last 50%"), "");
}

TEST(RecipeText, MatchesAfterTraining) {
  EXPECT_EQ(matched("w=int4 group 128 AWQ;a=fp16", "PTQ"), "weights-int4");
  EXPECT_EQ(matched("w=int3 group 64 GPTQ;a=fp16", "PTQ"), "weights-int3");
  EXPECT_EQ(matched("w=int4 per channel;a=fp16", "PTQ"), "");
  EXPECT_EQ(matched("mxfp8-e4m3/1x32 direct cast on kv", "PTQ"), "kv-8bit");
  EXPECT_EQ(matched("kv=2 bit (K per channel, V per token, group 32, last 128 tokens fp16)", "PTQ"), "kv-2bit");
  EXPECT_EQ(matched("kv=2 bit", "PTQ"), "");
  EXPECT_EQ(matched("4-bit KV on BitNet a4.8", "PTQ"), "kv-4bit");
  EXPECT_EQ(matched("4-bit Q, 3-bit KV on BitNet a4.8", "PTQ"), "");
  EXPECT_EQ(matched("INT4 weight-only, group size 128, GPTQ", "PTQ"), "weights-int4");
  EXPECT_EQ(matched("w=int4 g128 AWQ;a=fp16", "PTQ"), "weights-int4");
  EXPECT_EQ(matched("QLoRA NF4 base", "finetune"), "lora-nf4");
  EXPECT_EQ(matched("LoRA rank 64 on a 16-bit base", "finetune"), "lora-rank64");
  EXPECT_EQ(matched("w=1.58 bit;a=int8", "QAT"), "ternary");
  EXPECT_EQ(matched("W4A16 group 32", "QAT"), "chen-w4a16");
  EXPECT_EQ(matched("base=NF4 block 64 + double quantization;adapter bf16 all linears", "finetune"), "lora-nf4");
  EXPECT_EQ(matched("base=3-bit NormalFloat mix;LoRA rank 64 LoftQ init", "finetune"), "lora-3bit-7b");
  EXPECT_EQ(matched("W4A4 int4 group 32", "QAT"), "chen-w4a4");
  EXPECT_EQ(matched("w=int4 group 128;a=fp16", "QAT"), "chen-w4a16");
  EXPECT_EQ(matched("w=ternary absmean per tensor;a=int8 per token", "QAT"), "ternary");
}

// Never guessed: formats, scales and methods that no source measured.
TEST(RecipeText, MatchesNothingElse) {
  EXPECT_EQ(matched("HiFloat4 (three-level scale), no stochastic rounding"), "");
  EXPECT_EQ(matched("w,a,g=e2m1 per tensor"), "");
  EXPECT_EQ(matched("w=mxfp4;a=bf16"), "");
  EXPECT_EQ(matched("forward MXFP4, backward bf16"), "");
  EXPECT_EQ(matched("w,a=mxfp6-e3m2/1x32"), "");
  EXPECT_EQ(matched("a new format"), "");
  EXPECT_EQ(matched(""), "");
  EXPECT_EQ(matched("w=e4m3/1x128", "distillation"), "");
}

}  // namespace
}  // namespace fitting
