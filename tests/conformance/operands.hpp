#pragma once
/// The memory and the arguments of a case.

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

#include "tests/conformance/case.hpp"
#include "tests/conformance/memory.hpp"

namespace tessera::testing {

/// Operands of a case, filled from its seed. Slots of keys, values and queries that no right answer
/// depends on hold NaN: gaps between rows, keys outside [key_begin, key_end), rows from query_end
/// on, what lies behind the last segment. A test may change anything before the case runs.
class Operands {
 public:
  explicit Operands(const Case& c);

  /// All arguments, with pointers of one side. No workspace.
  Args args(Side side) const;

  void upload();
  /// Fills out and lse, gaps and guards included, with NaN on both sides.
  void poison_outputs();
  void download_outputs();
  /// Bytes of out and lse that do not belong to an element and were written since `poison_outputs`.
  /// Empty text: none.
  std::string damage() const;
  /// Bits of all elements of out and lse, in order.
  std::vector<std::uint8_t> result_bits() const;
  /// Names an input that the device changed since `upload`. Empty text: none.
  std::string changed_input();

  Options options{};
  Slot query{}, key{}, value{}, out{}, lse{};
  Slot alibi_slopes{}, bias{}, boolean_mask{}, sinks{};
  Numbers key_begin{}, key_end{}, query_end{}, cu_seqlens_q{}, cu_seqlens_k{};
  Numbers seed_and_offset{};  ///< two 64-bit numbers, or absent
  Args scalars{};             ///< scale, softcap, seed, offset

 private:
  std::vector<Block*> inputs() const;
};

}  // namespace tessera::testing
