# Generated headers, in ${TESSERA_GENERATED_DIR}:
#   tessera_head_dims.hpp     TESSERA_HEAD_DIMS: the list, its maximum, and a macro that applies another to each entry
#   tessera_build_config.hpp  what build_info() tells: backend, compiler, build type, head dimensions, commit
# The commit is looked up at every build, in a header of its own, so that committing recompiles one file.
set(TESSERA_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

list(JOIN TESSERA_HEAD_DIMS ";" TESSERA_HEAD_DIMS_TEXT)
list(TRANSFORM TESSERA_HEAD_DIMS REPLACE "(.+)" "apply(\\1)" OUTPUT_VARIABLE TESSERA_HEAD_DIMS_EACH)
list(JOIN TESSERA_HEAD_DIMS_EACH " " TESSERA_HEAD_DIMS_EACH)
if(CMAKE_BUILD_TYPE)
  set(TESSERA_BUILD_TYPE_TEXT "${CMAKE_BUILD_TYPE}")
else()
  set(TESSERA_BUILD_TYPE_TEXT "none")
endif()
if(TESSERA_SANITIZE)
  string(APPEND TESSERA_BUILD_TYPE_TEXT " (${TESSERA_SANITIZE} sanitizer)")
endif()
configure_file(cmake/tessera_head_dims.hpp.in "${TESSERA_GENERATED_DIR}/tessera_head_dims.hpp" @ONLY)
configure_file(cmake/tessera_build_config.hpp.in "${TESSERA_GENERATED_DIR}/tessera_build_config.hpp" @ONLY)

set(write_commit
    ${CMAKE_COMMAND} "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DHEADER=${TESSERA_GENERATED_DIR}/tessera_build_commit.hpp" -P
    "${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake")
execute_process(COMMAND ${write_commit}) # so that static analysis finds it before the first build
add_custom_target(
  tessera_commit
  COMMAND ${write_commit}
  BYPRODUCTS "${TESSERA_GENERATED_DIR}/tessera_build_commit.hpp"
  COMMENT "Looking up the commit"
  VERBATIM)
