#include "core/graph/step_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>

#include "core/error.h"

namespace core {

namespace {

constexpr std::array<std::string_view, 9> stream_names = {"compute", "tensor", "data",    "send_forward",
                                                          "send_backward", "context", "expert", "to_host",
                                                          "to_device"};
constexpr std::array<std::string_view, 12> phase_names = {
    "forward",         "backward",         "recompute",     "send_forward",  "send_backward",
    "gradient_reduce", "parameter_gather", "tied_gradient", "gradient_norm", "optimizer",
    "offload",         "weight_gradient"};
constexpr std::array<std::string_view, memory_terms> term_names = {
    "weights", "gradients",     "optimizer", "activations",  "logits",
    "buffers", "communicators", "context",   "fragmentation"};
constexpr std::array<OpKind, 15> kinds = {OpKind::cell,       OpKind::gemm,       OpKind::attention,
                                         OpKind::memory_bound, OpKind::optimizer, OpKind::all_reduce,
                                         OpKind::all_gather, OpKind::reduce_scatter, OpKind::send_receive,
                                         OpKind::host, OpKind::scan, OpKind::all_to_all,
                                         OpKind::copy_to_host, OpKind::copy_to_device, OpKind::host_optimizer};
constexpr std::array<std::string_view, 6> format_names = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
constexpr std::array<AttentionKernel, 4> attention_kernels = {AttentionKernel::unfused, AttentionKernel::flash1,
                                                              AttentionKernel::flash2, AttentionKernel::flash3};

// Reads the words of a line, complaining with its number.
class LineReader {
 public:
  LineReader(const std::string& line, std::int64_t number) : words_(line), number_(number) {}

  [[noreturn]] void refuse(std::string_view found, std::string_view expected) const {
    throw InputError(fmt::format("step graph: line {}: found \"{}\", expected {}", number_, found, expected));
  }
  std::optional<std::string> next() {
    std::string word;
    if (words_ >> word) return word;
    return std::nullopt;
  }
  std::string word(std::string_view expected) {
    auto w = next();
    if (!w) refuse("end of line", expected);
    return *w;
  }
  template <class Number>
  Number number(std::string_view text, std::string_view expected) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) refuse(text, expected);
    return value;
  }
  template <class Number>
  Number number(std::string_view expected) {
    return number<Number>(word(expected), expected);
  }
  bool flag() {
    const auto w = word("0 or 1");
    if (w != "0" && w != "1") refuse(w, "0 or 1");
    return w == "1";
  }
  // Nothing more may stand on the line.
  void end() {
    if (const auto w = next()) refuse(*w, "the end of the line");
  }
  template <class Table>
  std::size_t name(const Table& names, std::string_view text, std::string_view expected) const {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return i;
    }
    refuse(text, expected);
  }

 private:
  std::istringstream words_;
  std::int64_t number_;
};

std::string spec_line(const OpSpec& s) {
  auto line = fmt::format("spec {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                          name_of(s.kind), s.name.empty() ? "-" : s.name, name_of(s.format),
                          s.direction == Direction::forward ? "forward" : "backward", name_of(s.kernel),
                          s.causal ? 1 : 0, s.m, s.n, s.k, s.batch, s.kv_batch, s.window, s.flops.value, s.bytes.value,
                          s.group);
  if (s.v_dim > 0) line += fmt::format(" v={}", s.v_dim);
  if (s.grouped) line += " grouped";
  if (s.captured) line += " captured";
  if (s.sparse) line += " sparse";
  if (s.one_sided) line += " one_sided";
  if (s.beside != Mover::none) line += fmt::format(" beside={}", name_of(s.beside));
  return line;
}

