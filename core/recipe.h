#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/op.h"
#include "core/units.h"

namespace core {

class Document;

// The three GEMMs of a linear layer y = x w.
enum class GemmRole : std::uint8_t { forward, input_gradient, weight_gradient };

// Kinds of linear layers that recipes treat apart. `attention`: projections into and out of attention.
enum class LinearKind : std::uint8_t { linear, attention, expert, router, output };
inline constexpr std::size_t linear_kinds = 5;
std::string_view name_of(LinearKind kind);

// A number as it is stored for a GEMM: bytes of an element and of its share of the block's scale factors.
struct Number {
  std::string name;  // as in the file: "bf16", "e4m3_1x128"
  double bytes = 0, scale_bytes = 0;
  double stored() const { return bytes + scale_bytes; }
  bool operator==(const Number&) const = default;
};

// One GEMM: the tensor cores it runs on and its two operands (forward: input and weight, input gradient: gradient and
// weight, weight gradient: gradient and input).
struct GemmRecipe {
  Format rate = Format::bf16;
  Number left, right;
  bool operator==(const GemmRecipe&) const = default;
};

struct LinearRecipe {
  std::array<GemmRecipe, 3> gemms;  // by GemmRole
  bool quantised = false;           // its operands are made by the recipe's passes
  const GemmRecipe& of(GemmRole role) const { return gemms[static_cast<std::size_t>(role)]; }
  bool operator==(const LinearRecipe&) const = default;
};

// A kernel that makes an operand: a cast, a transpose, a search for the largest value, a Hadamard transform. Memory traffic
// in bytes per element of its tensor.
struct CastPass {
  enum class Tensor : std::uint8_t { input, weight, gradient };
  // Before which GEMM it runs. Weights may be made once a step instead, after the optimizer.
  enum class When : std::uint8_t { forward, input_gradient, weight_gradient, step };
  std::string name;  // follows the layer's name: "amax", "cast", "gradient_cast"
  Tensor tensor = Tensor::input;
  When when = When::forward;
  double bytes = 0;
  bool operator==(const CastPass&) const = default;
};

// The products of fused attention in few bits: the tensor cores they run on, and the kernels before them that make their
// operands, as memory traffic in bytes an element of queries, keys and values (forward) and of the output's gradient (backward).
struct CoreAttentionRecipe {
  Format rate = Format::fp8;
  double cast_bytes = 0, gradient_cast_bytes = 0;
  bool operator==(const CoreAttentionRecipe&) const = default;
};

enum class OptimizerKind : std::uint8_t { adam, adam8bit, muon, adafactor, sgd };
std::string_view name_of(OptimizerKind kind);

// A numeric recipe as in data/recipes/NAME.json: the format of each GEMM and the storage of every
// state, spelled out. Bytes are per element, block scale factors included.
struct Recipe {
  std::string name;             // "bf16", "fp16", "fp8"
  std::string compute_format;   // peak of elementwise, and of attention but for `core_attention`: "bf16" | "fp16"
  std::string scaling;          // "none" | "delayed" | "current" | "block"
  std::array<LinearRecipe, linear_kinds> linears;  // by LinearKind
  std::vector<CastPass> passes;
  std::optional<CoreAttentionRecipe> core_attention;  // nothing: in compute_format
  // The first and last layers are kept high: all their GEMMs in `high`.
  std::int64_t high_first = 0, high_last = 0;
  LinearRecipe high;
  std::vector<std::string> architectures;  // GPUs that have what its GEMMs need; empty = all with their peaks

  double weight_bytes = 0;          // stored compute weights
  double weight_copy_bytes = 0;     // extra stored copies (fp8 weight and transpose), per GEMM weight
  double main_weight_bytes = 0;     // master weights of the optimizer; 0 = it updates the compute weights
  double gradient_bytes = 0;        // accumulated (main) gradients
  double moment1_bytes = 0, moment2_bytes = 0;
  double matrix_moment1_bytes = 0, matrix_moment2_bytes = 0;  // of GEMM weights: the same, but for Muon
  double activation_bytes = 0;      // saved activations of elementwise, norm and attention inputs
  double expert_activation_input_bytes = 0;  // saved inputs of the activation in experts
  double gemm_input_bytes = 0;      // saved inputs of the layer GEMMs (1 where kept in fp8)
  double gradient_reduce_bytes = 0; // format in which gradients travel
  double parameter_gather_bytes = 0;  // format in which parameters travel
  // Tokens on their way to experts and back: forward, and the gradients that take the opposite way.
  double dispatch_bytes = 0, combine_bytes = 0;
  double gradient_dispatch_bytes = 0, gradient_combine_bytes = 0;  // backward of combine, of dispatch

  OptimizerKind optimizer = OptimizerKind::adam;
  std::int64_t newton_schulz_steps = 0;       // Muon
  // Muon with sharded states: bytes in which an element of a matrix that parts of the states cut is gathered before its
  // Newton-Schulz steps; 0 = matrices are given to ranks whole.
  double matrix_gather_bytes = 0;
  Format newton_schulz_format = Format::bf16;
  std::string precision_law;                  // "none", or the law that prices its loss (fitting/laws)
  std::vector<std::pair<std::string, std::string>> sources;

  const LinearRecipe& linear(LinearKind kind) const { return linears[static_cast<std::size_t>(kind)]; }
  // Whether a layer (0 .. layers - 1) is one of those kept high.
  bool keeps_high(std::int64_t layer, std::int64_t layers) const {
    return layer < high_first || layer >= layers - high_last;
  }
  // The recipe of those layers: all their GEMMs and what they save in the format kept.
  Recipe kept_high() const;
  // Traffic to make the operands of a GEMM weight once a step, bytes an element.
  double weight_cast_bytes_of_step() const;
  // Names of the tensor-core formats that any of its GEMMs needs, each once.
  std::vector<std::string> rates() const;

  // The rates of the layers' GEMMs by name, as reports print them.
  std::string gemm_forward, gemm_input_gradient, gemm_weight_gradient, gemm_output;
};

Recipe load_recipe(std::string_view name);  // shipped name; throws InputError
// The recipe of a tree. Throws InputError that names file and key when one is missing, unknown or out
// of range.
Recipe read_recipe(const Document& file, std::string_view name);

// What a rank's optimizer works on: elements that it updates, of those the GEMM weights (`matrices`), and the FLOPs of one
// Newton-Schulz step over them.
struct OptimizerShare {
  double parameters = 0.0, matrices = 0.0;
  double newton_schulz = 0.0;
};
struct OptimizerWork {
  Bytes states;   // main weights and moments
  Bytes traffic;  // of one step
  Flops flops;    // of one step, on tensor cores
};

// An optimizer step: reads the gradient twice (norm, update), reads and writes main weights and moments, writes the compute
// weights (and reads them where there are no main weights). Muon orthogonalises the momentum of each matrix on top.
OptimizerWork optimizer_work(const Recipe& recipe, const OptimizerShare& share);

// FLOPs of one Newton-Schulz step on a matrix [rows, columns], n the smaller side and m the larger:
// X X^T, its square, and their product with X: 4 n^2 m + 2 n^3. Jordan et al. 2024, "Muon", runtime analysis.
double newton_schulz_flops(double rows, double columns);

}  // namespace core
