# All are Debian packages, listed in .ci/packages.txt.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED)
find_package(TBB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
find_package(Ceres REQUIRED)

# Optional parts: found here, left out cleanly when absent. No folder uses them yet. Without `mpicxx` FindMPI is not
# asked, since it reports each place where it looked in vain.
find_package(CUDAToolkit QUIET)
find_program(MPICXX_PROGRAM mpicxx)
if(MPICXX_PROGRAM)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
find_package(Qt6 QUIET COMPONENTS Widgets)
foreach(part CUDAToolkit MPI Qt6)
  if(${part}_FOUND)
    message(STATUS "Optional part found, not used yet: ${part} ${${part}_VERSION}")
  else()
    message(STATUS "Optional part absent, left out: ${part}")
  endif()
endforeach()
