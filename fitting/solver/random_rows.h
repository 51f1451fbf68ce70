#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace fitting {

// A generator of its own for each draw, whatever thread makes it.
inline std::mt19937_64 generator(std::uint64_t seed, std::uint64_t draw) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(draw)};
  return std::mt19937_64(sequence);
}

// A row among n: the high bits of 64, by multiplication (Lemire 2019); the bias of one part in 2^64 / n is nothing.
inline std::size_t row_of(std::mt19937_64& random, std::size_t n) {
  return static_cast<std::size_t>((static_cast<__uint128_t>(random()) * n) >> 64);
}

}  // namespace fitting
