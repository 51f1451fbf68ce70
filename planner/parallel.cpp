#include "planner/parallel.h"

#include <tbb/global_control.h>

#include <optional>

#ifdef __SANITIZE_THREAD__

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace planner {

// The thread sanitizer does not see into oneTBB's library and takes each hand-over of work for a
// race. Plain threads stand in for it, so that what is judged is what bodies do to each other.
void parallel_for(std::size_t n, const std::function<void(std::size_t)>& body) {
  using tbb::global_control;
  const auto most = global_control::active_value(global_control::max_allowed_parallelism);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) body(i);
  };
  std::vector<std::jthread> threads(std::min(n, most));
  for (auto& thread : threads) thread = std::jthread(work);
}

}  // namespace planner

#else

#include <tbb/parallel_for.h>

namespace planner {

void parallel_for(std::size_t n, const std::function<void(std::size_t)>& body) {
  tbb::parallel_for(std::size_t{0}, n, [&](std::size_t i) { body(i); });
}

}  // namespace planner

#endif

namespace planner {

void on_threads(int threads, const std::function<void()>& body) {
  std::optional<tbb::global_control> limit;
  if (threads > 0)
    limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  body();
}

}  // namespace planner
