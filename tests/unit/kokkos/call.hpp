#pragma once
// A small call with its memory, for tests of what surrounds kernels.

#include <cstdint>
#include <random>
#include <vector>

#include <tessera/args.hpp>

namespace tessera::testing {

struct SmallCall {
  static constexpr Extents kExtents{.batch = 2, .head = 3, .seq = 100, .dim = 16};
  static constexpr std::size_t kCount = 2 * 3 * 100 * 16;

  SmallCall() : query(kCount), key(kCount), value(kCount) {
    std::mt19937 generator(11);
    std::normal_distribution<float> normal;
    for (auto* input : {&query, &key, &value}) {
      for (float& x : *input) x = normal(generator);
    }
  }

  Args args(std::vector<float>& out) const {
    out.assign(kCount, 0);
    return {.query = ConstTensor::bhsd(query.data(), DType::fp32, kExtents),
            .key = ConstTensor::bhsd(key.data(), DType::fp32, kExtents),
            .value = ConstTensor::bhsd(value.data(), DType::fp32, kExtents),
            .out = Tensor::bhsd(out.data(), DType::fp32, kExtents)};
  }

  std::vector<float> query, key, value;
};

}  // namespace tessera::testing
