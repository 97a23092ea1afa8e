# The kernels that launch.cu can reach: name|template arguments.
set(instances "")
foreach(shape 64 96 128 192x128 192 256)
  string(REGEX REPLACE "x.*" "" dim ${shape})
  if(NOT dim IN_LIST TESSERA_HEAD_DIMS)
    continue()
  endif()
  foreach(element Fp16 Bf16)
    list(APPEND instances "${element}_${shape}|${element}, Shape${shape}, false"
         "${element}_${shape}_general|${element}, General${shape}, true")
    if(shape STREQUAL "128")
      list(APPEND instances "${element}_${shape}_short|${element}, Short${shape}, false")
    endif()
  endforeach()
endforeach()

# Their wgmma instructions, one function each.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${folder}/gen_wgmma.py" "${TESSERA_GENERATED_DIR}/wgmma_shapes.cuh"
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/gen_wgmma.py")
