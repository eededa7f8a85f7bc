# Debian's Python, which has the numpy and yaml that tools/setup.sh installed, before one that happens to be on PATH.
if(NOT DEFINED Python3_ROOT_DIR AND EXISTS /usr/bin/python3)
  set(Python3_ROOT_DIR /usr)
endif()
set(Python3_FIND_STRATEGY LOCATION)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
