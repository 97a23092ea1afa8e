# cmake -D NM=nm -D OBJECT=file.o -P symbols.cmake
#
# Fails if the object holds a copy of a function that another object may be linked to instead of its own: then code for
# one instruction set would run on processors that have another.
execute_process(COMMAND "${NM}" --demangle --defined-only "${OBJECT}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed OR NOT symbols MATCHES "T tessera::testing::compute_on_host")
  message(FATAL_ERROR "${NM} ${OBJECT} does not list compute_on_host:\n${symbols}")
endif()
string(REGEX MATCHALL "[^\n]* W [^\n]*" shared "${symbols}")
list(JOIN shared "\n" text)
if(shared)
  message(FATAL_ERROR "core/kernel left functions that objects share:\n${text}")
endif()
