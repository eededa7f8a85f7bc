# Plugins of Oriel, for projects outside of it. A plugin links none of Oriel's libraries: it finds their functions in the binary
# that loads it, and a second copy of them would register the dialects' types twice.
#
#   oriel_add_kernel_plugin(<name> SOURCES a.cc ...)
#       <name>.so for `oriel-run --load-plugin`: kernels/plugin.h.
#   oriel_add_compiler_plugin(<name> SOURCES a.cc ... [TABLEGEN <target> ...])
#       <name>.so for `oriel --load-plugin` and `oriel-opt --load-plugin`: driver/plugin.h. TABLEGEN names targets of oriel_tablegen
#       (OrielTablegen.cmake), whose files the sources include.

include_guard()

function(_oriel_add_plugin name kind)
  cmake_parse_arguments(ARG "" "" "SOURCES;TABLEGEN" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_SOURCES)
    message(FATAL_ERROR "plugin ${name}: expects SOURCES, got: ${ARGN}")
  endif()
  if(NOT TARGET Oriel::${kind}_headers)
    message(FATAL_ERROR "plugin ${name}: the Oriel in ${ORIEL_PREFIX} was built without its ${kind}")
  endif()
  add_library(${name} MODULE ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_link_libraries(${name} PRIVATE Oriel::${kind}_headers)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  # SYSTEM: no warnings from what mlir-tblgen wrote.
  target_include_directories(${name} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}")
  if(ARG_TABLEGEN)
    add_dependencies(${name} ${ARG_TABLEGEN})
  endif()
endfunction()

function(oriel_add_kernel_plugin name)
  _oriel_add_plugin(${name} kernels ${ARGN})
endfunction()

function(oriel_add_compiler_plugin name)
  _oriel_add_plugin(${name} compiler ${ARGN})
endfunction()
