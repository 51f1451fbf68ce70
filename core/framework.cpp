#include "core/framework.h"

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

Framework load_framework(std::string_view name) {
  const auto document = Document::read_json_file(data_file("frameworks", name, "--framework"));
  document.reject_unknown({"title", "vocab_multiple", "logits_saved_bytes_per_logit", "logits_transient_bytes_per_logit",
                           "loss_traffic_forward_bytes_per_logit", "loss_traffic_backward_bytes_per_logit",
                           "bucket_parameters", "bucket_parameters_per_rank", "context_GiB", "workspace_MiB",
                           "communicator_GiB", "allocation_unit_B", "fragmentation", "host_us_per_kernel",
                           "step_overhead_ms"});
  Figures::Sources sources;
  Figures figures(document, sources);
  Framework f;
  f.name = std::string(name);
  f.vocab_multiple = figures.count("vocab_multiple", 1, 1 << 20);
  f.logits_saved_bytes = figures.not_negative("logits_saved_bytes_per_logit");
  f.logits_transient_bytes = figures.not_negative("logits_transient_bytes_per_logit");
  f.loss_traffic_forward = figures.not_negative("loss_traffic_forward_bytes_per_logit");
  f.loss_traffic_backward = figures.not_negative("loss_traffic_backward_bytes_per_logit");
  f.bucket_parameters = figures.not_negative("bucket_parameters");
  f.bucket_parameters_per_rank = figures.not_negative("bucket_parameters_per_rank");
  f.context = gibibytes(figures.not_negative("context_GiB"));
  f.workspace = Bytes{figures.not_negative("workspace_MiB") * mebibyte};
  f.communicator = gibibytes(figures.not_negative("communicator_GiB"));
  f.allocation_unit = Bytes{figures.positive("allocation_unit_B")};
  f.fragmentation = figures.not_negative("fragmentation");
  f.host_per_kernel = Seconds{figures.not_negative("host_us_per_kernel") * 1e-6};
  f.step_overhead = Seconds{figures.not_negative("step_overhead_ms") * 1e-3};
  for (const auto& [key, figure] : sources) {
    f.sources.emplace_back(key, figure.source + " (" + figure.checked + ")");
  }
  return f;
}

}  // namespace core
