# BACKEND=hip: finds a clang that compiles for AMD's devices. Neither ROCm nor a device is needed: kernels include nothing
# of it, and the library opens the HIP runtime when it is first used.
#
# TESSERA_HIP_TARGETS says for which devices: gfx90a;gfx942. Each kernel becomes a code object a target, which the library
# carries.
if(NOT BACKEND STREQUAL "hip")
  return()
endif()

# --- For which devices -------------------------------------------------------------------------------------------
set(known gfx90a gfx942 gfx950 gfx1100 gfx1201) # backends/hip/target.hpp has them, too
set(TESSERA_HIP_TARGETS "${known}" CACHE STRING "AMD devices that kernels are compiled for")
set(before "")
foreach(target IN LISTS TESSERA_HIP_TARGETS)
  if(NOT target IN_LIST known)
    list(JOIN known ", " allowed)
    message(FATAL_ERROR "TESSERA_HIP_TARGETS is '${TESSERA_HIP_TARGETS}': ${target} must be one of: ${allowed}")
  elseif(target IN_LIST before)
    message(FATAL_ERROR "TESSERA_HIP_TARGETS is '${TESSERA_HIP_TARGETS}': ${target} is there twice")
  endif()
  list(APPEND before "${target}")
endforeach()
if(NOT before)
  message(FATAL_ERROR "TESSERA_HIP_TARGETS is empty; it needs at least one target")
endif()

# --- The compiler ------------------------------------------------------------------------------------------------
# The distribution's, else ROCm's: amdclang++, or what its hipcc calls.
find_program(TESSERA_HIP_COMPILER NAMES clang++-22 clang++-19 amdclang++ HINTS ENV ROCM_PATH PATHS /opt/rocm
             PATH_SUFFIXES bin llvm/bin DOC "Compiler of AMD device code: a clang with its lld")
if(NOT TESSERA_HIP_COMPILER)
  find_program(TESSERA_HIPCC hipcc)
  mark_as_advanced(TESSERA_HIPCC)
  if(TESSERA_HIPCC)
    get_filename_component(folder "${TESSERA_HIPCC}" REALPATH)
    get_filename_component(folder "${folder}" DIRECTORY)
    find_program(TESSERA_HIP_COMPILER NAMES clang++ HINTS "${folder}/../llvm/bin" "${folder}/../lib/llvm/bin"
                 NO_DEFAULT_PATH)
  endif()
endif()
mark_as_advanced(TESSERA_HIP_COMPILER)
if(NOT TESSERA_HIP_COMPILER)
  message(FATAL_ERROR "BACKEND=hip needs clang 22, or 19 for all targets but gfx950, or ROCm's, and there is none. Do one of these:\n"
                      "  - run ci/setup hip, or install clang-22, lld-22 and llvm-22\n"
                      "  - give -DTESSERA_HIP_COMPILER=the path of a clang++ that has AMD's targets and its lld")
endif()

# The kernels' arithmetic counts on NaN and infinity. Runtimes before ROCm 6.3 do not know code objects of version 6, which
# clang 22 would write. Without a cuid, which would be the path's, the same source is the same code object.
set(TESSERA_HIP_FLAGS -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 -std=c++20
    -ffp-contract=off -fno-math-errno -fuse-cuid=none -mcode-object-version=5 -Wall -Wextra
    $<$<BOOL:${TESSERA_WARNINGS_AS_ERRORS}>:-Werror> "-I${PROJECT_SOURCE_DIR}")

# Does it compile and link for all of them? Asked once a compiler and list.
function(tessera_hip_try)
  set(asked "${TESSERA_HIP_COMPILER}|${TESSERA_HIP_TARGETS}")
  if(asked STREQUAL TESSERA_HIP_TRIED)
    return()
  endif()
  set(trial "${PROJECT_BINARY_DIR}/CMakeFiles/tessera_hip_trial")
  file(WRITE "${trial}.hip" "__attribute__((global)) void tessera_trial(int* out) { *out = 1; }\n")
  string(GENEX_STRIP "${TESSERA_HIP_FLAGS}" flags)
  foreach(target IN LISTS TESSERA_HIP_TARGETS)
    execute_process(
      COMMAND "${TESSERA_HIP_COMPILER}" ${flags} --offload-arch=${target} -c "${trial}.hip" -o "${trial}.${target}.o"
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "TESSERA_HIP_COMPILER is '${TESSERA_HIP_COMPILER}', which cannot compile for ${target}. It "
                          "needs the lld of its version beside it; clang 22 knows every target, clang 19 all but gfx950 "
                          "(TESSERA_HIP_TARGETS chooses). It says:\n${output}${result}")
    endif()
  endforeach()
  set(TESSERA_HIP_TRIED "${asked}" CACHE INTERNAL "Compiler and targets that work together")
endfunction()
tessera_hip_try()

