# tessera_naive: the naive computation that attention is compared with. Both bench/ and tools/ include this file.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
add_library(tessera_naive STATIC "${CMAKE_CURRENT_LIST_DIR}/naive.cpp")
# The compiler may reorder sums, as it must to vectorise them: anything less would make the comparison unfair.
target_compile_options(tessera_naive PRIVATE -O3 -ffast-math -fno-sanitize=all)
target_link_libraries(
  tessera_naive
  PUBLIC tessera_private
  PRIVATE tessera_reference Threads::Threads tessera_warnings)
