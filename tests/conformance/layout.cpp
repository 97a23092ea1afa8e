#include "tests/conformance/layout.hpp"

#include <algorithm>
#include <array>

namespace tessera::testing {
namespace {

enum class Axis : std::uint8_t { batch, head, seq };
using Order = std::array<Axis, 3>;  // outermost first

constexpr Order kBhsd{Axis::batch, Axis::head, Axis::seq};
constexpr Order kBshd{Axis::batch, Axis::seq, Axis::head};
constexpr Order kHsbd{Axis::head, Axis::seq, Axis::batch};
constexpr Order kSbhd{Axis::seq, Axis::batch, Axis::head};
constexpr Order kHbsd{Axis::head, Axis::batch, Axis::seq};

std::int64_t Extents::* extent_of(Axis axis) {
  return axis == Axis::batch  ? &Extents::batch
         : axis == Axis::head ? &Extents::head
                              : &Extents::seq;
}

std::int64_t Strides::* stride_of(Axis axis) {
  return axis == Axis::batch  ? &Strides::batch
         : axis == Axis::head ? &Strides::head
                              : &Strides::seq;
}

// Strides of an array in that order, with `row_gap` elements behind each row and `gap` behind each
// block of rows.
Strides strides(const Extents& extent, const Order& order, std::int64_t row_gap, std::int64_t gap) {
  Strides stride;
  std::int64_t step = extent.dim + row_gap;
  for (std::size_t i = order.size(); i-- > 0;) {
    stride.*stride_of(order[i]) = step;
    step = step * std::max<std::int64_t>(extent.*extent_of(order[i]), 1) + gap;
  }
  return stride;
}

std::int64_t span(const Extents& e, const Strides& stride, std::int64_t offset) {
  if (e.batch == 0 || e.head == 0 || e.seq == 0 || e.dim == 0) return offset;
  return offset + (e.batch - 1) * stride.batch + (e.head - 1) * stride.head +
         (e.seq - 1) * stride.seq + (e.dim - 1) * stride.dim + 1;
}

Order transposed(Role role) {
  switch (role) {
    case Role::query:
      return kBshd;
    case Role::key:
      return kHsbd;
    case Role::value:
      return kSbhd;
    case Role::out:
    case Role::dout:
      return kHbsd;
    case Role::lse:
      return kBshd;
  }
  return kBhsd;
}

}  // namespace

Placement place(const Extents& extent, Layout layout, Role role) {
  Order order = kBhsd;
  std::int64_t row_gap = 0;
  std::int64_t gap = 0;
  Placement placement;
  switch (layout) {
    case Layout::bshd:
    case Layout::fused_qkv:
      if (role != Role::lse) order = kBshd;
      break;
    case Layout::transposed:
      order = transposed(role);
      break;
    case Layout::padded:
      row_gap = role == Role::lse ? 0 : 8;
      gap = 24;
      placement.offset = 32;
      break;
    case Layout::unaligned:
      order = kBshd;
      row_gap = role == Role::lse ? 1 : 3;
      gap = 5;
      placement.offset = 1;
      break;
    default:
      break;
  }
  placement.stride = strides(extent, order, row_gap, gap);
  if (role == Role::key || role == Role::value || role == Role::dout) {
    if (layout == Layout::repeated_head) placement.stride.head = 0;
    if (layout == Layout::repeated_batch) placement.stride.batch = 0;
    if (layout == Layout::repeated_seq) placement.stride.seq = 0;
  }
  if (role == Role::dout && layout == Layout::one_a_row) placement.stride.dim = 0;
  if (role == Role::dout && layout == Layout::one_number)
    placement.stride = {.batch = 0, .head = 0, .seq = 0, .dim = 0};
  placement.elements = span(extent, placement.stride, placement.offset);
  return placement;
}

Placement place_written(const Extents& extent, Layout layout, Role role) {
  return place(extent, layout >= Layout::repeated_head ? Layout::bhsd : layout, role);
}

Fused place_fused(const Extents& query, const Extents& key, const Extents& value) {
  const std::int64_t row = query.head * query.dim + key.head * key.dim + value.head * value.dim;
  const std::int64_t rows = std::max(query.seq, key.seq);
  const auto part = [&](const Extents& extent, std::int64_t offset) {
    return Placement{.stride = {.batch = rows * row, .head = extent.dim, .seq = row},
                     .offset = offset,
                     .elements = query.batch * rows * row};
  };
  const std::int64_t keys = query.head * query.dim;
  return {.query = part(query, 0),
          .key = part(key, keys),
          .value = part(value, keys + key.head * key.dim)};
}

}  // namespace tessera::testing
