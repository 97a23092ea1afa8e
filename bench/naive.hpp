#pragma once
/// Attention as one writes it down first: the scores of a head are a matrix in memory, then
/// softmax, then a product with V. What the tiled computation is compared with. It is honest: the
/// loops are vectorised by the compiler for the machine's own instruction set, keys that the mask
/// hides are skipped, and heads are spread over threads.

#include <tessera/args.hpp>
#include <tessera/options.hpp>

namespace tessera::bench {

/// Computes `args.out` (and `args.lse`, if given) on the host with `threads` threads, in float32,
/// rounded to the type of out. Every pointer is host memory; the arguments are taken to be valid.
/// Masks, scale and grouped heads are computed; Unsupported is thrown for whatever else touches a
/// score, and for packed input.
///
/// Scratch memory: seq_q·seq_k scores a thread, and float32 copies of one head's tensors.
void naive_forward(const Args& args, const Options& options, int threads);

}  // namespace tessera::bench