OpSpec read_spec(LineReader& in) {
  OpSpec s;
  const auto kind = in.word("a kind of operation");
  bool known = false;
  for (const auto k : kinds) {
    if (name_of(k) == kind) s.kind = k, known = true;
  }
  if (!known) in.refuse(kind, "a kind of operation");
  const auto name = in.word("a name");
  if (name.size() > OpName::longest) in.refuse(name, fmt::format("a name of at most {} characters", OpName::longest));
  s.name = name == "-" ? OpName() : OpName(name);
  s.format = static_cast<Format>(in.name(format_names, in.word("a number format"), "a number format"));
  const auto direction = in.word("forward or backward");
  if (direction != "forward" && direction != "backward") in.refuse(direction, "forward or backward");
  s.direction = direction == "forward" ? Direction::forward : Direction::backward;
  const auto kernel = in.word("an attention kernel");
  known = false;
  for (const auto k : attention_kernels) {
    if (name_of(k) == kernel) s.kernel = k, known = true;
  }
  if (!known) in.refuse(kernel, "an attention kernel");
  s.causal = in.flag();
  for (auto* axis : {&s.m, &s.n, &s.k, &s.batch, &s.kv_batch, &s.window}) *axis = in.number<std::int64_t>("an axis");
  s.flops = Flops{in.number<double>("FLOPs")};
  s.bytes = Bytes{in.number<double>("bytes")};
  s.group = in.number<std::int16_t>("a group");
  if (s.group < -1) in.refuse(std::to_string(s.group), "the number of a group, or -1");
  while (const auto word = in.next()) {
    if (*word == "grouped") s.grouped = true;
    else if (*word == "captured") s.captured = true;
    else if (*word == "sparse") s.sparse = true;
    else if (*word == "one_sided") s.one_sided = true;
    else if (*word == "beside=kernels") s.beside = Mover::kernels;
    else if (*word == "beside=copy_engine") s.beside = Mover::copy_engine;
    else if (word->starts_with("v=")) s.v_dim = in.number<std::int64_t>(std::string_view(*word).substr(2), "v=WIDTH");
    else in.refuse(*word, "grouped, captured, sparse, one_sided, beside=kernels, beside=copy_engine, v=WIDTH or the end of the line");
  }
  return s;
}

OpKey read_key(LineReader& in) {
  OpKey key;
  key.stage = in.number<std::uint16_t>("a stage");
  key.layer = in.number<std::uint16_t>("a layer");
  key.phase = static_cast<Phase>(in.name(phase_names, in.word("a phase"), "a phase"));
  key.slot = in.number<std::uint16_t>("a slot");
  key.micro_batch = in.number<std::uint32_t>("a micro-batch");
  return key;
}

// "rank:stream".
std::uint32_t read_queue(LineReader& in, std::string_view word, std::int32_t ranks) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos) in.refuse(word, "rank:stream");
  const auto rank = in.number<std::int32_t>(word.substr(0, colon), "a rank");
  if (rank < 0 || rank >= ranks) in.refuse(word, fmt::format("a rank below {}", ranks));
  const auto stream = in.name(stream_names, word.substr(colon + 1), "a stream");
  return static_cast<std::uint32_t>(rank * streams_per_rank) + static_cast<std::uint32_t>(stream);
}

void read_op(LineReader& in, StepGraph& g) {
  const auto id = static_cast<OpId>(g.size());
  const auto spec = in.number<std::uint32_t>("a spec");
  if (spec >= g.specs.size()) in.refuse(std::to_string(spec), "the number of a spec above");
  g.spec.push_back(spec);
  g.key.push_back(read_key(in));
  g.recompute.push_back(in.flag() ? 1 : 0);
  const auto own = static_cast<std::ptrdiff_t>(g.queues.size());
  bool after = false;
  while (const auto word = in.next()) {
    if (*word == "after") {
      after = true;
    } else if (after) {
      const auto on = in.number<OpId>(*word, "an operation");
      if (on >= id) in.refuse(*word, "an operation above");
      g.dependencies.push_back(on);
    } else {
      const auto queue = read_queue(in, *word, g.ranks);
      if (std::find(g.queues.begin() + own, g.queues.end(), queue) != g.queues.end()) in.refuse(*word, "each queue once");
      g.queues.push_back(queue);
    }
  }
  if (own == static_cast<std::ptrdiff_t>(g.queues.size())) in.refuse("end of line", "a queue such as 0:compute");
  g.dependency_begin.push_back(static_cast<std::uint32_t>(g.dependencies.size()));
  g.queue_begin.push_back(static_cast<std::uint32_t>(g.queues.size()));
}

