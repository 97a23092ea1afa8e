# How Tessera's own code is compiled. Warnings and instrumentation are ours alone: nothing of them reaches a user.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Tessera needs g++ 12 or clang 14")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: Tessera needs g++ 12 or clang 14")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  message(WARNING "Tessera is tested with g++ and clang only, not with ${CMAKE_CXX_COMPILER_ID}")
endif()

if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE_PROGRAM ccache)
  mark_as_advanced(TESSERA_CCACHE_PROGRAM)
  if(TESSERA_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${TESSERA_CCACHE_PROGRAM}")
  endif()
endif()

# Sanitizers and coverage for everything that is added after this call.
macro(tessera_instrument)
  if(TESSERA_SANITIZE)
    add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${TESSERA_SANITIZE})
    # What g++ warns of in others' headers then: std::regex, in which sanitizers make it see uninitialised members, and
    # fences in Kokkos, which ThreadSanitizer does not see.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-Wno-maybe-uninitialized)
      if(TESSERA_SANITIZE STREQUAL "thread")
        add_compile_options(-Wno-tsan)
      endif()
    endif()
  endif()
  if(TESSERA_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
  endif()
  if(TESSERA_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endmacro()

# What is added after this call runs for seconds: coverage would take a third of its compilation, optimising it under
# sanitizers half of the rest. TESSERA_DEBUG_FLAGS is for folders that run longer.
macro(tessera_instrument_less)
  get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
  list(REMOVE_ITEM options --coverage)
  set_property(DIRECTORY PROPERTY COMPILE_OPTIONS ${options})
  set(TESSERA_DEBUG_FLAGS "${CMAKE_CXX_FLAGS_DEBUG}")
  if(TESSERA_SANITIZE AND NOT TESSERA_FUZZ) # fuzzers run long
    string(APPEND CMAKE_CXX_FLAGS_DEBUG " -O0")
  endif()
endmacro()
