# cmake -DSOURCE=DIR -DHEADER=FILE -P write_commit.cmake: writes HEADER with the commit of the checkout SOURCE; a change
# that is not committed shows as "-dirty". Outside a checkout, or inside another project's, it is "unknown".
cmake_minimum_required(VERSION 3.22)
set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE}/.git")
  execute_process(
    COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
    RESULT_VARIABLE failed OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit "${described}")
  endif()
endif()
set(text "#pragma once\n\n#define TESSERA_BUILD_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS "${HEADER}")
  file(READ "${HEADER}" old)
endif()
if(NOT text STREQUAL old)
  file(WRITE "${HEADER}" "${text}")
endif()
