# Every build switch, checked here so that a wrong value is an error at configure time. tests/switches tests that each
# takes effect, for TESSERA_HEAD_DIMS tests/package.

# --- What is built -----------------------------------------------------------------------------------------------
set(TESSERA_BACKENDS kokkos cuda hip)
set(BACKEND kokkos CACHE STRING "What attention is computed with: kokkos, cuda or hip")
set_property(CACHE BACKEND PROPERTY STRINGS ${TESSERA_BACKENDS})
if(NOT BACKEND IN_LIST TESSERA_BACKENDS)
  list(JOIN TESSERA_BACKENDS ", " allowed)
  message(FATAL_ERROR "BACKEND is '${BACKEND}'; must be one of: ${allowed}")
endif()

set(TESSERA_HEAD_DIMS "64;128;192;256;512" CACHE STRING
    "Head dimension buckets to build: the largest bounds what runs, and a backend may build a kernel for each")
set(previous 0)
foreach(dim IN LISTS TESSERA_HEAD_DIMS)
  set(what "TESSERA_HEAD_DIMS is '${TESSERA_HEAD_DIMS}': ${dim}")
  if(NOT dim MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "${what} is not a number")
  endif()
  math(EXPR remainder "${dim} % 8")
  if(remainder OR dim GREATER 512)
    message(FATAL_ERROR "${what} must be a multiple of 8 from 8 to 512")
  endif()
  if(NOT dim GREATER previous)
    message(FATAL_ERROR "${what} follows ${previous}; the list must be ascending and without repetition")
  endif()
  set(previous ${dim})
endforeach()
if(previous EQUAL 0)
  message(FATAL_ERROR "TESSERA_HEAD_DIMS is empty; it needs at least one multiple of 8 from 8 to 512")
endif()
set(TESSERA_HEAD_DIM_MAX ${previous})

option(TESSERA_KOKKOS "BACKEND=kokkos: on Kokkos. OFF: its kernels for CPUs on the calling thread, without Kokkos" ON)
if(NOT BACKEND STREQUAL "kokkos")
  set(TESSERA_KOKKOS OFF)
endif()
option(BUILD_SHARED_LIBS "Build libtessera as a shared library (else a static one)" ON)

# --- What comes with it: everything for us, nothing for a project that includes us ----------------------------------
option(TESSERA_EMULATED_ISA
       "BACKEND=kokkos, for tests: kernels for bf16 instructions run on any AVX-512 processor, which emulates them" OFF)
option(TESSERA_HIP_SIMULATED "BACKEND=hip, for tests: they run on the simulated device. OFF: on the machine's own" ON)
option(TESSERA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_BUILD_TOOLS "Build the tessera command" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_INSTALL "Make the install rules" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_WARNINGS_AS_ERRORS "Treat the compiler's warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_CCACHE "Compile through ccache where it is installed" ${PROJECT_IS_TOP_LEVEL})
option(TESSERA_FETCH "Download a dependency that is not installed" ON)
option(TESSERA_FETCH_KOKKOS "Download Kokkos where it is not installed" ON)

# --- Instrumentation, for the presets ---------------------------------------------------------------------------
set(TESSERA_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")
option(TESSERA_COVERAGE "Count executed lines (gcov)" OFF)
option(TESSERA_FUZZ "Build the fuzz targets (clang with libFuzzer)" OFF)
if(NOT TESSERA_SANITIZE MATCHES "^(|thread|address|undefined|address,undefined)$")
  message(FATAL_ERROR "TESSERA_SANITIZE is '${TESSERA_SANITIZE}'; "
                      "must be empty, address, undefined, 'address,undefined' or thread")
endif()
if(TESSERA_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "TESSERA_FUZZ needs clang for libFuzzer; the compiler is ${CMAKE_CXX_COMPILER_ID}. "
                      "Use --preset fuzz, or -DCMAKE_CXX_COMPILER=clang++-14.")
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
