#include <array>

#include "core/hardware/figures.h"
#include "core/hardware/hardware.h"
#include "core/hardware/names.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {
namespace {

constexpr std::array<std::string_view, 6> formats = {
    "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
const std::vector<std::string_view> known_keys = {"title",
                                                  "arch",
                                                  "default_node",
                                                  "sms",
                                                  "fp32_TFLOPs",
                                                  "tf32_TFLOPs",
                                                  "fp16_TFLOPs",
                                                  "bf16_TFLOPs",
                                                  "fp8_TFLOPs",
                                                  "fp4_TFLOPs",
                                                  "memory_usable_GiB",
                                                  "memory_GBps",
                                                  "l2_MiB",
                                                  "nvlink_GBps",
                                                  "pcie_GBps",
                                                  "host_link_GBps",
                                                  "host_c2c",
                                                  "tdp_W"};

Gpu read_gpu(const Document& file, std::string_view name) {
  file.reject_unknown(known_keys);
  Gpu gpu;
  Figures figures(file, gpu.sources);
  gpu.name = name;
  gpu.title = file.at("title").as_text();
  gpu.arch = file.at("arch").as_text();
  gpu.default_node = file.at("default_node").as_text();
  gpu.sms = static_cast<int>(figures.count("sms", 1, 1024));
  for (std::string_view format : formats) {
    const std::string key = std::string(format) + "_TFLOPs";
    if (file.has(key)) gpu.dense_tflops[std::string(format)] = figures.positive(key);
  }
  gpu.memory_usable = gibibytes(figures.positive("memory_usable_GiB"));
  gpu.memory_bandwidth = BytesPerSecond{figures.positive("memory_GBps") * 1e9};
  gpu.l2 = Bytes{figures.positive("l2_MiB") * mebibyte};
  gpu.nvlink = BytesPerSecond{figures.not_negative("nvlink_GBps") * 1e9};
  gpu.pcie = BytesPerSecond{figures.positive("pcie_GBps") * 1e9};
  gpu.host_link = BytesPerSecond{figures.positive("host_link_GBps") * 1e9};
  if (const Document* c2c = file.find("host_c2c")) gpu.host_c2c = c2c->as_bool();
  gpu.tdp_W = figures.positive("tdp_W");
  return gpu;
}

}  // namespace

std::optional<FlopsPerSecond> Gpu::peak(std::string_view format) const {
  const auto found = dense_tflops.find(std::string(format));
  if (found == dense_tflops.end()) return std::nullopt;
  return FlopsPerSecond{found->second * 1e12};
}

Gpu load_gpu(std::string_view name, std::string_view flag) {
  refuse_family_name("gpus", name, flag);
  return read_gpu(Document::read_json_file(data_file("gpus", name, flag)), name);
}

std::optional<Price> load_price(std::string_view gpu) {
  const std::filesystem::path path = data_dir() / "prices" / (std::string(gpu) + ".json");
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Document file = Document::read_json_file(path);
  file.reject_unknown(
      {"date", "low_usd_per_gpu_hour", "typical_usd_per_gpu_hour", "high_usd_per_gpu_hour"});
  Figures::Sources unused;
  Figures figures(file, unused);
  return Price{.low = figures.sourced("low_usd_per_gpu_hour"),
               .typical = figures.sourced("typical_usd_per_gpu_hour"),
               .high = figures.sourced("high_usd_per_gpu_hour"),
               .date = file.at("date").as_text()};
}

}  // namespace core
