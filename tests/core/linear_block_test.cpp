// Linear attention: FLOPs of its scans against the chunked algorithms themselves, done slowly and counted, and the rest of
// the blocks against closed forms.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/step_work.h"
#include "core/model/scan.h"
#include "tests/core/block_bodies.h"

namespace core {
namespace {

using block_bodies::body;
using block_bodies::find;
using block_bodies::gemm_flops;
using block_bodies::saved;
using block_bodies::Setting;

// A matrix whose products count their FLOPs.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, 0.0) {}
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

double counted = 0.0;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) {
      for (std::size_t x = 0; x < a.columns; ++x) out.at(i, j) += a.at(i, x) * b.at(x, j);
    }
  }
  counted += 2.0 * static_cast<double>(a.rows * a.columns * b.columns);
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  }
  return out;
}

Matrix sum(Matrix a, const Matrix& b, double sign) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += sign * b.values[i];
  return a;
}

Matrix rows_of(const Matrix& a, std::size_t begin, std::size_t count) {
  Matrix out(count, a.columns);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) out.at(i, j) = a.at(begin + i, j);
  }
  return out;
}

Matrix lower_part(Matrix a, bool diagonal) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = i + (diagonal ? 1 : 0); j < a.columns; ++j) a.at(i, j) = 0.0;
  }
  return a;
}

Matrix scaled_rows(Matrix a, const std::vector<double>& by, std::size_t begin) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) a.at(i, j) *= by[begin + i];
  }
  return a;
}

// (1 + a)^-1 of a strictly lower triangular a, row by row; its FLOPs apart.
Matrix unit_inverse(const Matrix& a, double& flops) {
  Matrix out(a.rows, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    out.at(i, i) = 1.0;
    for (std::size_t j = 0; j < i; ++j) {
      double value = -a.at(i, j);
      for (std::size_t x = j + 1; x < i; ++x) {
        value -= a.at(i, x) * out.at(x, j);
        flops += 2.0;
      }
      out.at(i, j) = value;
    }
  }
  return out;
}

struct Sequence {
  static constexpr std::size_t tokens = 24, k_dim = 5, v_dim = 3;
  Matrix q{tokens, k_dim}, k{tokens, k_dim}, v{tokens, v_dim};
  std::vector<double> step;
  Sequence() {
    std::uint32_t state = 1;
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<double>(state >> 8U) / (1U << 24U) - 0.5;
    };
    for (auto* matrix : {&q, &k, &v}) {
      for (double& value : matrix->values) value = next();
    }
    for (std::size_t i = 0; i < tokens; ++i) step.push_back(0.5 + next());
  }
};

void expect_equal(const Matrix& a, const Matrix& b, std::size_t row) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) EXPECT_NEAR(a.at(i, j), b.at(row + i, j), 1e-9);
  }
}

// The delta rule token by token: s <- s + step k (v - k s), o = q s.
Matrix delta_rule_by_token(const Sequence& x) {
  Matrix s(Sequence::k_dim, Sequence::v_dim), out(Sequence::tokens, Sequence::v_dim);
  for (std::size_t t = 0; t < Sequence::tokens; ++t) {
    const Matrix k = rows_of(x.k, t, 1), q = rows_of(x.q, t, 1);
    const Matrix missing = scaled_rows(sum(rows_of(x.v, t, 1), product(k, s), -1.0), x.step, t);
    s = sum(s, product(transposed(k), missing), 1.0);
    const Matrix o = product(q, s);
    for (std::size_t j = 0; j < o.columns; ++j) out.at(t, j) = o.at(0, j);
  }
  return out;
}

