#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"

namespace planner {

// How wide heads are from a hidden size on, and of what sizes are multiples.
struct WidthRule {
  std::int64_t hidden_from = 0, head_dim = 0, hidden_multiple = 0, layer_multiple = 0;
};

struct PublishedShape {
  std::string model;
  std::int64_t hidden = 0, layers = 0, parameters = 0;
};

// A family of dense models as in data/families/NAME.json.
struct Family {
  std::string name, title, architecture, model_type;
  std::int64_t vocab = 0, kv_heads = 0, max_positions = 0;
  double hidden_per_layer = 0.0, ffn_per_hidden = 0.0, tied_below = 0.0;
  std::vector<WidthRule> widths;  // narrower ones first
  std::vector<PublishedShape> published;
  std::vector<std::pair<std::string, std::string>> sources;  // key -> source
};

// Throws InputError, naming the nearest family for an unknown name.
Family load_family(std::string_view name);

struct Shape {
  std::int64_t hidden = 0, layers = 0, heads = 0, head_dim = 0, kv_heads = 0, ffn = 0;
  bool tied = false;
  bool operator==(const Shape&) const = default;
};

// The shape of the family nearest to a number of parameters N (embeddings included) and to its hidden size per layer r:
// it minimises (ln(N' / N) / 0.03)^2 + (ln(hidden / (layers r)) / 0.15)^2 over the sizes that its widths allow.
Shape shape_near(const Family& family, double parameters);

// Parameters of a shape, h hidden, l layers, V vocabulary, k the width of all key heads, f of the feed-forward block:
// l (2 h^2 + 2 h k + 3 h f + 2 h) + h + V h (once or, untied, twice).
double parameters_of(const Family& family, const Shape& shape);

// The shape as a model: what its Hugging Face configuration reads as.
core::ModelSpec model_of(const Family& family, const Shape& shape);

// Shapes near `count` numbers of parameters from low to high, equally far apart in their logarithm; equal ones once.
std::vector<Shape> shapes_between(const Family& family, double low, double high, std::size_t count);

}  // namespace planner
