# Interface targets and functions that every folder uses.

# Warnings for our own code.
add_library(tessera_warnings INTERFACE)
target_compile_options(
  tessera_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wextra-semi -Wnon-virtual-dtor -Woverloaded-virtual
            -Wold-style-cast $<$<BOOL:${TESSERA_WARNINGS_AS_ERRORS}>:-Werror>
            # g++ 12 takes "text" + std::string for an overlapping copy (a bug of GCC 12).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)

# What code inside the repository sees beside the public headers: rooted includes and the generated headers. It links
# nothing, so it is also how to use the public headers alone.
add_library(tessera_private INTERFACE)
target_include_directories(tessera_private INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/core/include"
                                                     "${TESSERA_GENERATED_DIR}")
target_compile_features(tessera_private INTERFACE cxx_std_20)

# tessera_add_program(NAME name SOURCES file... [LINK target...] [INTERNAL])
#
# An executable of ours: warnings, rooted includes, and libtessera. INTERNAL links the library's objects instead of the
# library, for tests of functions that libtessera does not export.
function(tessera_add_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "INTERNAL" "NAME" "SOURCES;LINK")
  add_executable(${arg_NAME} ${arg_SOURCES})
  if(arg_INTERNAL)
    set(library tessera_internal)
  else()
    set(library Tessera::tessera)
  endif()
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK} ${library} tessera_private tessera_warnings)
endfunction()

# What a test runs with. Pinned threads would share a core with another test's, and waiting ones take it; the sanitizers
# end a test at the first finding. The OpenMP runtime is not instrumented: with one thread, ThreadSanitizer sees our locks and nothing of it, and
# clang's runtime needs no tool that tells it more.
set(TESSERA_TEST_ENVIRONMENT "OMP_PROC_BIND=false" "OMP_WAIT_POLICY=passive" "UBSAN_OPTIONS=print_stacktrace=1")
if(TESSERA_SANITIZE MATCHES "thread")
  list(APPEND TESSERA_TEST_ENVIRONMENT "OMP_NUM_THREADS=1" "OMP_TOOL=disabled" "TSAN_OPTIONS=halt_on_error=1")
endif()
if(BACKEND STREQUAL "hip" AND TESSERA_BUILD_TESTS AND TESSERA_HIP_SIMULATED
   AND EXISTS "${PROJECT_SOURCE_DIR}/tests/amdgpu/CMakeLists.txt")
  list(APPEND TESSERA_TEST_ENVIRONMENT "TESSERA_HIP_RUNTIME=$<TARGET_FILE:tessera_simulated_amdgpu>")
endif()

# The programs of tests with the label unit, without all the others.
if(TESSERA_BUILD_TESTS)
  add_custom_target(unit_tests)
endif()

# tessera_test_properties(name... [LABELS label...] [ENVIRONMENT VAR=value...] [TIMEOUT seconds] [PROCESSORS n])
#
# Gives ctest tests what all tests have.
function(tessera_test_properties)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TIMEOUT;PROCESSORS" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  set_tests_properties(
    ${arg_UNPARSED_ARGUMENTS}
    PROPERTIES LABELS "${arg_LABELS}"
               ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT};${arg_ENVIRONMENT}"
               TIMEOUT ${arg_TIMEOUT}
               PROCESSORS ${arg_PROCESSORS})
  if("unit" IN_LIST arg_LABELS)
    foreach(test IN LISTS arg_UNPARSED_ARGUMENTS)
      if(TARGET ${test})
        add_dependencies(unit_tests ${test})
      endif()
    endforeach()
  endif()
endfunction()

# tessera_add_test(NAME name SOURCES file... [LINK target...] [INTERNAL] [ARGS argument...]
#                  [LABELS label...] [ENVIRONMENT VAR=value...] [TIMEOUT seconds] [PROCESSORS n])
#
# A GoogleTest program that ctest runs as one test of the same name. To run it again in another way (other arguments or
# environment), use add_test and tessera_test_properties.
function(tessera_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "INTERNAL" "NAME;TIMEOUT;PROCESSORS" "SOURCES;LINK;ARGS;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tessera_add_test(${arg_NAME}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_INTERNAL)
    set(internal INTERNAL)
  else()
    set(internal "")
  endif()
  tessera_add_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} LINK ${arg_LINK} GTest::gmock_main GTest::gmock
                      GTest::gtest ${internal})
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS})
  tessera_test_properties(
    ${arg_NAME}
    LABELS ${arg_LABELS}
    ENVIRONMENT ${arg_ENVIRONMENT}
    TIMEOUT ${arg_TIMEOUT}
    PROCESSORS ${arg_PROCESSORS})
endfunction()
