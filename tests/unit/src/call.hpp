#pragma once
// A valid call to spoil: every operand in device memory, outputs filled with a pattern that must
// survive a refusal.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::testing {

// What must be told apart: 2 × 4 × 5 queries, 2 × 2 × 7 keys, head dimensions 16 and 8.
inline constexpr Extents kQuery{.batch = 2, .head = 4, .seq = 5, .dim = 16};
inline constexpr Extents kKey{.batch = 2, .head = 2, .seq = 7, .dim = 16};
inline constexpr Extents kValue{.batch = 2, .head = 2, .seq = 7, .dim = 8};
inline constexpr Extents kOut{.batch = 2, .head = 4, .seq = 5, .dim = 8};

class Call {
 public:
  Args args{};
  Options options{};
  Operation operation = Operation::forward;

  static Call dense();       // query, key, value, out, lse
  static Call gradients();   // everything, for backward: every gradient, out and lse kept
  static Call everything();  // and every option that goes with them, dropout excepted
  static Call
  packed();  // three segments of 2, 0, 3 queries and 3, 1, 2 keys, int64 and int32 prefix sums

  // Device memory that lives as long as the call, filled with small numbers, or with the pattern.
  void* inputs(std::size_t bytes);
  void* outputs(std::size_t bytes);
  template <class T>
  ConstVector vector(DType dtype, const std::vector<T>& values) {
    return {put(values.data(), values.size() * sizeof(T)), dtype,
            static_cast<std::int64_t>(values.size())};
  }

  void run() const;
  Problem problem() const { return describe(args, options, operation); }
  std::vector<float> out() const;  // out's buffer, as far as it was allocated
  bool outputs_are_untouched() const;

 private:
  void* put(const void* data, std::size_t bytes);
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
};

// The text and the argument of the exception that `work` throws; empty if none.
struct Thrown {
  enum class Kind { Nothing, InvalidArgument, Unsupported, DeviceError };
  Kind kind = Kind::Nothing;
  std::string text{};
  std::string argument{};
};
template <class Work>
Thrown thrown_by(Work&& work) {
  using Kind = Thrown::Kind;
  try {
    std::forward<Work>(work)();
  } catch (const InvalidArgument& error) {
    return {Kind::InvalidArgument, error.what(), error.argument()};
  } catch (const Unsupported& error) {
    return {Kind::Unsupported, error.what(), {}};
  } catch (const DeviceError& error) {
    return {Kind::DeviceError, error.what(), {}};
  }
  return {};
}

// Does `text` match `pattern`, in which * stands for anything?
bool matches(std::string_view text, std::string_view pattern);

}  // namespace tessera::testing
