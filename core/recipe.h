#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace core {

class Document;

// A numeric recipe as in data/recipes/NAME.json: the format of each GEMM and the storage of every
// state, spelled out. Bytes are per element.
struct Recipe {
  std::string name;             // "bf16", "fp16", "fp8"
  std::string compute_format;   // peak of elementwise and attention: "bf16" | "fp16"
  std::string gemm_forward, gemm_input_gradient, gemm_weight_gradient;  // formats of layer GEMMs
  std::string gemm_output;      // format of the output layer's GEMMs
  double weight_bytes = 0;          // stored compute weights
  double weight_copy_bytes = 0;     // extra stored copies (fp8 weight and transpose), per GEMM weight
  double main_weight_bytes = 0;     // master weights of the optimizer
  double gradient_bytes = 0;        // accumulated (main) gradients
  double moment1_bytes = 0, moment2_bytes = 0;
  double activation_bytes = 0;      // saved activations of elementwise, norm and attention inputs
  double gemm_input_bytes = 0;      // saved inputs of the layer GEMMs (1 where kept in fp8)
  double gradient_reduce_bytes = 0; // format in which gradients travel
  double parameter_gather_bytes = 0;  // format in which parameters travel
  double cast_bytes_per_gemm_element = 0;  // memory traffic to quantise and transpose, per input element
  std::vector<std::pair<std::string, std::string>> sources;
};

Recipe load_recipe(std::string_view name);  // shipped name; throws InputError
// The recipe of a tree. Throws InputError that names file and key when one is missing, unknown or out
// of range.
Recipe read_recipe(const Document& file, std::string_view name);

}  // namespace core
