# Runs nvcc, and says which kernels spill registers, by what the assembler tells.
#
#   cmake -DIMAGE=<output> -DMAY_SPILL=<bool> -P compile_cuda.cmake -- nvcc ...
#
# What the assembler said stays beside the output, in <output>.ptxas.

set(command)
set(behind OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(behind)
    # A list would take brackets for its own.
    string(APPEND command " [==[${CMAKE_ARGV${i}}]==]")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(behind ON)
  endif()
endforeach()
cmake_language(EVAL CODE
  "execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)")
file(WRITE "${IMAGE}.ptxas" "${said}")
if(NOT result EQUAL 0)
  file(REMOVE "${IMAGE}")
  message(FATAL_ERROR "${said}")
endif()

string(REPLACE ";" "," said "${said}")
string(REPLACE "\n" ";" lines "${said}")
set(spills)
set(other)
foreach(line IN LISTS lines)
  if(line MATCHES "Compiling entry function '([^']*)' for '([^']*)'")
    set(kernel "${CMAKE_MATCH_1} on ${CMAKE_MATCH_2}")
  elseif(line MATCHES "bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads")
    if(NOT "${CMAKE_MATCH_1} ${CMAKE_MATCH_2}" STREQUAL "0 0")
      list(APPEND spills "${kernel}: ${CMAKE_MATCH_1} bytes stored, ${CMAKE_MATCH_2} loaded")
    endif()
  elseif(NOT line MATCHES "ptxas info|^ *$|Function properties for")
    list(APPEND other "${line}")  # warnings
  endif()
endforeach()
list(JOIN other "\n" other)
if(other)
  message("${other}")
endif()
if(spills AND NOT MAY_SPILL)
  file(REMOVE "${IMAGE}")
  list(JOIN spills "\n  " spills)
  message(FATAL_ERROR "kernels spill registers to memory; let them hold less at a time, or put the "
                      "source into MAY_SPILL of oriel_cuda_kernels:\n  ${spills}")
endif()
