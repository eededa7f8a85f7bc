# The installed CMake package: headers that plugins include, and what they are built with (package/).

include_guard()
include(CMakePackageConfigHelpers)

set(ORIEL_INSTALL_INCLUDE_DIR "${CMAKE_INSTALL_INCLUDEDIR}/oriel")
set(ORIEL_INSTALL_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Oriel")

# What a plugin may include, from the repository root.
set(ORIEL_KERNELS_HEADERS kernels/*.h kernels/common/*.h runtime/base/*.h)
set(ORIEL_COMPILER_HEADERS
  ir/*/*.h ir/*/*.td frontend/float_types.h frontend/node_importer.h frontend/op_registry.h frontend/value_builder.h
  passes/raise/match.h passes/strategy/cuts.h passes/strategize/grid.h passes/strategy/pipeline_schedule.h passes/strategy/placement.h
  passes/strategize/positions.h passes/strategy/remat_policy.h passes/strategize/sharding.h passes/strategy/strategy.h
  passes/propagate/op_split.h passes/propagate/reshard.h passes/partition/local_rule.h driver/plugin.h runtime/base/plugin.h)

# _oriel_plugin_headers(<kernels|compiler> <folder>): installs the headers, and writes <folder>/abi.h into the build: the version
# and a digest of those headers, so that a plugin built against others is told from one that fits.
function(_oriel_plugin_headers kind folder)
  string(TOUPPER ${kind} KIND)
  list(TRANSFORM ORIEL_${KIND}_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE patterns)
  file(GLOB headers CONFIGURE_DEPENDS ${patterns})
  list(FILTER headers EXCLUDE REGEX "test(ing)?\\.h$")
  set(abi "${PROJECT_BINARY_DIR}/${folder}/abi.h")
  set(script "${PROJECT_SOURCE_DIR}/cmake/write_abi.cmake")
  add_custom_command(
    OUTPUT "${abi}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${abi}" "-DMACRO=ORIEL_${KIND}_ABI" "-DVERSION=${PROJECT_VERSION}" -P "${script}" -- ${headers}
    DEPENDS ${headers} "${script}"
    COMMENT "${folder}/abi.h"
    VERBATIM)
  add_custom_target(oriel_${kind}_abi ALL DEPENDS "${abi}")
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE relative)
    cmake_path(GET relative PARENT_PATH parent)
    install(FILES "${header}" DESTINATION "${ORIEL_INSTALL_INCLUDE_DIR}/${parent}")
  endforeach()
  install(FILES "${abi}" DESTINATION "${ORIEL_INSTALL_INCLUDE_DIR}/${folder}")
endfunction()

_oriel_plugin_headers(kernels kernels)
if(ORIEL_BUILD_COMPILER)
  _oriel_plugin_headers(compiler driver)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/ir" DESTINATION "${ORIEL_INSTALL_INCLUDE_DIR}" FILES_MATCHING PATTERN "*.h.inc"
          PATTERN CMakeFiles EXCLUDE)
endif()

configure_package_config_file(cmake/package/OrielConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/OrielConfig.cmake"
  INSTALL_DESTINATION "${ORIEL_INSTALL_CMAKE_DIR}" PATH_VARS ORIEL_INSTALL_INCLUDE_DIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/OrielConfigVersion.cmake" COMPATIBILITY ExactVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/OrielConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/OrielConfigVersion.cmake"
              cmake/package/OrielAddPlugin.cmake cmake/package/OrielTablegen.cmake
        DESTINATION "${ORIEL_INSTALL_CMAKE_DIR}")