// Gated DeltaNet, arXiv 2412.06464, section 3.3, with decay 1: the products that delta_rule_flops counts, and no others.
TEST(Scan, FlopsOfTheDeltaRuleAreThoseOfItsChunks) {
  const Sequence x;
  const Matrix expected = delta_rule_by_token(x);
  for (const std::size_t c : {4UL, 8UL, 12UL}) {
    Matrix s(Sequence::k_dim, Sequence::v_dim);
    double inverse = 0.0;
    counted = 0.0;
    for (std::size_t begin = 0; begin < Sequence::tokens; begin += c) {
      const Matrix q = rows_of(x.q, begin, c), k = rows_of(x.k, begin, c), v = rows_of(x.v, begin, c);
      const Matrix a = lower_part(scaled_rows(product(k, transposed(k)), x.step, begin), false);
      const Matrix t = unit_inverse(a, inverse);
      const Matrix w = product(t, scaled_rows(k, x.step, begin)), u = product(t, scaled_rows(v, x.step, begin));
      const Matrix fresh = sum(u, product(w, s), -1.0);
      const Matrix scores = lower_part(product(q, transposed(k)), true);
      expect_equal(sum(product(q, s), product(scores, fresh), 1.0), expected, begin);
      s = sum(s, product(transposed(k), fresh), 1.0);
    }
    const double size = static_cast<double>(c), chunks = static_cast<double>(Sequence::tokens) / size;
    const double all = static_cast<double>(Sequence::tokens) *
                       delta_rule_flops(static_cast<std::int64_t>(c), Sequence::k_dim, Sequence::v_dim);
    EXPECT_NEAR(all - chunks * size * size * size / 3, counted, 1e-6) << c;
    // The inverse takes c (c - 1) (c - 2) / 3, of which C^3 / 3 is the leading term.
    EXPECT_NEAR(inverse, chunks * size * (size - 1) * (size - 2) / 3, 1e-6) << c;
  }
}

// Linear attention in chunks: scores and their values inside, the state's output and its update between.
double linear_attention_flops(std::size_t c) {
  const Sequence x;
  Matrix s(Sequence::k_dim, Sequence::v_dim), state(Sequence::k_dim, Sequence::v_dim);
  counted = 0.0;
  for (std::size_t begin = 0; begin < Sequence::tokens; begin += c) {
    const Matrix q = rows_of(x.q, begin, c), k = rows_of(x.k, begin, c), v = rows_of(x.v, begin, c);
    const Matrix scores = lower_part(product(q, transposed(k)), true);
    const Matrix out = sum(product(q, s), product(scores, v), 1.0);
    s = sum(s, product(transposed(k), v), 1.0);
    const double so_far = counted;
    for (std::size_t t = 0; t < c; ++t) {
      state = sum(state, product(transposed(rows_of(k, t, 1)), rows_of(v, t, 1)), 1.0);
      expect_equal(product(rows_of(q, t, 1), state), out, t);
    }
    counted = so_far;
  }
  return counted / static_cast<double>(Sequence::tokens);
}

const OpSpec& scan_of(const Body& body) {
  for (const auto& op : body.forward) {
    if (op.spec.kind == OpKind::scan) return op.spec;
  }
  throw std::out_of_range("no scan");
}

// Mamba-2, arXiv 2405.21060, section 6: the same products with keys B, queries C and values x; heads of a group share the
// scores. RWKV: heads of their own.
TEST(Scan, FlopsOfStateSpacesAndWkvAreThoseOfLinearAttentionInChunks) {
  const double k = Sequence::k_dim, v = Sequence::v_dim;
  for (const std::size_t c : {4UL, 8UL}) {
    const double size = static_cast<double>(c);
    EXPECT_DOUBLE_EQ(linear_attention_flops(c), 2 * size * k + 2 * size * v + 4 * k * v);
  }
  const auto nemotron = load_model("nemotron-h-56b");
  const Setting one(nemotron, "dp=1", 8192), eight(nemotron, "tp=8 sp", 8192);
  const double C = 128, N = 256, P = 64, groups = 8, heads = 256, t = 8192;
  const auto& mamba = scan_of(body(nemotron, "mamba2", one.context));
  EXPECT_DOUBLE_EQ(mamba.flops.value, t * (groups * 2 * C * N + heads * (2 * C * P + 4 * N * P)));
  EXPECT_EQ(mamba.m, 8192);
  EXPECT_EQ(mamba.batch, 256);
  EXPECT_EQ(mamba.k, 256);
  EXPECT_EQ(mamba.v_dim, 64);
  EXPECT_DOUBLE_EQ(scan_of(body(nemotron, "mamba2", eight.context)).flops.value, mamba.flops.value / 8);

  const auto rwkv = load_model("rwkv5-3b");
  const Setting plain(rwkv, "dp=1", 4096);
  const double c = static_cast<double>(scan_figures().rwkv_chunk);
  EXPECT_DOUBLE_EQ(scan_of(body(rwkv, "rwkv_time", plain.context)).flops.value, 4096 * 40 * (4 * c * 64 + 4 * 64.0 * 64));
}

