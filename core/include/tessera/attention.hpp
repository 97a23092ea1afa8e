#pragma once
/// Exact attention in one call.

#include <tessera/args.hpp>
#include <tessera/export.hpp>
#include <tessera/options.hpp>
#include <tessera/stream.hpp>

namespace tessera {

/// out = softmax(scale · Q Kᵀ + bias) V, tile by tile with an online softmax: the score matrix
/// never exists in memory (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022,
/// arXiv:2205.14135).
///
///     forward({.query = q, .key = k, .value = v, .out = out},
///             {.mask = Mask::causal(Alignment::BottomRight)});
///
/// Plans and executes. A row that sees no key gives 0 and lse −∞. Throws InvalidArgument,
/// Unsupported or DeviceError.
TESSERA_API void forward(const Args& args, const Options& options = {}, Stream stream = {});

}  // namespace tessera
