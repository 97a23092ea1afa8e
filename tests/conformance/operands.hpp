#pragma once
/// The memory and the arguments of a case.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>
#include <tessera/problem.hpp>

#include "reference/reference.hpp"
#include "tests/conformance/case.hpp"
#include "tests/conformance/memory.hpp"

namespace tessera::testing {

/// Operands of a case, filled from its seed. Of a backward case, out and lse are what forward gave:
/// `fill_results` or `answer` sets them. Slots of keys, values and queries that no right answer
/// depends on hold NaN: gaps between rows, keys outside [key_begin, key_end), rows from query_end
/// on, what lies behind the last segment. A test may change anything before the case runs.
class Operands {
 public:
  explicit Operands(const Case& c);

  /// All arguments, with pointers of one side. No workspace.
  Args args(Side side) const;

  void upload();
  /// Fills all outputs, gaps and guards included, with NaN on both sides.
  void poison_outputs();
  void download_outputs();
  /// Bytes of outputs' memory that do not belong to an element and were written since
  /// `poison_outputs`. Empty text: none.
  std::string damage() const;
  /// Bits of all elements of the outputs, in order.
  std::vector<std::uint8_t> result_bits() const;
  /// Outputs of the operation that are there: out and lse, or the gradients.
  std::vector<const Slot*> outputs() const;
  /// Names an input that the device changed since `upload`. Empty text: none.
  std::string changed_input();

  /// Backward: computes out and lse with the library's forward, and uploads them. Rows from
  /// query_end on hold NaN then: no gradient may depend on them. Throws what forward throws.
  void fill_results();
  /// The same with somebody else's forward, which is given its arguments.
  void fill_results(const std::function<void(const Args&)>& forward);
  /// The same from the reference's, rounded, on the host alone.
  void set_results(const reference::Forward& ref) const;

  /// Arguments of forward with the same operands.
  Args forward_args(Side side) const;

  Operation operation = Operation::forward;
  Keep keep = Keep::both;  ///< backward: which of out and lse are given
  Options options{};
  Slot query{}, key{}, value{}, out{}, lse{};
  Slot dout{}, dlse{}, dq{}, dk{}, dv{}, dbias{}, dsink{};
  Slot alibi_slopes{}, bias{}, boolean_mask{}, sinks{};
  Numbers key_begin{}, key_end{}, query_end{}, cu_seqlens_q{}, cu_seqlens_k{};
  Numbers seed_and_offset{};  ///< two 64-bit numbers, or absent
  Args scalars{};             ///< scale, softcap, seed, offset

 private:
  std::vector<Block*> inputs() const;

  void hide_results() const;

  std::vector<std::int32_t> query_ends_{};
};

}  // namespace tessera::testing
