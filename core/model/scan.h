#pragma once

#include <cstdint>
#include <string>

#include "core/graph/body_writer.h"

namespace core {

// How the kernels of linear attention cut a sequence (data/scans.json): tokens of a chunk, and what backward takes of
// forward's FLOPs and traffic.
struct ScanFigures {
  std::int64_t gated_delta_chunk = 0, kda_chunk = 0, mamba2_chunk = 0, rwkv_chunk = 0;
  double backward_per_forward = 0.0;
};
const ScanFigures& scan_figures();  // throws InputError

// A chunked scan on one rank: linear attention with a state of k_dim x v_dim a head that passes along the sequence. Inside a
// chunk of C tokens it is a product of matrices, between chunks the state is updated.
struct Scan {
  std::string name;
  std::int64_t heads = 1, k_dim = 1, v_dim = 1;
  std::int64_t chunk = 1;
  double flops = 0.0;  // of one token forward: its matrix multiplications, all heads
  double bytes = 0.0;  // that one token's inputs and outputs have
};

// FLOPs of a token and head under the chunked (gated) delta rule, Gated DeltaNet, arXiv 2412.06464, section 3.3, and Kimi
// Delta Attention, arXiv 2510.26692, section 4, whose decay by channel changes no product. For a chunk of C tokens, in full
// tiles: k k^T and q k^T, 2 C^2 d_k each; the inverse of the unit triangular matrix, C^3 / 3; w and u by it, 2 C^2 (d_k +
// d_v); w s, q s and the update of s, 2 C d_k d_v each; the scores' values, 2 C^2 d_v. A token has
//   6 C d_k + 4 C d_v + 6 d_k d_v + C^2 / 3.
double delta_rule_flops(std::int64_t chunk, std::int64_t k_dim, std::int64_t v_dim);

// Writes the scan in one direction. States between chunks are written and read once in the recipe's activation format. A
// context-parallel rank gets the state before its tokens from its neighbour, in fp32.
void write_scan(BodyWriter& writer, const Scan& scan, const BodyContext& context, Direction direction);

}  // namespace core
