# The kernels that launch.cpp can reach: name|its kernel.
set(instances "")
foreach(element Fp16 Bf16)
  string(TOLOWER ${element} type)
  list(APPEND instances "decode_${type}_merge|MergeKernel<${element}>")
  foreach(dim 64 128 256)
    if(dim IN_LIST TESSERA_HEAD_DIMS)
      list(APPEND instances "decode_${type}_${dim}|DecodeKernel<${element}, Shape${dim}, false>"
           "decode_${type}_${dim}_general|DecodeKernel<${element}, Shape${dim}, true>")
    endif()
  endforeach()
endforeach()
