#pragma once
// What becomes of a row's state and its O: a part of it, or the result.

#include <cstdint>

#include "backends/hip/decode/place.hip.hpp"

namespace tessera::hip::decode {

using State = kernel::SoftmaxState<float>;

// The end of a row whose parts are one.
TESSERA_DEVICE Finished conclude(const kernel::ForwardArguments& a, State state, Index head,
                                 bool live) {
  if (!live) state = kernel::empty_state<GcnLanes>();
  Finished f;
  f.seen = state.sum != 0.0f && a.dropout.threshold < 65536u;
  f.factor = a.dropout.keep_scale();
  if (a.sinks != nullptr && live)
    f.factor *=
        kernel::add_sink<GcnLanes>(state, kernel::to_base2<GcnLanes>(a.sinks[head * a.sinks_head]));
  f.factor *= kernel::inverse_sum<GcnLanes>(state);
  f.lse = kernel::log_sum_exp(state.max, state.sum);
  return f;
}

// A row of the output.
class Line {
 public:
  TESSERA_DEVICE Line(const kernel::ForwardArguments& a, const kernel::Sequence& s,
                      const QueryRow& row)
      : out_(static_cast<std::uint16_t*>(a.out.data) + s.batch * a.out.batch +
             row.head * a.out.head + (s.query + row.position) * a.out.seq),
        lse_(a.lse.data == nullptr ? nullptr
                                   : a.lse.data + s.batch * a.lse.batch + row.head * a.lse.head +
                                         (s.query + row.position) * a.lse.seq) {}

  template <class Element>
  TESSERA_DEVICE void put(int column, float x) const {
    out_[column] = static_cast<std::uint16_t>(Element::pack(x, 0));
  }
  TESSERA_DEVICE void put_lse(float lse) const {
    if (lse_ != nullptr) *lse_ = lse;
  }

 private:
  std::uint16_t* const out_;
  float* const lse_;
};

}  // namespace tessera::hip::decode
