# Third-party libraries: an installed one first, else a download pinned by its hash, else an error that says what to
# install. Downloads are kept outside the tree, so a clean build needs the network once.
#
# All six hashes are what others pin for the same addresses: Homebrew (Kokkos, CLI11), Bazel workspaces (GoogleTest, Google
# Benchmark, fmt), CMake projects (nlohmann_json). Debian's source packages are other versions or other archives.
include(FetchContent)

if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(TESSERA_CACHE_DIR "$ENV{XDG_CACHE_HOME}/tessera")
else()
  set(TESSERA_CACHE_DIR "$ENV{HOME}/.cache/tessera")
endif()

# tessera_download(result URL SHA256): sets result to the downloaded file, or to "" if it cannot be had.
function(tessera_download result url sha256)
  get_filename_component(name "${url}" NAME)
  string(SUBSTRING "${sha256}" 0 12 prefix)
  set(file "${TESSERA_CACHE_DIR}/downloads/${prefix}-${name}")
  set(${result} "" PARENT_SCOPE)
  if(NOT EXISTS "${file}" AND TESSERA_FETCH)
    string(RANDOM LENGTH 8 random)
    file(DOWNLOAD "${url}" "${file}.${random}" STATUS status INACTIVITY_TIMEOUT 15)
    list(GET status 0 code)
    if(code EQUAL 0)
      file(RENAME "${file}.${random}" "${file}")
    else()
      list(GET status 1 reason)
      message(STATUS "${url} cannot be downloaded: ${reason}")
      file(REMOVE "${file}.${random}")
    endif()
  endif()
  if(EXISTS "${file}")
    file(SHA256 "${file}" found)
    if(found STREQUAL sha256)
      set(${result} "${file}" PARENT_SCOPE)
    else()
      message(WARNING "${url} has SHA-256 ${found}, not ${sha256}; it is not used and was removed")
      file(REMOVE "${file}")
    endif()
  endif()
endfunction()

# tessera_fetch(found NAME name URL url SHA256 hash TARGETS target... [SETTINGS variable=value...]): adds the project in
# that archive to this build and sets found. Its headers count as system headers: their warnings are not ours.
# FETCHCONTENT_SOURCE_DIR_<NAME>, CMake's own variable, names a source tree to take instead.
function(tessera_fetch result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;URL;SHA256" "TARGETS;SETTINGS")
  set(${result} FALSE PARENT_SCOPE)
  string(TOUPPER "FETCHCONTENT_SOURCE_DIR_${arg_NAME}" own_sources)
  if(${own_sources})
    message(STATUS "${arg_NAME}: building ${${own_sources}}")
  else()
    tessera_download(archive "${arg_URL}" "${arg_SHA256}")
    if(NOT archive)
      return()
    endif()
    message(STATUS "${arg_NAME}: building ${arg_URL}")
  endif()
  # These hold for the project that is fetched, and only inside this function.
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # its options obey the variables below
  set(CMAKE_CXX_VISIBILITY_PRESET default)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS OFF)
  foreach(setting IN LISTS arg_SETTINGS)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${setting}")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  FetchContent_Declare(${arg_NAME} URL "file://${archive}" URL_HASH "SHA256=${arg_SHA256}")
  FetchContent_MakeAvailable(${arg_NAME})
  foreach(target IN LISTS arg_TARGETS)
    get_target_property(aliased ${target} ALIASED_TARGET)
    get_target_property(folders ${aliased} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${aliased} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${folders}")
  endforeach()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

# tessera_require(NAME package VERSION minimum DEBIAN packages URL url SHA256 hash TARGETS target... [SETTINGS ...])
function(tessera_require)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;VERSION;DEBIAN;URL;SHA256" "TARGETS;SETTINGS")
  find_package(${arg_NAME} ${arg_VERSION} CONFIG QUIET)
  if(${arg_NAME}_FOUND)
    return()
  endif()
  string(TOLOWER "${arg_NAME}" name)
  tessera_fetch(
    found
    NAME ${name}
    URL ${arg_URL}
    SHA256 ${arg_SHA256}
    TARGETS ${arg_TARGETS}
    SETTINGS BUILD_SHARED_LIBS=OFF ${arg_SETTINGS})
  if(NOT found)
    message(FATAL_ERROR "${arg_NAME} >= ${arg_VERSION} is neither installed nor can it be downloaded. "
                        "Debian and Ubuntu: apt-get install ${arg_DEBIAN} (ci/setup installs everything). "
                        "Elsewhere: install it and give -D${arg_NAME}_ROOT=its prefix.")
  endif()
endfunction()

include(TesseraKokkos)
include(TesseraCuda)
include(TesseraHip)

if(TESSERA_BUILD_TESTS)
  tessera_require(
    NAME GTest
    VERSION 1.12
    DEBIAN "libgtest-dev libgmock-dev"
    URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    SHA256 8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
    TARGETS GTest::gtest GTest::gmock GTest::gmock_main
    SETTINGS INSTALL_GTEST=OFF)
endif()
if(TESSERA_BUILD_BENCH)
  tessera_require(
    NAME benchmark
    VERSION 1.7
    DEBIAN libbenchmark-dev
    URL https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
    SHA256 6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce
    TARGETS benchmark::benchmark
    SETTINGS BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF BENCHMARK_ENABLE_WERROR=OFF)
endif()
if(TESSERA_BUILD_TOOLS OR TESSERA_BUILD_TESTS)
  tessera_require(
    NAME CLI11
    VERSION 2.1
    DEBIAN libcli11-dev
    URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
    SHA256 f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a
    TARGETS CLI11::CLI11
    SETTINGS CLI11_BUILD_TESTS=OFF CLI11_BUILD_EXAMPLES=OFF CLI11_BUILD_DOCS=OFF CLI11_INSTALL=OFF)
endif()
set(simulates OFF) # tests/amdgpu
if(BACKEND STREQUAL "hip")
  set(simulates ${TESSERA_BUILD_TESTS})
endif()
if(TESSERA_BUILD_TOOLS OR TESSERA_BUILD_BENCH OR simulates)
  tessera_require(
    NAME nlohmann_json
    VERSION 3.11
    DEBIAN nlohmann-json3-dev
    URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
    SHA256 d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d
    TARGETS nlohmann_json::nlohmann_json
    SETTINGS JSON_BuildTests=OFF JSON_Install=OFF)
endif()
if(TESSERA_BUILD_TOOLS OR simulates)
  tessera_require(
    NAME fmt
    VERSION 9
    DEBIAN libfmt-dev
    URL https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz
    SHA256 1250e4cc58bf06ee631567523f48848dc4596133e163f02615c97f78bab6c811
    TARGETS fmt::fmt
    SETTINGS FMT_TEST=OFF FMT_DOC=OFF FMT_INSTALL=OFF)
endif()
