# The kernels that launch.cpp can reach: name|the template arguments of forward.
set(instances "")
foreach(shape 64 128 192x128 192 256)
  string(REGEX REPLACE "x.*" "" dim ${shape})
  if(dim IN_LIST TESSERA_HEAD_DIMS)
    list(APPEND instances "forward_fp32_${shape}|Shape${shape}, false" "forward_fp32_${shape}_general|Shape${shape}, true")
  endif()
endforeach()
