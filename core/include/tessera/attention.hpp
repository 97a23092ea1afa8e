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

/// What forward computes, for one to a few query rows against many keys: split over the keys, the
/// parts merged in fixed order (Dao et al. 2023, "Flash-Decoding"), the cut chosen from the shape
/// alone. K and V are read once for all query heads of a group. `key_end` gives each batch entry
/// its cache's length. Up to some ten rows a head it is the faster one; with more, forward is,
/// which reads K and V once for hundreds of rows. On the Kokkos backend's vector path its workspace
/// is about 0.1 MB a thread, however many rows there are, and where keys are cut, a row of fp32 for
/// each row and part as well: at most 13 MB in all for head dimension 128.
///
///     decode({.query = q, .key = cache_k, .value = cache_v, .out = out, .key_end = lengths},
///            {.mask = Mask::causal(Alignment::BottomRight)});
///
/// Takes every argument and option of forward and differs from it in rounding only. Throws
/// InvalidArgument, Unsupported or DeviceError.
TESSERA_API void decode(const Args& args, const Options& options = {}, Stream stream = {});

/// Gradients of a loss with respect to query, key and value (bias, sinks), given dout = ∂loss/∂out
/// and optionally dlse = ∂loss/∂lse. With P the weights and M what dropout multiplies them with,
///
///     dv = (P∘M)ᵀ dout      dS = P∘((dout·Vᵀ)∘M − rowsum(dout∘out) + dlse)
///     dq = scale · dS·K     dk = scale · dSᵀ·Q      (dS times the softcap's slope, if there is
///     one)
///
/// recomputed tile by tile from lse (Dao et al. 2022, arXiv:2205.14135). The caller chooses what of
/// forward's results to keep: out and lse; lse alone; neither. What is absent is computed again.
///
///     backward({.query = q, .key = k, .value = v, .out = out, .lse = lse, .dout = dout,
///               .dq = dq, .dk = dk, .dv = dv},
///              {.mask = Mask::causal(Alignment::BottomRight)});
///
/// Give the same options and values as to forward. Plans and executes. Rows that see no key and
/// keys that no row sees get 0. Throws InvalidArgument, Unsupported or DeviceError.
TESSERA_API void backward(const Args& args, const Options& options = {}, Stream stream = {});

}  // namespace tessera
