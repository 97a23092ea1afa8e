#pragma once
/// A Plan says how a Problem is computed. Plan once, execute as often as there is data of that
/// shape.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/args.hpp>
#include <tessera/export.hpp>
#include <tessera/problem.hpp>
#include <tessera/stream.hpp>

namespace tessera {

/// Immutable and cheap to copy. Several host threads may execute one plan at once.
class TESSERA_API Plan {
 public:
  // Moving copies: there is no empty plan.
  Plan(const Plan&) noexcept = default;
  Plan& operator=(const Plan&) noexcept = default;
  ~Plan() = default;

  /// What it was made for.
  const Problem& problem() const noexcept;
  /// The kernel's name: `forward.vector.avx512`.
  std::string_view kernel() const noexcept;
  /// Bytes of scratch memory that `execute` needs. Give them in Args::workspace and it allocates
  /// nothing.
  std::size_t workspace_size() const noexcept;
  /// Parts into which the keys of a row are split; 1: not split.
  std::int64_t splits() const noexcept;
  /// round(p·2¹⁶)/2¹⁶ with ties to even: the probability with which weights are dropped in fact.
  double realised_dropout() const noexcept;
  /// For people: kernel, tile, splits, workspace and why, a line each.
  std::string describe() const;

  struct Impl;

 private:
  friend struct PlanAccess;
  explicit Plan(std::shared_ptr<const Impl> impl) noexcept;
  std::shared_ptr<const Impl> impl_;
};

/// The answer to "can you?".
struct Support {
  enum class Status : std::uint8_t { Supported, Unsupported, InvalidArgument };

  Status status = Status::Supported;
  std::string reason{};  ///< empty if supported, else what `plan` would have thrown

  explicit operator bool() const noexcept { return status == Status::Supported; }
};

/// Whether `plan` would succeed. Does not throw for any problem: Unsupported is also the answer
/// where `plan` would fail for another reason than the problem, with DeviceError (no device to ask)
/// or std::bad_alloc; the reason is that error's text.
TESSERA_API Support supports(const Problem& problem);

/// Validates the problem, picks kernel and schedule, launches nothing. Throws InvalidArgument,
/// Unsupported, or DeviceError where there is no device to ask. TESSERA_KERNEL in the environment
/// restricts the choice to kernels of that name, or with it among the name's dotted parts:
/// `generic`.
TESSERA_API Plan plan(const Problem& problem);

/// Computes the outputs of `args` on `stream`: out (and lse), or the gradients if the plan is one
/// of backward. Checks that `args` pose the plan's problem: InvalidArgument if not, with the
/// outputs untouched. DeviceError if the device fails. Strides of axes with one element may differ
/// from the plan's. Asynchronous on devices with streams; Kokkos host spaces return when done.
TESSERA_API void execute(const Plan& plan, const Args& args, Stream stream = {});

}  // namespace tessera
