// Sequences of different lengths without padding: 3, 0 and 2 tokens lie one after another in one
// tensor [total tokens][head][dim], and prefix sums say where each begins. Nothing is seen across
// their borders. The log-sum-exp of equal scores of 0 is the logarithm of how many keys a row saw.
//
// Prints:
//   sequence 0: 0 0.5 1, last row saw 3 keys
//   sequence 1: empty
//   sequence 2: 3 3.5, last row saw 2 keys
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

#include <tessera/tessera.hpp>

int main() {
  using namespace tessera;
  const std::vector<std::int32_t> begins{0, 3, 3, 5};
  const Extents shape{.head = 2, .seq = 5, .dim = 8};  // batch is 1
  const std::size_t count = 5 * 2 * 8, bytes = count * sizeof(float);
  std::vector<float> zeros(count, 0), values(count), result(count), lse(5 * 2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t token = i / 16;
    values[i] = static_cast<float>(token);
  }

  Buffer q(bytes), k(bytes), v(bytes), out(bytes), sums(lse.size() * sizeof(float));
  Buffer cu_seqlens(begins.size() * sizeof(std::int32_t));
  copy(q.data(), zeros.data(), bytes);
  copy(k.data(), zeros.data(), bytes);
  copy(v.data(), values.data(), bytes);
  copy(cu_seqlens.data(), begins.data(), cu_seqlens.size());

  const ConstVector lengths{.data = cu_seqlens.data(), .dtype = DType::int32, .size = 4};
  forward({.query = ConstTensor::bshd(q.data(), DType::fp32, shape),
           .key = ConstTensor::bshd(k.data(), DType::fp32, shape),
           .value = ConstTensor::bshd(v.data(), DType::fp32, shape),
           .out = Tensor::bshd(out.data(), DType::fp32, shape),
           .lse = Tensor::lse(static_cast<float*>(sums.data()), 1, 2, 5),
           .cu_seqlens_q = lengths,
           .cu_seqlens_k = lengths},
          {.mask = Mask::causal(Alignment::BottomRight), .max_seq_q = 3, .max_seq_k = 3});

  copy(result.data(), out.data(), bytes);
  copy(lse.data(), sums.data(), sums.size());
  Stream{}.synchronize();
  for (std::size_t s = 0; s < 3; ++s) {
    const auto first = static_cast<std::size_t>(begins[s]);
    const auto end = static_cast<std::size_t>(begins[s + 1]);
    std::cout << "sequence " << s << ':';
    for (std::size_t token = first; token < end; ++token) std::cout << ' ' << result[token * 16];
    if (first == end) {
      std::cout << " empty\n";
    } else {
      std::cout << ", last row saw " << std::lround(std::exp(lse[end - 1])) << " keys\n";
    }
  }
}
