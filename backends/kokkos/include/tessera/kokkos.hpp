#pragma once
/// For programs that have Kokkos themselves: a `Kokkos::View` becomes a tensor, an execution space
/// instance a stream. Installed with the Kokkos backend. The only public header that needs another
/// library's: link Kokkos::kokkos.
///
///     Kokkos::View<float****> q("q", batch, head, seq, dim);
///     tessera::forward({.query = tessera::as_tensor(q), …}, {}, tessera::as_stream(space));
///
/// Whose Kokkos it is: a program that uses Kokkos itself initialises it before its first call of
/// Tessera, and finalises it after the last; Tessera then does neither. If nobody has initialised
/// Kokkos, the first call that plans, computes, copies, waits or asks for a device does, with the
/// KOKKOS_ environment variables' settings and without warnings, and Kokkos is finalised when the
/// process exits, or not at all if somebody else did. After Kokkos::finalize, such calls throw
/// DeviceError; buffers may still be destroyed. Calls from several threads are serialised; Tessera
/// never calls Kokkos outside of its functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/error.hpp>
#include <tessera/stream.hpp>
#include <tessera/tensor.hpp>

namespace tessera {
namespace detail {

// Kokkos' half types are float where the machine has none of its own.
template <class T>
inline constexpr bool kIsFp16 = std::is_same_v<T, Kokkos::Experimental::half_t> && sizeof(T) == 2;
template <class T>
inline constexpr bool kIsBf16 = std::is_same_v<T, Kokkos::Experimental::bhalf_t> && sizeof(T) == 2;

template <class T>
constexpr DType dtype_of() {
  static_assert(!std::is_same_v<T, std::uint16_t>,
                "16 bits may be fp16 or bf16: give the DType as second argument");
  static_assert(std::is_same_v<T, float> || kIsFp16<T> || kIsBf16<T> ||
                    std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t>,
                "the view's elements must be float, half_t, bhalf_t, std::uint8_t (boolean masks), "
                "or std::uint16_t");
  return kIsFp16<T>       ? DType::fp16
         : kIsBf16<T>     ? DType::bf16
         : sizeof(T) == 1 ? DType::uint8
                          : DType::fp32;
}

template <class View>
using TensorOf =
    std::conditional_t<std::is_const_v<typename View::value_type>, ConstTensor, Tensor>;

template <class View>
void check_memory() {
  static_assert(Kokkos::is_view_v<View>, "as_tensor and as_vector take Kokkos::Views");
  static_assert(Kokkos::SpaceAccessibility<Kokkos::DefaultExecutionSpace,
                                           typename View::memory_space>::accessible,
                "the view's memory must be accessible from Kokkos::DefaultExecutionSpace, where "
                "Tessera computes");
}

// Throws InvalidArgument if the last axis is strided.
template <class View>
TensorOf<View> to_tensor(const View& view, DType dtype) {
  check_memory<View>();
  static_assert(
      View::rank() == 3 || View::rank() == 4,
      "the view must be [batch, head, seq, dim], or for a log-sum-exp [batch, head, seq]");
  static_assert(!std::is_same_v<typename View::array_layout, Kokkos::LayoutLeft>,
                "LayoutLeft strides the last axis: use LayoutRight or LayoutStride");
  const auto extent = [&](std::size_t axis) {
    return static_cast<std::int64_t>(view.extent(axis));
  };
  const auto stride = [&](std::size_t axis) {
    return static_cast<std::int64_t>(view.stride(axis));
  };
  TensorOf<View> tensor;
  tensor.data = view.data();
  tensor.dtype = dtype;
  tensor.extent = {.batch = extent(0), .head = extent(1), .seq = extent(2), .dim = 1};
  tensor.stride = {.batch = stride(0), .head = stride(1), .seq = stride(2), .dim = 1};
  if constexpr (View::rank() == 4) {
    tensor.extent.dim = extent(3);
    if (extent(3) > 1 && stride(3) != 1) {
      throw InvalidArgument("view.stride(3)", "is " + std::to_string(stride(3)) +
                                                  "; must be 1: elements of a row are neighbours");
    }
  }
  return tensor;
}

}  // namespace detail

/// The view [batch, head, seq, dim], or [batch, head, seq] as a log-sum-exp, as a Tensor; a view of
/// const elements as a ConstTensor. Elements: float, std::uint8_t (boolean masks), and Kokkos'
/// half_t and bhalf_t where they are 16 bits (elsewhere they are float, and so is the tensor).
/// LayoutRight or LayoutStride. The view must outlive the tensor's uses. Throws InvalidArgument if
/// the dim axis is strided.
template <class View>
detail::TensorOf<View> as_tensor(const View& view) {
  return detail::to_tensor(view, detail::dtype_of<typename View::non_const_value_type>());
}

/// The same for a view of std::uint16_t that holds the bits of `dtype`: fp16 or bf16, else
/// InvalidArgument.
template <class View>
detail::TensorOf<View> as_tensor(const View& view, DType dtype) {
  static_assert(std::is_same_v<typename View::non_const_value_type, std::uint16_t>,
                "only a view of std::uint16_t needs a DType");
  if (dtype != DType::fp16 && dtype != DType::bf16) {
    throw InvalidArgument("dtype",
                          "is " + std::string(to_string(dtype)) + "; must be fp16 or bf16");
  }
  return detail::to_tensor(view, dtype);
}

/// A contiguous view of std::int32_t or std::int64_t as a vector of indices: cu_seqlens_q, key_end,
/// … Throws InvalidArgument if it is strided.
template <class View>
ConstVector as_vector(const View& view) {
  detail::check_memory<View>();
  using T = typename View::non_const_value_type;
  static_assert(View::rank() == 1, "the view must have rank 1");
  static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>,
                "the view's elements must be std::int32_t or std::int64_t");
  if (view.extent(0) > 1 && view.stride(0) != 1) {
    throw InvalidArgument("view.stride(0)", "is " + std::to_string(view.stride(0)) + "; must be 1");
  }
  return {.data = view.data(),
          .dtype = std::is_same_v<T, std::int32_t> ? DType::int32 : DType::int64,
          .size = static_cast<std::int64_t>(view.extent(0))};
}

/// Work goes to this instance of Kokkos::DefaultExecutionSpace, which must outlive the stream's
/// uses.
template <class ExecutionSpace>
Stream as_stream(const ExecutionSpace& space) noexcept {
  static_assert(std::is_same_v<ExecutionSpace, Kokkos::DefaultExecutionSpace>,
                "Tessera computes in Kokkos::DefaultExecutionSpace: give an instance of it");
  // Only read: a Stream holds what C libraries hand out, pointers to non-const.
  return Stream::from_native(const_cast<ExecutionSpace*>(&space));
}
template <class ExecutionSpace>
  requires(!std::is_reference_v<ExecutionSpace> && !std::is_const_v<ExecutionSpace>)
Stream as_stream(ExecutionSpace&& space) = delete;  // a temporary would not outlive the stream

}  // namespace tessera
