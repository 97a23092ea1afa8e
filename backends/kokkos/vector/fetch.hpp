#pragma once

#include <cstddef>

#include "backends/kokkos/vector/pack.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Rows of memory that are fetched into the second-level cache before their use, line by line. A
// core has room for few lines on their way: memory is busy only if some are asked for all the time,
// in every loop. Many at once wait for one another, and so does what stands behind them.
class Fetch {
 public:
  Fetch() = default;
  template <class T>
  TESSERA_FN Fetch(const Rows<T>& rows, Index first, Index columns)
      : rows_(reinterpret_cast<const char*>(rows[first])),
        stride_(static_cast<std::size_t>(rows.stride) * sizeof(T)),
        bytes_(static_cast<std::size_t>(columns) * sizeof(T)) {}

  // `rows` behind those that it has.
  TESSERA_FN void add(Index rows) { left_ += rows; }
  TESSERA_FN Index lines() const {
    return left_ * static_cast<Index>((bytes_ + kLine - 1) / kLine) -
           static_cast<Index>(at_ / kLine);
  }

  TESSERA_FN void fetch_lines(Index count) {
    for (Index i = 0; i < count && left_ > 0; ++i) {
      __builtin_prefetch(rows_ + row_ + at_, 0, 2);
      at_ += kLine;
      if (at_ >= bytes_) end_row();
    }
  }
  TESSERA_FN void fetch_rows(Index count) {
    for (Index i = 0; i < count && left_ > 0; ++i) {
      for (std::size_t at = at_; at < bytes_; at += kLine)
        __builtin_prefetch(rows_ + row_ + at, 0, 2);
      end_row();
    }
  }

 private:
  static constexpr std::size_t kLine = 64;  // bytes

  TESSERA_FN void end_row() {
    row_ += stride_;  // behind the last row it may wrap, and is not used
    at_ = 0;
    --left_;
  }

  const char* rows_ = nullptr;
  std::size_t stride_ = 0;  // bytes
  std::size_t bytes_ = 0;   // a row
  Index left_ = 0;          // rows
  std::size_t row_ = 0;     // offset of the first of them
  std::size_t at_ = 0;      // bytes of it that have been fetched
};

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
