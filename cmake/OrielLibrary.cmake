# Library, test and binary helpers. Every argument is named; a target links what its DEPS say and nothing else.
#
#   oriel_cc_library(NAME <target> [SRCS a.cc ...] [HDRS a.h ...] [DEPS <target> ...])
#       Static library; header-only (INTERFACE) when SRCS is empty. For runtime/, kernels/ and plain C++ anywhere.
#   oriel_mlir_library(NAME <target> SRCS ... [HDRS ...] [DEPS ...] [TABLEGEN <tablegen target> ...] [NO_PCH])
#       The same for compiler code: links libMLIR and libLLVM, uses the shared MLIR precompiled header.
#       TABLEGEN names targets made by oriel_tablegen; whoever links this library waits for them too.
#   oriel_cuda_library(NAME <target> SRCS a.cu ... [HDRS ...] [DEPS ...] [SHARED])
#       Only where ORIEL_HAVE_CUDA. SHARED builds a plugin (.so) in bin/.
#   oriel_cc_binary(NAME <file name in bin/> SRCS ... [DEPS ...] [MLIR] [EXPORTS])
#       MLIR: compiler side (libMLIR, precompiled header). EXPORTS: symbols visible to plugins loaded at run time; of the static
#       libraries those in objects that the binary itself uses.
#   oriel_cc_test(NAME <target> SRCS ... [DEPS ...] [LABELS ...] [ENV K=V ...] [TIMEOUT <s>] [MLIR])
#       GoogleTest with its own main(); each TEST becomes one CTest test "<target>.Suite.Name", 60 s timeout.
#       ORIEL_SOURCE_DIR (string literal) is defined for fixtures; the working directory is the build root.
#   oriel_mpi_test(NAME <target> SRCS ... RANKS <n> ... [DEPS ...] [LABELS ...] [TIMEOUT <s>])
#       Only where ORIEL_HAVE_MPI. GoogleTest without a main() (the source calls MPI_Init); one CTest test per rank count.
#       No GTEST_SKIP here: CTest sees the whole run as one test.
#   oriel_tablegen(NAME <target> TD <file.td> GEN "<out.inc> <flags>" ...)
#       See package/OrielTablegen.cmake; plugins outside of this repository use it too.
#   oriel_proto_library(NAME <target> PROTOS a.proto ... [DEPS ...])
#       Protos import by path from the repository root: #include "runtime/plan/plan.pb.h".
#
# Includes are from the repository root ("runtime/plan/plan.h"); generated files from the build root, same paths.
# Third-party targets: absl::*  protobuf::libprotobuf  yaml-cpp::yaml-cpp  CLI11::CLI11  nlohmann_json::nlohmann_json
#   DNNL::dnnl  LibArchive::LibArchive  MPI::MPI_CXX (if ORIEL_HAVE_MPI)  ONNX::onnx (frontend/ only)  Threads::Threads
# Variables for guards: ORIEL_BUILD_COMPILER ORIEL_HAVE_MPI ORIEL_HAVE_CUDA ORIEL_BUILD_TESTS

include_guard()
include(GoogleTest)
set(ORIEL_INCLUDE_DIR "${PROJECT_SOURCE_DIR}")
include(package/OrielTablegen)

# Parses named arguments and stops on a misspelt or missing one.
macro(_oriel_parse options one multi)
  cmake_parse_arguments(ARG "${options}" "${one}" "${multi}" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}: unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_NAME)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}: NAME is required")
  endif()
endmacro()

