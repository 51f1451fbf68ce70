# add_module(<name> [PUBLIC targets...] [PRIVATE targets...])
#
# One library per folder: every .cpp below it except main.cpp. Its include path is a view folder that
# holds one link, <name> -> source folder, so that `#include "planner/search.h"` compiles only in a
# target that links planner: DESIGN.md's table of who may use whom is enforced by the compiler.
function(add_module name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;CATALOGUES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$|/[a-z_]+_main\\.cpp$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)

  set(view ${CMAKE_BINARY_DIR}/views/${name})
  file(MAKE_DIRECTORY ${view})
  if(NOT EXISTS ${view}/${name})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  endif()

  add_library(${name} STATIC ${sources})
  add_library(foretrain::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC ${view})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC}
                                PRIVATE $<BUILD_INTERFACE:foretrain_warnings> ${ARG_PRIVATE})
  set_target_properties(${name} PROPERTIES FORETRAIN_HEADERS "${headers}")

  # Each header compiles by itself (STYLE.md, section 6).
  set(header_checks)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH relative ${CMAKE_CURRENT_SOURCE_DIR} ${header})
    string(MAKE_C_IDENTIFIER ${relative} id)
    set(check ${CMAKE_BINARY_DIR}/header_checks/${name}/${id}.cpp)
    file(GENERATE OUTPUT ${check} CONTENT "#include \"${name}/${relative}\"\n")
    list(APPEND header_checks ${check})
  endforeach()
  if(header_checks)
    add_library(${name}_headers OBJECT EXCLUDE_FROM_ALL ${header_checks})
    target_link_libraries(${name}_headers PRIVATE ${name} foretrain_warnings)
    target_compile_options(${name}_headers PRIVATE -O0 -g0)
    if(NOT TARGET all_headers)
      add_custom_target(all_headers)
    endif()
    add_dependencies(all_headers ${name}_headers)
  endif()
endfunction()

# add_catalogue(<target> <folder> <type> <header>)
#
# Writes the table of a folder of a kind from its file names: core/plan/schedules/gpipe.cpp must
# define `extern const core::Schedule core::schedules::gpipe`. Adding a file is the whole change.
# The table is read through `std::span<const Type* const> <target>::<folder>::all()`.
function(add_catalogue target folder type header)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  get_filename_component(kind ${folder} NAME)
  set(declarations "")
  set(entries "")
  list(SORT files)
  foreach(file IN LISTS files)
    get_filename_component(entry ${file} NAME_WE)
    string(APPEND declarations "extern const ${type} ${entry};\n")
    string(APPEND entries "    &${entry},\n")
  endforeach()
  set(body "  static constexpr const ${type}* table[] = {\n${entries}  };\n  return table;\n")
  if(NOT files)
    set(body "  return {};\n")
  endif()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/catalogue_${kind}.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"// Written by the build from the file names in @target@/@folder@.
#include \"@header@\"

namespace @target@::@kind@ {

@declarations@
std::span<const @type@* const> all() {
@body@}

}  // namespace @target@::@kind@
")
  target_sources(${target} PRIVATE ${out})
endfunction()

# add_program(<name> <main.cpp> <module>...): a leaf; CLI11 appears only here. The target `programs` builds them all.
add_custom_target(programs)
function(add_program name main)
  add_executable(${name}_program ${main})
  set_target_properties(${name}_program PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(${name}_program PRIVATE foretrain_warnings CLI11::CLI11 ${ARGN})
  add_dependencies(programs ${name}_program)
  install(TARGETS ${name}_program RUNTIME DESTINATION bin)
endfunction()