TEST(Scan, CostsATokenTheSameAtAnyLength) {
  const auto model = load_model("qwen3-next-80b-a3b");
  const Setting shorter(model, "dp=1", 4096), longer(model, "dp=1", 65536);
  EXPECT_DOUBLE_EQ(scan_of(body(model, "gated_delta", longer.context)).flops.value,
                   16 * scan_of(body(model, "gated_delta", shorter.context)).flops.value);
  const double c = static_cast<double>(scan_figures().gated_delta_chunk);
  EXPECT_DOUBLE_EQ(scan_of(body(model, "gated_delta", shorter.context)).flops.value,
                   4096 * 32 * (10 * c * 128 + 6 * 128.0 * 128 + c * c / 3));
}

TEST(LinearAttention, GemmsAreThoseOfItsWeights) {
  const auto expect = [](const std::string& name, const std::string& kind, double weights) {
    const auto model = load_model(name);
    for (const std::string plan : {"dp=1", "tp=4 sp"}) {
      const Setting setting(model, plan, 4096);
      const auto one = body(model, kind, setting.context);
      const double whole = kind == "kda" ? 2304.0 * 2 * 128 : 0.0;  // held and computed by each rank
      const double ranks = plan == "dp=1" ? 1 : 4;
      EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * 4096 * ((weights - whole) / ranks + whole)) << name << " " << plan;
      EXPECT_DOUBLE_EQ(gemm_flops(one.backward), 2 * gemm_flops(one.forward)) << name << " " << plan;
    }
  };
  expect("qwen3-next-80b-a3b", "gated_delta", 2048.0 * (2 * 2048 + 2 * 4096 + 2 * 32) + 4096.0 * 2048);
  expect("kimi-linear-48b-a3b", "kda", 2304.0 * (3 * 4096 + 32 + 2 * 128) + 2 * 128.0 * 4096 + 4096.0 * 2304);
  expect("nemotron-h-56b", "mamba2", 8192.0 * (2 * 16384 + 2 * 8 * 256 + 256) + 16384.0 * 8192);
  expect("rwkv5-3b", "rwkv_time", 5 * 2560.0 * 2560);
  // Receptance of a rank's own tokens.
  expect("rwkv5-3b", "rwkv_channel", 2560.0 * 2560 + 2 * 2560.0 * 8960);
}

// Under context parallelism only the state travels, k_dim x v_dim in fp32 a head: it does not grow with the sequence.
TEST(LinearAttention, PassesItsStateBetweenContextParallelRanks) {
  const auto model = load_model("qwen3-next-80b-a3b");
  const Setting setting(model, "cp=4", 65536);
  const auto one = body(model, "gated_delta", setting.context);
  for (const auto* ops : {&one.forward, &one.backward}) {
    double sent = 0.0;
    for (const auto& op : *ops) {
      if (op.scope != Scope::context) continue;
      EXPECT_EQ(op.spec.kind, OpKind::send_receive);
      sent += op.spec.bytes.value;
    }
    EXPECT_DOUBLE_EQ(sent, 4.0 * 32 * 128 * 128);
  }
  EXPECT_EQ(scan_of(one).m, 65536 / 4);
}

// mamba_ssm's combined kernel keeps the projection's output and the scan's, in 16 bits; then the input and what the output
// projection reads.
TEST(LinearAttention, OfMambaKeepsProjectionAndOutput) {
  const auto model = load_model("nemotron-h-56b");
  const Setting setting(model, "dp=1", 8192);
  const double projected = 2 * 16384 + 2 * 8 * 256 + 256;
  EXPECT_DOUBLE_EQ(saved(body(model, "mamba2", setting.context)), 2.0 * 8192 * (8192 + projected + 2 * 16384));
}

TEST(LinearAttention, SaysWhatTensorParallelismCannotDivide) {
  EXPECT_EQ(why_not(load_model("nemotron-h-56b"), plans::plan("tp=16 gbs=1"), 16, 8192),
            "8 groups of mamba do not divide by tp=16");
  EXPECT_EQ(why_not(load_model("rwkv5-3b"), plans::plan("tp=16 gbs=1"), 16, 4096),
            "40 heads of time mixing do not divide by tp=16");
}

TEST(LinearAttention, KeepsNothingOfATokenForGeneration) {
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("rwkv5-3b")), 0.0);
  // Nemotron-H: 10 of 118 layers attend, with 8 key-value heads of 128.
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("nemotron-h-56b")), 2.0 * 10 * 2 * 8 * 128);
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("qwen3-next-80b-a3b")), 2.0 * 12 * 2 * 2 * 256);
}

}  // namespace
}  // namespace core
