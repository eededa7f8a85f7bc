# CUDA kernels: device code that nvcc compiles into images, and the host's compiler for the emulator.
#
#   oriel_cuda_kernels(NAME <target> SRCS a.cu ... DEPS <target> ... [MAY_SPILL b.cu ...])
#       <target>: an object library that embeds one image of each source, and registers it with
#       KernelImageRegistrar (kernels/cuda/driver.h). An image has machine code for each of
#       ORIEL_CUDA_ARCHITECTURES, and PTX of the first, for later devices. A kernel that spills
#       registers to memory stops the build, unless its source is in MAY_SPILL (from the
#       repository's root: kernels/attention/attention.cu).
#       <target>_emulated: an object library of the same sources for the host, which register
#       themselves with the emulator (kernels/cuda/emulator/emulated_kernel.h).
#       Link either directly (DEPS of a binary, a test or a plugin): nothing refers to the objects.
#
# nvcc is run by hand, not as CMake's CUDA language: device code needs neither cudart nor a host
# object. It compiles for the first architecture and, where that is older, for Hopper; code for the
# others is assembled from the newer PTX of the two that they take.

include_guard()

set(ORIEL_CUDA_ARCHITECTURES "80;90;100" CACHE STRING
    "Compute capabilities that CUDA kernels are assembled for; they are compiled for the first, and for 90")

function(_oriel_cuda_image source image may_spill)
  list(GET ORIEL_CUDA_ARCHITECTURES 0 first)
  set(codes)
  set(hopper_codes)
  foreach(architecture IN LISTS ORIEL_CUDA_ARCHITECTURES)
    if(first LESS 90 AND architecture GREATER_EQUAL 90)
      list(APPEND hopper_codes "sm_${architecture}")
    else()
      list(APPEND codes "sm_${architecture}")
    endif()
  endforeach()
  list(JOIN codes "," codes)
  set(generate -gencode "arch=compute_${first},code=[${codes},compute_${first}]")
  if(hopper_codes)
    list(JOIN hopper_codes "," hopper_codes)
    list(APPEND generate -gencode "arch=compute_90,code=[${hopper_codes}]")
  endif()
  cmake_path(GET image PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE shown)
  set(warnings)
  if(ORIEL_WERROR)
    set(warnings -Werror all-warnings)
  endif()
  add_custom_command(
    OUTPUT "${image}"
    COMMAND "${CMAKE_COMMAND}"
      -DIMAGE=${image} -DMAY_SPILL=${may_spill} -P "${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake" --
      "${CMAKE_CUDA_COMPILER}" -std=c++17 -O3 --expt-relaxed-constexpr -Xfatbin -compress-all ${warnings}
      "-I${PROJECT_SOURCE_DIR}" ${generate}
      -Xptxas -v -MD -MF "${image}.d" -MT "${image}" -fatbin -o "${image}" "${source}"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/cmake/compile_cuda.cmake"
    DEPFILE "${image}.d"
    COMMENT "nvcc ${shown}"
    VERBATIM)
endfunction()

function(oriel_cuda_kernels)
  _oriel_parse("" "NAME" "SRCS;DEPS;MAY_SPILL" ${ARGN})
  if(NOT ORIEL_HAVE_CUDA)
    message(FATAL_ERROR "${ARG_NAME} needs CUDA; guard it with ORIEL_HAVE_CUDA")
  endif()
  list(TRANSFORM ORIEL_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE architectures)
  list(JOIN architectures ", " ORIEL_CUDA_CODES)
  set(embedding_sources)
  set(sources)
  foreach(source IN LISTS ARG_SRCS)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    list(APPEND sources "${source}")
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE relative)
    set(may_spill OFF)
    if(relative IN_LIST ARG_MAY_SPILL)
      set(may_spill ON)
    endif()
    set(ORIEL_CUDA_IMAGE "${PROJECT_BINARY_DIR}/${relative}.fatbin")
    _oriel_cuda_image("${source}" "${ORIEL_CUDA_IMAGE}" ${may_spill})
    string(MAKE_C_IDENTIFIER "oriel_image_${relative}" ORIEL_CUDA_SYMBOL)
    set(embedding "${PROJECT_BINARY_DIR}/${relative}.image.cc")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/cuda_image.cc.in" "${embedding}" @ONLY)
    set_source_files_properties("${embedding}" PROPERTIES OBJECT_DEPENDS "${ORIEL_CUDA_IMAGE}")
    list(APPEND embedding_sources "${embedding}")
  endforeach()

  add_library(${ARG_NAME} OBJECT ${embedding_sources})
  _oriel_common(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
  # A cache of objects sees the assembler's .incbin not.
  set_target_properties(${ARG_NAME} PROPERTIES CXX_COMPILER_LAUNCHER "")

  add_library(${ARG_NAME}_emulated OBJECT ${sources})
  _oriel_common(${ARG_NAME}_emulated)
  target_link_libraries(${ARG_NAME}_emulated PUBLIC ${ARG_DEPS})
  target_include_directories(${ARG_NAME}_emulated SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  # Device code reads memory as wider vectors; loops are not for the host's vector units, so that
  # compiling them is quick. Flags of its own stand behind -x, which the file's suffix needs.
  target_compile_options(${ARG_NAME}_emulated PRIVATE
    -x c++ -O2 -fno-strict-aliasing -ffp-contract=fast -Wno-unknown-pragmas -Wno-unused-function)
endfunction()
