# One check of what compiles, for ctest:
#
#   cmake -DCOMPILER=… -DINCLUDE=… -DSOURCE=file -P check.cmake                 the file must be refused with its message
#   cmake -DCOMPILER=… -DINCLUDE=… -DHEADER=<tessera/x.hpp> -DWORK=folder -P …  the header must compile, alone and twice
#   cmake -DCOMPILER=… -DINCLUDE=… -DPAGE=README.md -DWORK=folder -P …          its blocks of C++ must compile, each alone
#
# FLAGS are further options for the compiler, separated by |: where a header's dependency is.
#
# A file to be refused begins with "// expect: REGEX", a line for each wording that compilers have, one of which must match
# their errors, and perhaps with "// standard: 17". With SOUND defined it must compile, so that it is the mistake that is refused and nothing else; files
# without an #ifdef SOUND are checked for that with C++20.
cmake_minimum_required(VERSION 3.22)

set(ENV{LC_ALL} C) # messages in English, with ASCII quotes

string(REPLACE "|" ";" FLAGS "${FLAGS}")

# No include path but the public headers': what a user's own compiler sees.
function(compile standard file out_failed out_text)
  execute_process(
    COMMAND "${COMPILER}" -std=c++${standard} -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-I${INCLUDE}" ${FLAGS}
            ${ARGN} "${file}"
    RESULT_VARIABLE failed
    ERROR_VARIABLE text
    OUTPUT_VARIABLE text)
  set(${out_failed} "${failed}" PARENT_SCOPE)
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

if(HEADER)
  string(MAKE_C_IDENTIFIER "${HEADER}" name)
  foreach(times IN ITEMS 1 2)
    string(REPEAT "#include ${HEADER}\n" ${times} includes)
    set(file "${WORK}/${name}_${times}.cpp")
    file(WRITE "${file}" "${includes}")
    compile(20 "${file}" failed text)
    if(failed)
      message(FATAL_ERROR "${HEADER}, included ${times}x and nothing else, does not compile:\n${text}")
    endif()
  endforeach()
  return()
endif()

if(PAGE)
  file(READ "${PAGE}" rest)
  get_filename_component(name "${PAGE}" NAME_WE)
  set(blocks 0)
  while(TRUE)
    string(FIND "${rest}" "\n```cpp\n" begin)
    if(begin EQUAL -1)
      break()
    endif()
    math(EXPR begin "${begin} + 8")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n```\n" end)
    string(SUBSTRING "${rest}" 0 ${end} block)
    math(EXPR blocks "${blocks} + 1")
    set(file "${WORK}/${name}_${blocks}.cpp")
    file(WRITE "${file}" "${block}\n")
    compile(20 "${file}" failed text)
    if(failed)
      message(FATAL_ERROR "block ${blocks} of ${PAGE} does not compile:\n${text}")
    endif()
  endwhile()
  if(blocks EQUAL 0)
    message(FATAL_ERROR "${PAGE} has no block of C++")
  endif()
  return()
endif()

file(READ "${SOURCE}" contents)
string(REGEX MATCHALL "// expect: [^\n]+" expected "${contents}")
list(TRANSFORM expected REPLACE "^// expect: " "")
list(JOIN expected "|" expected)
if(expected STREQUAL "")
  message(FATAL_ERROR "${SOURCE} has no line // expect: REGEX")
endif()
set(standard 20)
if(contents MATCHES "\n// standard: ([0-9]+)\n")
  set(standard "${CMAKE_MATCH_1}")
endif()

compile(20 "${SOURCE}" failed text -DSOUND)
if(failed)
  message(FATAL_ERROR "${SOURCE} does not compile where it is sound:\n${text}")
endif()
compile(${standard} "${SOURCE}" failed text)
if(NOT failed)
  message(FATAL_ERROR "${SOURCE} compiles, but must not")
endif()
if(NOT text MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE} is refused, but not with \"${expected}\":\n${text}")
endif()