void read_chain(LineReader& in, StepGraph& g) {
  std::vector<ChainOp> chain;
  while (const auto word = in.next()) {
    std::string_view text = *word;
    ChainOp op;
    while (!text.empty() && (text.back() == 'r' || text.back() == 'o')) {
      (text.back() == 'r' ? op.recompute : op.overlaps_next) = true;
      text.remove_suffix(1);
    }
    op.spec = in.number<std::uint32_t>(text, "a spec");
    if (op.spec >= g.specs.size() || g.specs[op.spec].kind == OpKind::cell) {
      in.refuse(*word, "the number of a spec above that is not a cell");
    }
    chain.push_back(op);
  }
  g.chains.push_back(std::move(chain));
}

void read_tensor(LineReader& in, StepGraph& g) {
  TensorLife t;
  t.first = in.number<OpId>("an operation");
  t.last = in.number<OpId>("an operation");
  t.rank = in.number<std::int32_t>("a rank");
  t.term = static_cast<MemoryTerm>(in.name(term_names, in.word("a memory term"), "a memory term"));
  t.bytes = in.number<std::int64_t>("bytes");
  if (t.first > t.last || t.last >= g.size() || t.rank < 0 || t.rank >= g.ranks ||
      (t.bytes < 0 && t.term != MemoryTerm::activations)) {
    in.refuse("a tensor outside the graph", "first <= last operation, a rank and bytes of the graph");
  }
  in.end();
  g.tensors.push_back(t);
}

void read_rank(LineReader& in, StepGraph& g) {
  if (g.ranks >= 1'000'000) in.refuse("one more rank", "at most a million");
  ++g.ranks;
  g.multiplicity.push_back(in.number<std::int64_t>("a multiplicity"));
  auto& resident = g.resident.emplace_back(memory_terms, 0);
  for (auto& bytes : resident) bytes = in.number<std::int64_t>("bytes of a memory term");
  in.end();
}

CommGroup read_group(LineReader& in) {
  CommGroup group;
  group.name = in.word("a name");
  group.first = in.number<std::int64_t>("the first rank");
  group.stride = in.number<std::int64_t>("a stride");
  group.size = in.number<std::int64_t>("a size");
  in.end();
  return group;
}

// What specs refer to may stand below them. `lines`: where each stands.
void check_specs(const StepGraph& g, const std::vector<std::int64_t>& lines) {
  for (std::size_t i = 0; i < g.specs.size(); ++i) {
    const auto& s = g.specs[i];
    const bool has_chain = s.kind == OpKind::cell || is_wait(s);
    const auto chain = s.kind == OpKind::cell ? std::max(s.m, s.n - 1) : s.kind == OpKind::host ? s.n : s.n - 1;
    if (has_chain && (chain < 0 || s.m < 0 || s.n < 0 || chain >= static_cast<std::int64_t>(g.chains.size()))) {
      throw InputError(fmt::format("step graph: line {}: {}: found chain {}, expected one of the {} that stand in the text",
                                   lines[i], s.name, chain, g.chains.size()));
    }
    if (s.group >= static_cast<std::int64_t>(g.groups.size())) {
      throw InputError(fmt::format("step graph: line {}: {}: found group {}, expected one of the {} that stand in the text",
                                   lines[i], s.name, s.group, g.groups.size()));
    }
  }
}

}  // namespace

std::string_view name_of(Stream stream) { return stream_names[static_cast<std::size_t>(stream)]; }
Stream stream_of(const CommGroup& group) {
  if (group.name == "cp") return Stream::context;
  return group.name == "ep" ? Stream::expert : Stream::tensor;
}

std::string_view name_of(Phase phase) { return phase_names[static_cast<std::size_t>(phase)]; }
std::string_view name_of(MemoryTerm term) { return term_names[static_cast<std::size_t>(term)]; }

