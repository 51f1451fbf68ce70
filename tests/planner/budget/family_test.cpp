#include "planner/budget/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace planner {
namespace {

TEST(Family, CountsParametersAsTheModelDoes) {
  const auto family = load_family("llama-3");
  for (const double size : {1.2e9, 8e9, 70e9, 400e9}) {
    const auto shape = shape_near(family, size);
    EXPECT_EQ(static_cast<std::int64_t>(parameters_of(family, shape)), core::count_parameters(model_of(family, shape)).total);
  }
}

// The published sizes follow no formula: they differ by up to 30 % in hidden size per layer.
TEST(Family, ComesNearThePublishedShapes) {
  const auto family = load_family("llama-3");
  for (const auto& published : family.published) {
    const auto shape = shape_near(family, static_cast<double>(published.parameters));
    EXPECT_NEAR(parameters_of(family, shape) / static_cast<double>(published.parameters), 1.0, 0.06) << published.model;
    EXPECT_LE(std::max(shape.hidden, published.hidden), 4 * std::min(shape.hidden, published.hidden) / 3) << published.model;
    const auto model = core::load_model(published.model);
    EXPECT_EQ(core::count_parameters(model).total, published.parameters);
    EXPECT_EQ(model.hidden, published.hidden);
    EXPECT_EQ(model.layers(), published.layers);
    EXPECT_EQ(model.tied_embeddings, shape.tied) << published.model;
  }
}

TEST(Family, HasShapesThatTensorAndPipelineParallelDivide) {
  const auto family = load_family("llama-3");
  const auto shapes = shapes_between(family, 4e9, 1e12, 40);
  EXPECT_GE(shapes.size(), 30U);
  for (const auto& shape : shapes) {
    EXPECT_EQ(shape.heads * shape.head_dim, shape.hidden);
    EXPECT_EQ(shape.heads % 8, 0);
    EXPECT_EQ(shape.ffn % 8, 0);
    EXPECT_EQ(shape.layers % 4, 0);
  }
}

TEST(Family, GridIsLogarithmic) {
  const auto family = load_family("llama-3");
  const auto shapes = shapes_between(family, 2e9, 200e9, 11);
  ASSERT_EQ(shapes.size(), 11U);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double asked = 2e9 * std::pow(100.0, static_cast<double>(i) / 10.0);
    EXPECT_NEAR(parameters_of(family, shapes[i]) / asked, 1.0, 0.08) << i;
  }
}

TEST(Family, NamesTheNearest) {
  try {
    load_family("lama-3");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean llama-3"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace planner
