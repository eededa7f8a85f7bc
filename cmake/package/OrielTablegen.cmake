# oriel_tablegen(NAME <target> TD <file.td> GEN "<out.inc> <flags>" ...)
#     e.g. oriel_tablegen(NAME oriel_ops_gen TD oriel_ops.td GEN
#            "oriel_ops.h.inc -gen-op-decls" "oriel_ops.cc.inc -gen-op-defs"
#            "oriel_dialect.h.inc -gen-dialect-decls -dialect=oriel")
#     Files land in the build mirror of the current folder: #include "ir/oriel/oriel_ops.h.inc". TableGen's includes are from
#     ORIEL_INCLUDE_DIR, the root of Oriel's headers, and from the project's own root.

include_guard()

function(oriel_tablegen)
  cmake_parse_arguments(ARG "" "NAME;TD" "GEN" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_TD OR NOT ARG_GEN)
    message(FATAL_ERROR "oriel_tablegen: expects NAME, TD and GEN, got: ${ARGN}")
  endif()
  set(includes)
  foreach(dir IN LISTS PROJECT_SOURCE_DIR ORIEL_INCLUDE_DIR MLIR_INCLUDE_DIRS LLVM_INCLUDE_DIRS)
    list(APPEND includes -I "${dir}")
  endforeach()
  set(td "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_TD}")
  set(outputs)
  foreach(gen IN LISTS ARG_GEN)
    separate_arguments(words UNIX_COMMAND "${gen}")
    list(POP_FRONT words out)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${out}")
    add_custom_command(
      OUTPUT "${out}"
      COMMAND "${MLIR_TABLEGEN_EXE}" ${words} ${includes} "${td}" -o "${out}" -d "${out}.d" --write-if-changed
      MAIN_DEPENDENCY "${td}"
      DEPFILE "${out}.d"
      COMMENT "tblgen ${gen}"
      VERBATIM)
    list(APPEND outputs "${out}")
  endforeach()
  add_custom_target(${ARG_NAME} DEPENDS ${outputs})
endfunction()