std::string to_text(const OpKey& key) {
  return fmt::format("{} {} {} {} {}", key.stage, key.layer, name_of(key.phase), key.slot, key.micro_batch);
}

std::vector<std::size_t> StepGraph::chains_of(const OpSpec& cell) {
  std::vector<std::size_t> out{static_cast<std::size_t>(cell.m)};
  if (cell.n > 0) out.push_back(static_cast<std::size_t>(cell.n - 1));
  return out;
}

Flops StepGraph::flops(std::int32_t rank) const {
  Flops sum;
  for (OpId op = 0; op < size(); ++op) {
    if (rank_of(op) == rank) sum += specs[spec[op]].flops;
  }
  return sum;
}

Bytes StepGraph::bytes(std::int32_t rank, OpKind collective) const {
  Bytes sum;
  for (OpId op = 0; op < size(); ++op) {
    bool mine = false;
    for (auto q = queue_begin[op]; q < queue_begin[op + 1]; ++q) {
      mine = mine || static_cast<std::int32_t>(queues[q]) / streams_per_rank == rank;
    }
    if (!mine) continue;
    const auto& s = specs[spec[op]];
    if (s.kind == collective) sum += s.bytes;
    if (s.kind != OpKind::cell) continue;
    for (const auto chain : chains_of(s)) {
      for (const auto& c : chains[chain]) {
        if (specs[c.spec].kind == collective) sum += specs[c.spec].bytes;
      }
    }
  }
  return sum;
}

std::string to_text(const StepGraph& g) {
  std::string out;
  for (std::size_t r = 0; r < static_cast<std::size_t>(g.ranks); ++r) {
    out += fmt::format("rank {}", g.multiplicity[r]);
    for (const auto bytes : g.resident[r]) out += fmt::format(" {}", bytes);
    out += '\n';
  }
  for (const auto& group : g.groups) {
    out += fmt::format("group {} {} {} {}\n", group.name, group.first, group.stride, group.size);
  }
  for (const auto& s : g.specs) out += spec_line(s) + '\n';
  for (const auto& chain : g.chains) {
    out += "chain";
    for (const auto& op : chain) {
      out += fmt::format(" {}{}{}", op.spec, op.recompute ? "r" : "", op.overlaps_next ? "o" : "");
    }
    out += '\n';
  }
  for (OpId op = 0; op < g.size(); ++op) {
    out += fmt::format("op {} {} {}", g.spec[op], to_text(g.key[op]), g.recompute[op]);
    for (auto q = g.queue_begin[op]; q < g.queue_begin[op + 1]; ++q) {
      out += fmt::format(" {}:{}", g.queues[q] / static_cast<std::uint32_t>(streams_per_rank),
                         stream_names[g.queues[q] % static_cast<std::uint32_t>(streams_per_rank)]);
    }
    if (g.dependency_begin[op] < g.dependency_begin[op + 1]) out += " after";
    for (auto d = g.dependency_begin[op]; d < g.dependency_begin[op + 1]; ++d) {
      out += fmt::format(" {}", g.dependencies[d]);
    }
    out += '\n';
  }
  for (const auto& t : g.tensors) {
    out += fmt::format("tensor {} {} {} {} {}\n", t.first, t.last, t.rank, name_of(t.term), t.bytes);
  }
  return out;
}

StepGraph parse_step_graph(std::string_view text) {
  StepGraph g;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::vector<std::int64_t> spec_lines;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    LineReader in(line, number);
    const auto what = in.next();
    if (!what) continue;
    if (*what == "rank") read_rank(in, g);
    else if (*what == "group") g.groups.push_back(read_group(in));
    else if (*what == "spec") g.specs.push_back(read_spec(in)), spec_lines.push_back(number);
    else if (*what == "chain") read_chain(in, g);
    else if (*what == "op") read_op(in, g);
    else if (*what == "tensor") read_tensor(in, g);
    else in.refuse(*what, "rank, group, spec, chain, op or tensor");
  }
  check_specs(g, spec_lines);
  return g;
}

}  // namespace core
