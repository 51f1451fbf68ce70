#include "core/model/scan.h"

#include <algorithm>
#include <cmath>

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

namespace {

ScanFigures read_figures() {
  constexpr std::int64_t longest = 1 << 16;
  const auto document = Document::read_json_file(data_dir() / "scans.json");
  document.reject_unknown({"gated_delta_chunk_tokens", "kda_chunk_tokens", "mamba2_chunk_tokens", "rwkv_chunk_tokens",
                           "backward_per_forward"});
  Figures::Sources sources;
  Figures figures(document, sources);
  ScanFigures f;
  f.gated_delta_chunk = figures.count("gated_delta_chunk_tokens", 1, longest);
  f.kda_chunk = figures.count("kda_chunk_tokens", 1, longest);
  f.mamba2_chunk = figures.count("mamba2_chunk_tokens", 1, longest);
  f.rwkv_chunk = figures.count("rwkv_chunk_tokens", 1, longest);
  f.backward_per_forward = figures.positive("backward_per_forward");
  return f;
}

double state_elements(const Scan& scan) { return static_cast<double>(scan.heads * scan.k_dim * scan.v_dim); }

}  // namespace

const ScanFigures& scan_figures() {
  static const ScanFigures figures = read_figures();
  return figures;
}

double delta_rule_flops(std::int64_t chunk, std::int64_t k_dim, std::int64_t v_dim) {
  const double c = static_cast<double>(chunk), k = static_cast<double>(k_dim), v = static_cast<double>(v_dim);
  return 6.0 * c * k + 4.0 * c * v + 6.0 * k * v + c * c / 3.0;
}

void write_scan(BodyWriter& writer, const Scan& scan, const BodyContext& context, Direction direction) {
  const bool forward = direction == Direction::forward;
  const double passes = forward ? 1.0 : scan_figures().backward_per_forward, tokens = context.tokens();
  writer.collective(Scope::context, OpKind::send_receive, forward ? "cp_state" : "cp_state_backward", direction,
                    4.0 * static_cast<double>(context.micro_batch) * state_elements(scan));
  OpSpec op;
  op.kind = OpKind::scan;
  op.name = forward ? scan.name : scan.name + "_backward";
  op.direction = direction;
  op.format = format_of(context.recipe->compute_format);
  op.m = std::max<std::int64_t>(1, std::llround(tokens));
  op.n = scan.chunk;
  op.k = scan.k_dim;
  op.v_dim = scan.v_dim;
  op.batch = scan.heads;
  op.flops = Flops{passes * tokens * scan.flops};
  const double states = 2.0 * context.recipe->activation_bytes * state_elements(scan) / static_cast<double>(scan.chunk);
  op.bytes = Bytes{passes * tokens * (scan.bytes + states)};
  writer.op(std::move(op));
}

}  // namespace core
