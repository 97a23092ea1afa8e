# cmake -DPROGRAM=… -DARGUMENTS=a;b -DSTATUS=n -DPRINTS=REGEX -P expect.cmake: the program's exit status, and what it
# prints on either stream.
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS} OUTPUT_VARIABLE printed ERROR_VARIABLE printed RESULT_VARIABLE status)
if(NOT status STREQUAL STATUS OR NOT printed MATCHES "${PRINTS}")
  message(FATAL_ERROR "exit status ${status}, not ${STATUS}; or no \"${PRINTS}\" in\n${printed}")
endif()
