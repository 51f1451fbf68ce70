#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/model.h"

namespace core {

// Parameter tensors in order, with short calls for the shapes that occur.
class TensorList {
 public:
  void matrix(std::string_view name, std::int64_t rows, std::int64_t columns, Tensor::Split split) {
    tensors_.push_back({std::string(name), rows, columns, split, 0});
  }
  void matrix_if(bool there, std::string_view name, std::int64_t rows, std::int64_t columns, Tensor::Split split) {
    if (there) matrix(name, rows, columns, split);
  }
  void vector(std::string_view name, std::int64_t length, Tensor::Split split) {
    tensors_.push_back({std::string(name), length, 1, split, 0});
  }
  void vector_if(bool there, std::string_view name, std::int64_t length, Tensor::Split split) {
    if (there) vector(name, length, split);
  }
  // The weights of a convolution along the sequence, one of `kernel` taps for each channel: no matrix multiplication, so
  // that they count as a vector.
  void depthwise(std::string_view name, std::int64_t channels, std::int64_t kernel, Tensor::Split split) {
    vector(name, channels * kernel, split);
  }
  // One such tensor for each of the routed experts.
  void of_experts(std::int64_t experts, std::string_view name, std::int64_t rows, std::int64_t columns,
                  Tensor::Split split) {
    tensors_.push_back({std::string(name), rows, columns, split, experts});
  }
  std::vector<Tensor> take() { return std::move(tensors_); }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace core
