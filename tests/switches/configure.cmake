# Configures SOURCE in BUILD with ARGUMENTS (separated by tabs; | inside a list); see CMakeLists.txt beside this file.
cmake_minimum_required(VERSION 3.22)
file(REMOVE_RECURSE "${BUILD}")
string(REPLACE "\t" ";" ARGUMENTS "${ARGUMENTS}")
string(REPLACE "|" "\\;" ARGUMENTS "${ARGUMENTS}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}" "-DCMAKE_CXX_COMPILER=${COMPILER}" ${ARGUMENTS}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(OUTCOME STREQUAL "FAILS" AND result EQUAL 0)
  message(FATAL_ERROR "configuring worked but should not have:\n${output}")
elseif(OUTCOME STREQUAL "WORKS" AND NOT result EQUAL 0)
  message(FATAL_ERROR "configuring failed:\n${output}")
endif()
string(REGEX REPLACE "[ \n]+" " " squeezed "${output}") # CMake wraps the text of errors
string(FIND "${squeezed}" "${TEXT}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "'${TEXT}' is not in the output:\n${output}")
endif()
file(REMOVE_RECURSE "${BUILD}")
