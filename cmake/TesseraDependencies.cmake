# Third-party libraries: the installed one first, else a pinned download.
include(TesseraKokkos)

if(TESSERA_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(TESSERA_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
if(TESSERA_BUILD_TOOLS OR TESSERA_BUILD_TESTS OR TESSERA_BUILD_BENCH)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(fmt REQUIRED)
endif()
