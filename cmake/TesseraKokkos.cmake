# Finds Kokkos >= 5.0 and < 6: the installed one, else its sources pinned by hash, else the distribution's packages
# through ci/get-kokkos.sh, else an error that says what to do. Sets TESSERA_BUNDLE_KOKKOS where the library that is
# installed must bring Kokkos' libraries along, because nobody else would find them.
if(NOT BACKEND STREQUAL "kokkos" OR NOT TESSERA_KOKKOS)
  return()
endif()

set(TESSERA_KOKKOS_PREFIX "${TESSERA_CACHE_DIR}/kokkos-debian/kokkos")
set(TESSERA_KOKKOS_TRIED "the installed packages and ${TESSERA_KOKKOS_PREFIX}")

# Looks for an installed one. The range needs CMake's own version files, which Kokkos writes since 3.x; what is found is
# looked at again below.
macro(tessera_find_kokkos)
  find_package(Kokkos 5.0...<6 CONFIG QUIET ${ARGN})
  if(NOT Kokkos_FOUND)
    foreach(config version IN ZIP_LISTS Kokkos_CONSIDERED_CONFIGS Kokkos_CONSIDERED_VERSIONS)
      if(version VERSION_LESS 5.0 OR version VERSION_GREATER_EQUAL 6)
        get_filename_component(folder "${config}" DIRECTORY)
        list(APPEND TESSERA_KOKKOS_TRIED "Kokkos ${version} in ${folder}: must be >= 5.0 and < 6")
      endif()
    endforeach()
    if(Kokkos_NOT_FOUND_MESSAGE)
      list(APPEND TESSERA_KOKKOS_TRIED "found in ${Kokkos_DIR}, but: ${Kokkos_NOT_FOUND_MESSAGE}")
    endif()
  endif()
endmacro()

# Builds it from source, as part of this build and installed with it.
macro(tessera_build_kokkos)
  tessera_fetch(
    Kokkos_FOUND
    NAME kokkos
    URL https://github.com/kokkos/kokkos/releases/download/5.2.2/kokkos-5.2.2.tar.gz
    SHA256 d6557aaef39302282a15f9c770433d1fcdf4e961dfd6d9ed726b9d0d0f546b9f
    TARGETS Kokkos::kokkoscore
    SETTINGS BUILD_SHARED_LIBS=${BUILD_SHARED_LIBS} Kokkos_ENABLE_OPENMP=ON Kokkos_ENABLE_SERIAL=ON
             Kokkos_ENABLE_TESTS=OFF Kokkos_ENABLE_EXAMPLES=OFF)
  if(Kokkos_FOUND)
    unset(Kokkos_DIR)
  else()
    list(APPEND TESSERA_KOKKOS_TRIED "its release on GitHub cannot be downloaded")
  endif()
endmacro()

# Runs ci/get-kokkos.sh: afterwards an installed one is in ${TESSERA_KOKKOS_PREFIX}, or its sources are beside that.
function(tessera_run_get_kokkos)
  file(MAKE_DIRECTORY "${TESSERA_CACHE_DIR}")
  file(LOCK "${TESSERA_CACHE_DIR}/kokkos.lock" GUARD FUNCTION TIMEOUT 300)
  message(STATUS "Kokkos: taking the distribution's packages (ci/get-kokkos.sh)")
  execute_process(
    COMMAND "${PROJECT_SOURCE_DIR}/ci/get-kokkos.sh" "${TESSERA_CACHE_DIR}/kokkos-debian" 5.0
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    string(STRIP "${output}" output)
    set(TESSERA_KOKKOS_TRIED ${TESSERA_KOKKOS_TRIED} "ci/get-kokkos.sh: ${output}" PARENT_SCOPE)
  endif()
endfunction()

if(NOT TARGET Kokkos::kokkos)
  tessera_find_kokkos()
  if(NOT Kokkos_FOUND)
    tessera_find_kokkos(PATHS "${TESSERA_KOKKOS_PREFIX}" NO_DEFAULT_PATH)
  endif()
  if(NOT Kokkos_FOUND AND TESSERA_FETCH AND TESSERA_FETCH_KOKKOS)
    tessera_build_kokkos()
    if(NOT Kokkos_FOUND)
      tessera_run_get_kokkos()
      tessera_find_kokkos(PATHS "${TESSERA_KOKKOS_PREFIX}" NO_DEFAULT_PATH)
    endif()
    if(NOT Kokkos_FOUND AND EXISTS "${TESSERA_CACHE_DIR}/kokkos-debian/kokkos-src")
      set(FETCHCONTENT_SOURCE_DIR_KOKKOS "${TESSERA_CACHE_DIR}/kokkos-debian/kokkos-src")
      tessera_build_kokkos()
    endif()
  endif()
  if(NOT TESSERA_FETCH OR NOT TESSERA_FETCH_KOKKOS)
    list(APPEND TESSERA_KOKKOS_TRIED "nothing was downloaded: TESSERA_FETCH or TESSERA_FETCH_KOKKOS is OFF")
  endif()
  if(NOT Kokkos_FOUND)
    list(JOIN TESSERA_KOKKOS_TRIED "\n  " tried)
    message(
      FATAL_ERROR
        "BACKEND=kokkos needs Kokkos >= 5.0 and < 6, and there is none.\n"
        "Do one of these:\n"
        "  - install Kokkos 5 and give its prefix: -DKokkos_ROOT=PREFIX\n"
        "  - let the build fetch it: -DTESSERA_FETCH_KOKKOS=ON -DTESSERA_FETCH=ON, with GitHub or a Debian archive in reach\n"
        "  - on Debian, run ci/get-kokkos.sh DIR and give -DKokkos_ROOT=DIR/kokkos\n"
        "With clang, a Kokkos built for OpenMP also needs clang's own OpenMP (Debian: libomp-14-dev for clang-14).\n"
        "Tried:\n  ${tried}")
  endif()
endif()

if(Kokkos_DIR AND (Kokkos_VERSION VERSION_LESS 5.0 OR Kokkos_VERSION VERSION_GREATER_EQUAL 6))
  message(FATAL_ERROR "Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} cannot be used: Tessera needs >= 5.0 and < 6. "
                      "Give the prefix of another with -DKokkos_ROOT=PREFIX.")
endif()
string(FIND "${Kokkos_DIR}" "${TESSERA_CACHE_DIR}/" at)
if(at EQUAL 0)
  set(TESSERA_BUNDLE_KOKKOS ON)
else()
  set(TESSERA_BUNDLE_KOKKOS OFF)
endif()
if(Kokkos_DIR)
  message(STATUS "Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) in ${Kokkos_DIR}")
endif()