execute_process(COMMAND "${TESSERA_HIP_COMPILER}" -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
set(TESSERA_HIP_TOOLKIT "clang ${version}")
message(STATUS "HIP: ${TESSERA_HIP_TOOLKIT} (${TESSERA_HIP_COMPILER}) for ${TESSERA_HIP_TARGETS}")

# What reads code objects: the compiler's own.
get_filename_component(folder "${TESSERA_HIP_COMPILER}" REALPATH)
get_filename_component(folder "${folder}" DIRECTORY)
foreach(tool IN ITEMS readelf objdump)
  string(TOUPPER "TESSERA_HIP_${tool}" variable)
  find_program(${variable} NAMES llvm-${tool} HINTS "${folder}" NO_DEFAULT_PATH)
  find_program(${variable} NAMES llvm-${tool}-22 llvm-${tool}-19 llvm-${tool})
  mark_as_advanced(${variable})
endforeach()

# --- How kernels are compiled ------------------------------------------------------------------------------------

# tessera_hip_compile(SOURCE TARGET OBJECT): the rule that makes a code object. In this mode clang writes no list of what it
# read, and ccache would not restore one: the preprocessor writes it.
function(tessera_hip_compile source target object)
  set(launcher "")
  if(TESSERA_CCACHE AND TESSERA_CCACHE_PROGRAM)
    set(launcher "${TESSERA_CCACHE_PROGRAM}")
  endif()
  set(compile "${TESSERA_HIP_COMPILER}" ${TESSERA_HIP_FLAGS} --offload-arch=${target})
  set(list -Xclang -dependency-file -Xclang "${object}.d" -Xclang -MT -Xclang "${object}")
  file(RELATIVE_PATH name "${PROJECT_BINARY_DIR}" "${object}")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND ${launcher} ${compile} -c "${source}" -o "${object}"
    COMMAND ${compile} -E ${list} "${source}" -o /dev/null
    DEPENDS "${source}" "${TESSERA_HIP_COMPILER}"
    DEPFILE "${object}.d"
    COMMENT "Building HIP code object ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# tessera_hip_family(FAMILY): the kernels in backends/hip/FAMILY. If instances.cmake is there, it sets `instances`, a list of
# "name|TEMPLATE ARGUMENTS" or "name|TEMPLATE ARGUMENTS|REGEX" (it may look at TESSERA_HEAD_DIMS, and ${folder} is where it
# is); instance.hip.in beside it becomes FAMILY/name.hip with @NAME@ and @ARGUMENTS@ replaced, compiled for each target, or
# for those that match REGEX. Its kernel must be tessera_NAME. The family's .cpp, which choose among them, are host code like
# any other. Appends TESSERA_HIP_HAS_FAMILY=1 or 0 to `has`, 0 where there is no launch.cpp, and "name target object" each to
# `code_objects`.
function(tessera_hip_family family)
  set(folder "${PROJECT_SOURCE_DIR}/backends/hip/${family}")
  file(GLOB host CONFIGURE_DEPENDS "${folder}/*.cpp")
  file(GLOB list CONFIGURE_DEPENDS "${folder}/instances.cmake")
  string(TOUPPER "TESSERA_HIP_HAS_${family}" definition)
  if(NOT "${folder}/launch.cpp" IN_LIST host OR NOT list)
    set(has ${has} ${definition}=0 PARENT_SCOPE)
    return()
  endif()
  set(has ${has} ${definition}=1 PARENT_SCOPE)
  target_sources(tessera PRIVATE ${host})

  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}" "${folder}/instance.hip.in")
  set(instances "")
  include("${list}")
  set(names "")
  foreach(instance IN LISTS instances)
    if(NOT instance MATCHES "^([A-Za-z0-9_]+)[|]([^|]+)([|](.+))?$")
      message(FATAL_ERROR "${list}: '${instance}' must be name|TEMPLATE ARGUMENTS or name|TEMPLATE ARGUMENTS|REGEX")
    endif()
    set(NAME "${CMAKE_MATCH_1}")
    set(ARGUMENTS "${CMAKE_MATCH_2}")
    set(regex "${CMAKE_MATCH_4}")
    if(NAME IN_LIST names)
      message(FATAL_ERROR "${list}: ${NAME} is there twice")
    endif()
    list(APPEND names "${NAME}")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${family}/${NAME}.hip")
    configure_file("${folder}/instance.hip.in" "${source}" @ONLY)
    foreach(target IN LISTS TESSERA_HIP_TARGETS)
      if(regex AND NOT target MATCHES "${regex}")
        continue()
      endif()
      set(object "${CMAKE_CURRENT_BINARY_DIR}/${family}/${NAME}.${target}.hsaco")
      tessera_hip_compile("${source}" ${target} "${object}")
      list(APPEND code_objects "${NAME} ${target} ${object}")
    endforeach()
  endforeach()
  set(code_objects "${code_objects}" PARENT_SCOPE)
endfunction()

# tessera_hip_embed(CODE_OBJECTS): puts them into libtessera. TESSERA_HIP_CODE_OBJECTS, a property of tessera, names the file
# that lists them.
function(tessera_hip_embed code_objects)
  list(SORT code_objects) # by name and target, as backends/hip/code_objects.hpp has it: a blank is less than any letter
  list(JOIN code_objects "\n" lines)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/code_objects.txt")
  file(GENERATE OUTPUT "${list}" CONTENT "${lines}\n")
  list(TRANSFORM code_objects REPLACE "^[^ ]+ [^ ]+ " "" OUTPUT_VARIABLE objects)
  set(table "${CMAKE_CURRENT_BINARY_DIR}/code_object_table.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_code_objects.cmake")
  add_custom_command(
    OUTPUT "${table}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${list}" "-DTABLE=${table}" -P "${script}"
    DEPENDS ${objects} "${list}" "${script}"
    COMMENT "Listing HIP code objects"
    VERBATIM)
  add_library(tessera_hip_code_objects OBJECT "${table}")
  target_link_libraries(tessera_hip_code_objects PRIVATE tessera_private tessera_warnings)
  target_sources(tessera PRIVATE $<TARGET_OBJECTS:tessera_hip_code_objects>)
  set_target_properties(tessera PROPERTIES TESSERA_HIP_CODE_OBJECTS "${list}")
endfunction()
