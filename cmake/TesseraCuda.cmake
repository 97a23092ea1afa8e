# BACKEND=cuda: finds nvcc and enables the language. nvcc is CMAKE_CUDA_COMPILER or CUDACXX, else on the PATH, else in
# the virtual environment that `ci/setup cuda` fills.
#
# CMAKE_CUDA_ARCHITECTURES says for which devices, in CMake's words: 80-real;90a-real;90-virtual. Kernels made of 9.0's own
# instructions are compiled for 90a alone, if it is there (TESSERA_CUDA_HOPPER_ARCHITECTURES), all others for the rest
# (TESSERA_CUDA_PORTABLE_ARCHITECTURES).
if(NOT BACKEND STREQUAL "cuda")
  return()
endif()

# --- The compiler ------------------------------------------------------------------------------------------------
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TESSERA_CUDA_NVCC nvcc DOC "CUDA compiler")
  mark_as_advanced(TESSERA_CUDA_NVCC)
  if(NOT TESSERA_CUDA_NVCC)
    execute_process(
      COMMAND bash -c "source '${PROJECT_SOURCE_DIR}/ci/common.sh' && echo \"$venv\""
      OUTPUT_VARIABLE environment
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(GLOB found "${environment}/lib/python3*/site-packages/nvidia/cu13/bin/nvcc")
    if(found)
      list(GET found 0 found)
      set(TESSERA_CUDA_NVCC "${found}" CACHE FILEPATH "CUDA compiler" FORCE)
    endif()
  endif()
  if(NOT TESSERA_CUDA_NVCC)
    message(FATAL_ERROR "BACKEND=cuda needs CUDA 13's nvcc, and there is none. Do one of these:\n"
                        "  - install the CUDA toolkit, and have nvcc on the PATH or give -DCMAKE_CUDA_COMPILER=its path\n"
                        "  - run ci/setup cuda, which installs the compiler without the toolkit (ci/requirements-cuda.txt)")
  endif()
  set(CMAKE_CUDA_COMPILER "${TESSERA_CUDA_NVCC}")
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()

# --- For which devices -------------------------------------------------------------------------------------------
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(architectures "80-real;90a-real;90-virtual")
  if(DEFINED ENV{CUDAARCHS})
    set(architectures "$ENV{CUDAARCHS}")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "Devices that kernels are compiled for" FORCE)
endif()
set(TESSERA_CUDA_HOPPER_ARCHITECTURES "")
set(TESSERA_CUDA_PORTABLE_ARCHITECTURES "")
foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
  if(NOT architecture MATCHES "^([1-9][0-9]+)(a?)(-real|-virtual)?$" OR CMAKE_MATCH_1 LESS 80)
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is '${CMAKE_CUDA_ARCHITECTURES}': ${architecture} must be a number from "
                        "80 on, with -real or -virtual behind it or nothing, or 90a-real")
  endif()
  if(NOT CMAKE_MATCH_2)
    list(APPEND TESSERA_CUDA_PORTABLE_ARCHITECTURES "${architecture}")
  elseif(architecture MATCHES "^90a(-real)?$")
    set(TESSERA_CUDA_HOPPER_ARCHITECTURES 90a-real)
  else()
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is '${CMAKE_CUDA_ARCHITECTURES}': of what one architecture alone can do, "
                        "there are kernels for 90a-real, not for ${architecture}")
  endif()
endforeach()
# 90a's cards run the other kernels, too: by code for 90, or PTX from before.
if(TESSERA_CUDA_HOPPER_ARCHITECTURES AND NOT TESSERA_CUDA_PORTABLE_ARCHITECTURES MATCHES "(^|;)(90|8[0-9](-virtual|;|$))")
  list(APPEND TESSERA_CUDA_PORTABLE_ARCHITECTURES 90-real)
endif()

