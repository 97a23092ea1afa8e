#pragma once
// Matrix products of float or double. The right factor is packed: strips of kLanes columns, each
// strip [inner][kLanes], so that the innermost loop reads one contiguous stream whatever the shape.

#include <cstdint>
#include <vector>

namespace tessera::reference {

// Columns of a strip: 64 bytes.
template <class Real>
inline constexpr std::int64_t kLanes = 64 / static_cast<std::int64_t>(sizeof(Real));

template <class Real>
constexpr std::int64_t strips_for(std::int64_t columns) noexcept {
  return (columns + kLanes<Real> - 1) / kLanes<Real>;
}

// A packed right factor [inner][columns]; columns that pad the last strip are 0.
template <class Real>
struct Panel {
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  bool finite = true;  // is every element finite
  std::vector<Real> data;

  void resize(std::int64_t new_inner, std::int64_t new_columns) {
    inner = new_inner;
    columns = new_columns;
    finite = true;
    data.assign(static_cast<std::size_t>(strips_for<Real>(columns) * kLanes<Real> * inner),
                Real{0});
  }
  Real& at(std::int64_t k, std::int64_t column) {
    return data[static_cast<std::size_t>((column / kLanes<Real> * inner + k) * kLanes<Real> +
                                         column % kLanes<Real>)];
  }
  Real at(std::int64_t k, std::int64_t column) const {
    return const_cast<Panel*>(this)->at(k, column);
  }
  // Row `k` of the strip that begins at column `strip`·kLanes.
  const Real* strip(std::int64_t index, std::int64_t k) const {
    return data.data() + (index * inner + k) * kLanes<Real>;
  }
  void set_row(std::int64_t k, const Real* values);     // element (k, c) = values[c]
  void set_column(std::int64_t c, const Real* values);  // element (k, c) = values[k]
};

// c[r][n] = Σ_k a[r][k]·b[k][n] (added to c if `add`), and where absolute_c is given, beside it
// absolute_c[r][n] = Σ_k absolute_a[r][k]·|b[k][n]|. Sums run over k in order, in Real.
template <class Real>
struct Product {
  const Real* a = nullptr;
  const Real* absolute_a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_inner = 1;
  const Real* b = nullptr;   // first strip wanted, at the first k wanted
  std::int64_t b_strip = 0;  // distance of strips
  Real* c = nullptr;
  Real* absolute_c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t strips = 0;
  bool add = false;
};

void multiply(const Product<double>& product);
void multiply(const Product<float>& product);

// The same with one instruction set, for tests: 0 is portable; 1 (AVX2) and 2 (AVX-512) where
// best_level() says so.
int best_level();
void multiply_at(int level, const Product<double>& product);
void multiply_at(int level, const Product<float>& product);

}  // namespace tessera::reference
