#include "core/model/model.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/model/block_kind.h"

namespace core {
namespace {

std::int64_t count(const std::vector<Tensor>& tensors) {
  return std::transform_reduce(
      tensors.begin(), tensors.end(), std::int64_t{0}, std::plus<>(), [](const Tensor& t) {
        return t.numel();
      });
}

// Parameters of the blocks of one kind.
std::int64_t count_kind(const std::vector<Block>& blocks,
                        std::string_view kind,
                        const ModelSpec& model) {
  std::int64_t sum = 0;
  for (const Block& block : blocks) {
    if (block.kind == kind) {
      sum += count(tensors_of({block}, model));
    }
  }
  return sum;
}

std::int64_t count_active(const std::vector<Block>& blocks, const ModelSpec& model) {
  std::int64_t sum = 0;
  for (const Block& block : blocks) {
    for (const Tensor& tensor : block_kind(block.kind).tensors(block, model)) {
      sum += active_elements(block, tensor);
    }
  }
  return sum;
}

double flops(const std::vector<Block>& blocks, const ModelSpec& model, const Span& span) {
  double sum = 0.0;
  for (const Block& block : blocks) {
    const BlockKind& kind = block_kind(block.kind);
    sum += kind.flops_per_token == nullptr ? 0.0 : kind.flops_per_token(block, model, span);
  }
  return sum;
}

double cache_elements(const std::vector<Block>& blocks) {
  double sum = 0.0;
  for (const Block& block : blocks) {
    const BlockKind& kind = block_kind(block.kind);
    sum += kind.cache_per_token == nullptr ? 0.0 : kind.cache_per_token(block);
  }
  return sum;
}

// How many layers there are of each kind.
std::vector<std::int64_t> layers_of_kinds(const ModelSpec& model) {
  std::vector<std::int64_t> layers(model.kinds.size(), 0);
  for (const std::uint16_t kind : model.layer_kind) {
    ++layers[kind];
  }
  return layers;
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
  for (const auto& [name, value] : values) {
    set(name, value);
  }
}

std::int64_t Attributes::at(std::string_view name) const {
  const auto value = std::ranges::find(values_, name, &std::pair<std::string, std::int64_t>::first);
  CORE_ASSERT(value != values_.end());
  return value->second;
}

std::int64_t Attributes::get(std::string_view name, std::int64_t otherwise) const {
  const auto value = std::ranges::find(values_, name, &std::pair<std::string, std::int64_t>::first);
  return value == values_.end() ? otherwise : value->second;
}

void Attributes::set(std::string_view name, std::int64_t value) {
  const auto old = std::ranges::find(values_, name, &std::pair<std::string, std::int64_t>::first);
  if (old == values_.end()) {
    values_.emplace_back(name, value);
  } else {
    old->second = value;
  }
}

std::vector<Tensor> tensors_of(const std::vector<Block>& blocks, const ModelSpec& model) {
  std::vector<Tensor> tensors;
  for (const Block& block : blocks) {
    std::ranges::move(block_kind(block.kind).tensors(block, model), std::back_inserter(tensors));
  }
  return tensors;
}

ParameterCount count_parameters(const ModelSpec& model) {
  ParameterCount result;
  const std::vector<std::int64_t> layers = layers_of_kinds(model);
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    result.total += layers[kind] * count(tensors_of(model.kinds[kind].blocks, model));
    result.active += layers[kind] * count_active(model.kinds[kind].blocks, model);
  }
  const std::int64_t ends = count(tensors_of(model.embedding, model)) + count(tensors_of(model.output, model));
  result.total += ends;
  result.active += ends;
  result.embedding = count_kind(model.embedding, "embedding", model);
  result.output = count_kind(model.output, "output", model);
  for (const Layer& module : model.mtp) {
    result.mtp += count(tensors_of(module.blocks, model));
  }
  return result;
}

double flops_per_token_forward(const ModelSpec& model, std::int64_t seq, bool causal) {
  const Span span{seq, causal};
  double sum = flops(model.embedding, model, span) + flops(model.output, model, span);
  const std::vector<std::int64_t> layers = layers_of_kinds(model);
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    sum += static_cast<double>(layers[kind] * model.loops) * flops(model.kinds[kind].blocks, model, span);
  }
  for (const Layer& module : model.mtp) {
    sum += flops(module.blocks, model, span);
  }
  return sum;
}

double kv_cache_bytes_per_token(const ModelSpec& model) {
  constexpr double bytes = 2.0;
  double elements = 0.0;
  const std::vector<std::int64_t> layers = layers_of_kinds(model);
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    elements += static_cast<double>(layers[kind] * model.loops) * cache_elements(model.kinds[kind].blocks);
  }
  return bytes * elements;
}

}  // namespace core
