#pragma once
// The few words that differ between the compilers that core/kernel is built by: any host compiler,
// nvcc, HIP clang.

// A function of core/kernel: callable on host and device, always inlined, so that an object
// compiled for one instruction set leaves no copy of it for another object's callers to be linked
// with.
#if defined(__CUDACC__)
#define TESSERA_FN __host__ __device__ __forceinline__
#elif defined(__HIP__)  // the compiler alone, without a vendor's header
#define TESSERA_FN __attribute__((host, device)) inline __attribute__((always_inline))
#else
#define TESSERA_FN inline __attribute__((always_inline))
#endif

// Unrolls the loop that follows, whose trip count is a small constant.
#if defined(__CUDACC__) || defined(__clang__)
#define TESSERA_UNROLL _Pragma("unroll")
#else
#define TESSERA_UNROLL _Pragma("GCC unroll 32")
#endif

// A function of C's mathematics, without the C++ header's inline wrappers (which would be such
// copies).
#if defined(__CUDACC__)
#include <math.h>
#define TESSERA_MATH(function) ::function
#else
#define TESSERA_MATH(function) __builtin_##function
#endif
