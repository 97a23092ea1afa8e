#pragma once
/// The FMA peak of the processor: fp32 multiply-adds a second that all threads reach together when
/// they do nothing else.

#include <string_view>

namespace tessera::bench {

/// Is there a measurement for this instruction set, named as DeviceInfo::isa names it? Not for
/// GPUs.
bool has_peak(std::string_view isa) noexcept;

/// flop/s of `threads` threads at once in instruction set `isa` (has_peak must hold), a
/// multiply-add counted as two: the median of many slices of a millisecond. Takes about 50 ms.
/// Where the instruction set has no multiply-add, it is the rate of a multiplication followed by an
/// addition. Throws std::runtime_error if the calling thread is bound to fewer processors than
/// `threads`.
///
/// It belongs into every round of a measurement that is to be a fraction of it: the clock moves
/// with heat and neighbours.
double measure_peak(std::string_view isa, int threads);

}  // namespace tessera::bench