# Flags and include paths that every compiled target of ours shares.
function(_oriel_common target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  # SYSTEM: no warnings from what protoc and mlir-tblgen wrote.
  target_include_directories(${target} SYSTEM PUBLIC "${PROJECT_BINARY_DIR}")
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${ORIEL_WARNINGS}>")
  cmake_path(IS_PREFIX ORIEL_KERNELS_DIR "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE in_kernels)
  if(ORIEL_NATIVE AND in_kernels)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-march=native>")
  endif()
endfunction()

# Makes a target a compiler-side one.
function(_oriel_use_mlir target pch)
  if(NOT ORIEL_BUILD_COMPILER)
    message(FATAL_ERROR "${target} needs MLIR; guard its folder with ORIEL_BUILD_COMPILER")
  endif()
  target_link_libraries(${target} PUBLIC oriel_mlir)
  if(pch)
    # -fpch-preprocess is what lets ccache see through the precompiled header.
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")
    target_precompile_headers(${target} REUSE_FROM oriel_mlir_pch)
  endif()
endfunction()

function(oriel_cc_library)
  _oriel_parse("" "NAME" "SRCS;HDRS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
    _oriel_common(${ARG_NAME})
    target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
  else()
    add_library(${ARG_NAME} INTERFACE ${ARG_HDRS})
    target_include_directories(${ARG_NAME} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_include_directories(${ARG_NAME} SYSTEM INTERFACE "${PROJECT_BINARY_DIR}")
    target_link_libraries(${ARG_NAME} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

function(oriel_mlir_library)
  _oriel_parse("NO_PCH" "NAME" "SRCS;HDRS;DEPS;TABLEGEN" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  _oriel_common(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
  if(ARG_NO_PCH)
    _oriel_use_mlir(${ARG_NAME} OFF)
  else()
    _oriel_use_mlir(${ARG_NAME} ON)
  endif()
  if(ARG_TABLEGEN)
    add_dependencies(${ARG_NAME} ${ARG_TABLEGEN})
  endif()
endfunction()

function(oriel_cuda_library)
  _oriel_parse("SHARED" "NAME" "SRCS;HDRS;DEPS" ${ARGN})
  if(NOT ORIEL_HAVE_CUDA)
    message(FATAL_ERROR "${ARG_NAME} needs CUDA; guard it with ORIEL_HAVE_CUDA")
  endif()
  if(ARG_SHARED)
    add_library(${ARG_NAME} SHARED ${ARG_SRCS} ${ARG_HDRS})
    set_target_properties(${ARG_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  else()
    add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  endif()
  _oriel_common(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} CUDA::cudart)
endfunction()

function(oriel_cc_binary)
  _oriel_parse("MLIR;EXPORTS" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  _oriel_common(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  if(ARG_MLIR)
    _oriel_use_mlir(${ARG_NAME} ON)
  endif()
  if(ARG_EXPORTS)
    set_target_properties(${ARG_NAME} PROPERTIES ENABLE_EXPORTS ON)
  endif()
  install(TARGETS ${ARG_NAME} RUNTIME)
endfunction()

# A test's own code runs once: what -O2 saves there is less than what it takes to compile.
function(_oriel_common_of_test target)
  _oriel_common(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  target_compile_definitions(${target} PRIVATE "ORIEL_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
endfunction()

function(oriel_cc_test)
  _oriel_parse("MLIR" "NAME;TIMEOUT" "SRCS;DEPS;LABELS;ENV" ${ARGN})
  if(NOT ORIEL_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  _oriel_common_of_test(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(ARG_MLIR)
    _oriel_use_mlir(${ARG_NAME} ON)
  endif()
  # PRE_TEST: a test binary that cannot start fails its tests, not the build.
  gtest_discover_tests(${ARG_NAME}
    TEST_PREFIX "${ARG_NAME}."
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  # gtest_discover_tests flattens lists, so these two are set in a file that CTest reads after the discovery.
  set(extra "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_properties.cmake")
  file(CONFIGURE OUTPUT "${extra}" @ONLY CONTENT
    [[foreach(test IN LISTS @ARG_NAME@_TESTS)
  set_tests_properties("${test}" PROPERTIES LABELS "@ARG_LABELS@" ENVIRONMENT "@ARG_ENV@")
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${extra}")
endfunction()

function(oriel_mpi_test)
  _oriel_parse("" "NAME;TIMEOUT" "SRCS;DEPS;RANKS;LABELS" ${ARGN})
  if(NOT ORIEL_BUILD_TESTS)
    return()
  endif()
  if(NOT ORIEL_HAVE_MPI)
    message(FATAL_ERROR "${ARG_NAME} needs MPI; guard it with ORIEL_HAVE_MPI")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  _oriel_common_of_test(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest MPI::MPI_CXX)
  foreach(ranks IN LISTS ARG_RANKS)
    add_test(NAME "${ARG_NAME}.np${ranks}"
      COMMAND "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${ranks} "$<TARGET_FILE:${ARG_NAME}>"
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
    # Open MPI refuses root and more ranks than cores unless told; containers have both. It leaks at exit by design.
    set_tests_properties("${ARG_NAME}.np${ranks}" PROPERTIES
      TIMEOUT ${ARG_TIMEOUT}
      LABELS "mpi;${ARG_LABELS}"
      PROCESSORS 2
      ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endfunction()

function(oriel_proto_library)
  _oriel_parse("" "NAME" "PROTOS;DEPS" ${ARGN})
  set(outputs)
  foreach(proto IN LISTS ARG_PROTOS)
    set(source "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
    file(RELATIVE_PATH relative "${PROJECT_SOURCE_DIR}" "${source}")
    string(REGEX REPLACE "\\.proto$" "" stem "${PROJECT_BINARY_DIR}/${relative}")
    add_custom_command(
      OUTPUT "${stem}.pb.cc" "${stem}.pb.h"
      COMMAND protobuf::protoc -I "${PROJECT_SOURCE_DIR}" "--cpp_out=${PROJECT_BINARY_DIR}" "${source}"
      DEPENDS "${source}"
      COMMENT "protoc ${relative}"
      VERBATIM)
    list(APPEND outputs "${stem}.pb.cc" "${stem}.pb.h")
  endforeach()
  add_library(${ARG_NAME} STATIC ${outputs})
  target_include_directories(${ARG_NAME} SYSTEM PUBLIC "${PROJECT_BINARY_DIR}")
  target_link_libraries(${ARG_NAME} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
endfunction()