# --- How kernels are compiled ------------------------------------------------------------------------------------
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}: Tessera needs 13.0 or newer")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc knows C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY None) # linked by name: CUDA::cudart_static
if(TESSERA_CCACHE AND TESSERA_CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${TESSERA_CCACHE_PROGRAM}")
endif()
find_package(CUDAToolkit 13.0 REQUIRED) # the runtime that came with nvcc
message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}) for ${CMAKE_CUDA_ARCHITECTURES}")

find_package(Python3 REQUIRED COMPONENTS Interpreter) # keeps what ptxas says, and refuses some of it

# tessera_cuda_instances(FAMILY SOURCES): a source for each instance of a family's kernels, in the build folder. If
# backends/cuda/FAMILY/instances.cmake is there, it sets `instances`, a list of "name|TEMPLATE ARGUMENTS" (it may look at
# TESSERA_HEAD_DIMS, and ${folder} is where it is), and instance.cu.in beside it becomes FAMILY/name.cu with @NAME@ and
# @ARGUMENTS@ replaced.
function(tessera_cuda_instances family result)
  set(folder "${PROJECT_SOURCE_DIR}/backends/cuda/${family}")
  set(sources "")
  file(GLOB list CONFIGURE_DEPENDS "${folder}/instances.cmake")
  if(list)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}" "${folder}/instance.cu.in")
    set(instances "")
    include("${list}")
    foreach(instance IN LISTS instances)
      if(NOT instance MATCHES "^([A-Za-z0-9_]+)[|](.+)$")
        message(FATAL_ERROR "${list}: '${instance}' must be name|TEMPLATE ARGUMENTS")
      endif()
      set(NAME "${CMAKE_MATCH_1}")
      set(ARGUMENTS "${CMAKE_MATCH_2}")
      set(source "${CMAKE_CURRENT_BINARY_DIR}/${family}/${NAME}.cu")
      if(source IN_LIST sources)
        message(FATAL_ERROR "${list}: ${NAME} is there twice")
      endif()
      configure_file("${folder}/instance.cu.in" "${source}" @ONLY)
      list(APPEND sources "${source}")
    endforeach()
  endif()
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# tessera_cuda_family(FAMILY ARCHITECTURES): the kernels in backends/cuda/FAMILY, as objects of libtessera; its .cpp, which
# choose among them, are host code like any other. Appends TESSERA_CUDA_HAS_FAMILY=1 or 0 to `has`: it is 0 where there are
# no sources or none of the architectures is wanted.
function(tessera_cuda_family family architectures)
  set(folder "${PROJECT_SOURCE_DIR}/backends/cuda/${family}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cu")
  file(GLOB host CONFIGURE_DEPENDS "${folder}/*.cpp")
  tessera_cuda_instances(${family} generated)
  list(APPEND sources ${generated})
  string(TOUPPER "TESSERA_CUDA_HAS_${family}" definition)
  if(NOT sources OR NOT architectures)
    set(has ${has} ${definition}=0 PARENT_SCOPE)
    return()
  endif()
  set(has ${has} ${definition}=1 PARENT_SCOPE)

  set(target tessera_cuda_${family})
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PRIVATE tessera_private)
  list(JOIN architectures "," targets) # a semicolon would part the definition
  target_compile_definitions(${target} PRIVATE "TESSERA_CUDA_TARGETS=\"${targets}\"")
  # Kernels are optimised in every build type. What ptxas says of registers and spills stays in the build's log.
  # The host compiler does not know nvcc's #pragma unroll.
  target_compile_options(${target} PRIVATE -O3 --expt-relaxed-constexpr -Xptxas=-v,-warn-spills -Xcompiler=-Wall,-Wno-unknown-pragmas)
  set_target_properties(
    ${target} PROPERTIES RULE_LAUNCH_COMPILE "\"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/cmake/ptxas_gate.py\"")
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}" POSITION_INDEPENDENT_CODE ON)
  target_sources(tessera PRIVATE ${host} $<TARGET_OBJECTS:${target}>)
endfunction()
