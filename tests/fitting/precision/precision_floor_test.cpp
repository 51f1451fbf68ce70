#include "fitting/precision/precision_floor.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace fitting {
namespace {

Grade grade(std::string_view tensor, double bits, double block) { return floor_of(tensor, bits, block).grade; }

TEST(PrecisionFloor, OfLinearLayers) {
  EXPECT_EQ(grade("linear", 16, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("linear", 8, 128), Grade::ok);
  EXPECT_EQ(grade("linear", 8, whole_tensor), Grade::flag);
  EXPECT_EQ(grade("linear", 4, 32), Grade::flag);
  EXPECT_EQ(grade("linear", 4, 16), Grade::flag);
  EXPECT_EQ(grade("linear", 4, 128), Grade::refuse);
  EXPECT_EQ(grade("linear", 4, whole_tensor), Grade::refuse);
  EXPECT_EQ(grade("linear", 3, 16), Grade::refuse);
}

TEST(PrecisionFloor, OfGradients) {
  EXPECT_EQ(grade("gradient", 8, 128), Grade::ok);
  EXPECT_EQ(grade("gradient", 8, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("gradient", 8, 128 * 128), Grade::refuse);
  EXPECT_EQ(grade("gradient", 4, 16), Grade::flag);
}

TEST(PrecisionFloor, OfWhatATrainingKeeps) {
  EXPECT_EQ(grade("sensitive", 16, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("sensitive", 8, 32), Grade::refuse);
  EXPECT_EQ(grade("accumulator", 32, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("accumulator", 14, whole_tensor), Grade::refuse);
  EXPECT_EQ(grade("master", 16, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("master", 8, 128), Grade::refuse);
  EXPECT_EQ(grade("moments", 16, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("moments", 8, 256), Grade::flag);
  EXPECT_EQ(grade("moments", 4, 16), Grade::refuse);
  EXPECT_EQ(grade("reduction", 16, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("reduction", 8, whole_tensor), Grade::flag);
  EXPECT_EQ(grade("reduction", 4, 32), Grade::refuse);
}

TEST(PrecisionFloor, AfterTraining) {
  EXPECT_EQ(grade("kv", 8, whole_tensor), Grade::ok);
  EXPECT_EQ(grade("kv", 4, 32), Grade::flag);
  EXPECT_EQ(grade("kv", 2, whole_tensor), Grade::refuse);
  EXPECT_EQ(grade("base", 4, 64), Grade::ok);
  EXPECT_EQ(grade("base", 3, 64), Grade::flag);
  EXPECT_EQ(grade("base", 2.25, 64), Grade::refuse);
  EXPECT_EQ(grade("ptq", 4, 128), Grade::ok);
  EXPECT_EQ(grade("ptq", 4, whole_tensor), Grade::flag);
  EXPECT_EQ(grade("ptq", 3, 128), Grade::flag);
  EXPECT_EQ(grade("ptq", 2, 32), Grade::refuse);
}

TEST(PrecisionFloor, SaysWhy) {
  EXPECT_NE(floor_of("linear", 4, 128).why.find("4 bits by channel"), std::string::npos);
  EXPECT_THROW(floor_of("linaer", 8, 128), core::InputError);
  EXPECT_NE(floors_text().find("blocks to 128"), std::string::npos);
}

}  // namespace
}  // namespace fitting
