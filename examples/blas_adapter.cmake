# blas_adapter: the example of <tessera/adapter.h>, where a BLAS with cblas_sgemm is found. -DBLAS_LIBRARIES=FILE names
# one, BLA_VENDOR (CMake's own) chooses.
include_guard(GLOBAL)
include(CheckFunctionExists)
find_package(Threads QUIET)
find_package(BLAS QUIET)
if(BLAS_LIBRARIES)
  set(CMAKE_REQUIRED_LIBRARIES ${BLAS_LIBRARIES} Threads::Threads m)
  check_function_exists(cblas_sgemm TESSERA_BLAS_HAS_CBLAS)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(TESSERA_BLAS_HAS_CBLAS)
  add_library(blas_adapter MODULE "${CMAKE_CURRENT_LIST_DIR}/blas_adapter.c")
  set_target_properties(blas_adapter PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
  # The compiler may reorder sums, as it must to vectorise them.
  target_compile_options(blas_adapter PRIVATE -O3 -ffast-math)
  # The headers, not the library.
  target_include_directories(blas_adapter
                             PRIVATE $<TARGET_PROPERTY:Tessera::tessera,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(blas_adapter PRIVATE ${BLAS_LIBRARIES} Threads::Threads m)
endif()
