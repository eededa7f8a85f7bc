# Finds everything Oriel links. tools/setup.sh installs it all on Debian 12.

include_guard()

# Where tools/setup.sh put the ONNX library; keep the version in step with that script.
set(ORIEL_ONNX_VERSION 1.23.2)
if(DEFINED ENV{ORIEL_DEPS})
  set(_oriel_deps "$ENV{ORIEL_DEPS}")
else()
  set(_oriel_deps "$ENV{HOME}/.cache/oriel/deps")
endif()
set(ORIEL_CUDNN_FRONTEND_ROOT "${_oriel_deps}/cudnn-frontend-1.32.0" CACHE PATH "Prefix of NVIDIA's cudnn-frontend headers")
set(ORIEL_ONNX_ROOT "${_oriel_deps}/onnx-${ORIEL_ONNX_VERSION}" CACHE PATH "Prefix of the ONNX C++ library")

find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
set(Protobuf_USE_STATIC_LIBS OFF)
find_package(Protobuf REQUIRED MODULE)  # Debian ships no config file for it
find_package(nlohmann_json REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
# Debian's dnnl config insists on OpenCL development files; the library itself does not need them to link.
find_path(ORIEL_DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(ORIEL_DNNL_LIBRARY dnnl REQUIRED)
if(NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl SHARED IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${ORIEL_DNNL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ORIEL_DNNL_INCLUDE_DIR}")
endif()
# Checksums at the speed of memory. Debian ships no config file for it, and nodes need none of it where
# there is an archive.
find_library(ORIEL_DEFLATE_LIBRARY NAMES libdeflate.a deflate REQUIRED)
find_path(ORIEL_DEFLATE_INCLUDE_DIR libdeflate.h REQUIRED)
add_library(oriel_deflate INTERFACE)
target_link_libraries(oriel_deflate INTERFACE "${ORIEL_DEFLATE_LIBRARY}")
target_include_directories(oriel_deflate SYSTEM INTERFACE "${ORIEL_DEFLATE_INCLUDE_DIR}")
find_package(LibArchive REQUIRED)
# The shared library brings XML, Unicode's tables and compressions along, 45 MB. Who only reads tar files needs nothing of that: a
# binary with the property ORIEL_STATIC_LIBARCHIVE links the archive, where there is one.
find_library(ORIEL_LIBARCHIVE_A libarchive.a)
add_library(oriel_libarchive INTERFACE)
if(ORIEL_LIBARCHIVE_A)
  target_link_libraries(oriel_libarchive INTERFACE
    "$<IF:$<BOOL:$<TARGET_PROPERTY:ORIEL_STATIC_LIBARCHIVE>>,${ORIEL_LIBARCHIVE_A},LibArchive::LibArchive>")
else()
  target_link_libraries(oriel_libarchive INTERFACE LibArchive::LibArchive)
endif()
find_package(yaml-cpp REQUIRED CONFIG)
if(NOT TARGET yaml-cpp::yaml-cpp)  # 0.7 exports the target without a namespace
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()
if(ORIEL_BUILD_TESTS)
  find_package(GTest REQUIRED CONFIG)
endif()

# AUTO looks, ON insists, OFF does not look.
set(ORIEL_HAVE_MPI OFF)
if(NOT ORIEL_WITH_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)  # the C bindings only; MPI 3 removed the C++ ones
  find_package(MPI COMPONENTS CXX QUIET)
  set(ORIEL_HAVE_MPI ${MPI_CXX_FOUND})
  if(ORIEL_WITH_MPI STREQUAL "ON" AND NOT ORIEL_HAVE_MPI)
    message(FATAL_ERROR "ORIEL_WITH_MPI=ON, but no MPI was found")
  endif()
endif()

set(ORIEL_HAVE_CUDA OFF)
set(ORIEL_HAVE_NCCL OFF)
set(ORIEL_HAVE_CUDNN OFF)
if(NOT ORIEL_WITH_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90-real)
    endif()
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # CMake has no targets for these two. Empty when absent.
    find_library(ORIEL_NCCL_LIBRARY nccl HINTS "${CUDAToolkit_LIBRARY_DIR}")
    find_library(ORIEL_CUDNN_LIBRARY cudnn HINTS "${CUDAToolkit_LIBRARY_DIR}")
    find_path(ORIEL_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(ORIEL_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "${ORIEL_CUDNN_FRONTEND_ROOT}/include")
    find_path(ORIEL_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(ORIEL_NCCL_INCLUDE_DIR)
      set(ORIEL_HAVE_NCCL ON)
    endif()
    if(ORIEL_CUDNN_INCLUDE_DIR AND ORIEL_CUDNN_FRONTEND_INCLUDE_DIR)
      set(ORIEL_HAVE_CUDNN ON)
    endif()
    set(ORIEL_HAVE_CUDA ON)
  elseif(ORIEL_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ORIEL_WITH_CUDA=ON, but no nvcc was found; put it on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()

if(ORIEL_BUILD_COMPILER)
  # A range, because LLVM's version file accepts 22.1.8 for a plain "22.1" only.
  find_package(MLIR 22.1...<23 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
  find_package(ONNX ${ORIEL_ONNX_VERSION} EXACT REQUIRED CONFIG PATHS "${ORIEL_ONNX_ROOT}" NO_DEFAULT_PATH)

  # HandleLLVMOptions is left out on purpose, and the definitions are split: together they garble a define.
  separate_arguments(ORIEL_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  # Everything MLIR. The shared libraries only: mixing in libMLIR*.a registers things twice.
  add_library(oriel_mlir INTERFACE)
  target_include_directories(oriel_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(oriel_mlir INTERFACE ${ORIEL_LLVM_DEFINITIONS} -Wno-unused-parameter)
  target_link_libraries(oriel_mlir INTERFACE MLIR LLVM)
  # The JIT is not in libMLIR.so; add MLIRExecutionEngineShared to DEPS where it is used.

  # The precompiled header that oriel_mlir_library and oriel_cc_*(MLIR) share. A TU of ours takes 10 s without it.
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/cmake/mlir_pch.cc" CONTENT "// Only here to carry the precompiled header.\n")
  add_library(oriel_mlir_pch OBJECT "${PROJECT_BINARY_DIR}/cmake/mlir_pch.cc")
  target_link_libraries(oriel_mlir_pch PRIVATE oriel_mlir)
  target_compile_options(oriel_mlir_pch PRIVATE ${ORIEL_WARNINGS} "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")
  target_precompile_headers(oriel_mlir_pch PRIVATE "${PROJECT_SOURCE_DIR}/cmake/mlir_pch.h")
endif()
