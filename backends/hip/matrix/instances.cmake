# The kernels that launch.cpp can reach: name|the template arguments of forward.
set(instances "")
foreach(element Fp16 Bf16)
  string(TOLOWER ${element} type)
  foreach(shape 64 128 192x128 192 256)
    string(REGEX REPLACE "x.*" "" dim ${shape})
    if(dim IN_LIST TESSERA_HEAD_DIMS)
      list(APPEND instances "forward_${type}_${shape}|${element}, Shape${shape}, false"
           "forward_${type}_${shape}_general|${element}, Shape${shape}, true")
    endif()
  endforeach()
endforeach()
