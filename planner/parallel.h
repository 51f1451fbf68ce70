#pragma once

#include <cstddef>
#include <functional>

namespace planner {

// Calls body(0) ... body(n - 1), in any order and on any number of threads, and returns when all are done.
void parallel_for(std::size_t n, const std::function<void(std::size_t)>& body);

// Calls body, in which parallel_for runs on so many threads at most; 0 = all.
void on_threads(int threads, const std::function<void()>& body);

}  // namespace planner
