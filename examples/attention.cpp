// Causal self-attention over four tokens. With queries of zero every visible key weighs the same,
// so each row of the result is the mean of the values up to it.
//
// Prints:
//   0 0.5 1 1.5
#include <iostream>
#include <vector>

#include <tessera/tessera.hpp>

int main() {
  using namespace tessera;
  const Extents shape{.batch = 1, .head = 1, .seq = 4, .dim = 8};
  std::vector<float> zeros(32, 0), values(32), result(32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t key = i / 8;
    values[i] = static_cast<float>(key);
  }

  const std::size_t bytes = 32 * sizeof(float);
  Buffer q(bytes), k(bytes), v(bytes), out(bytes);  // on the device
  copy(q.data(), zeros.data(), bytes);
  copy(k.data(), zeros.data(), bytes);
  copy(v.data(), values.data(), bytes);

  forward({.query = ConstTensor::bhsd(q.data(), DType::fp32, shape),
           .key = ConstTensor::bhsd(k.data(), DType::fp32, shape),
           .value = ConstTensor::bhsd(v.data(), DType::fp32, shape),
           .out = Tensor::bhsd(out.data(), DType::fp32, shape)},
          {.mask = Mask::causal(Alignment::BottomRight)});

  copy(result.data(), out.data(), bytes);
  Stream{}.synchronize();
  std::cout << result[0] << ' ' << result[8] << ' ' << result[16] << ' ' << result[24] << '\n';
}
