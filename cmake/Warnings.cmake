# One interface target with the warnings, linked privately by each of our targets.
add_library(foretrain_warnings INTERFACE)
target_compile_options(foretrain_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wdouble-promotion
  # GCC 12 warns falsely about std::string at -O3 (PR105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # clang faults libstdc++ 12 for std::stable_sort, which uses what C++17 deprecates.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${FORETRAIN_WERROR}>:-Werror>)
