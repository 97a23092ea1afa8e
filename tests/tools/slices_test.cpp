/// A call cut into slices for the sake of progress gives the bits of the whole call.
#include <gtest/gtest.h>
#include <tessera/tessera.hpp>

#include <cstring>
#include <vector>

#include "reference/fill.hpp"
#include "tools/command/call.hpp"
#include "tools/command/slices.hpp"

namespace tessera::testing {
namespace {

using tools::Slice;

/// Tensors with every modifier that has a batch or head axis, in host memory that the device reads
/// too.
struct Sample {
  static constexpr Extents kQuery{.batch = 3, .head = 6, .seq = 70, .dim = 16};
  static constexpr Extents kKey{.batch = 3, .head = 2, .seq = 90, .dim = 16};

  std::vector<float> query = std::vector<float>(3 * 6 * 70 * 16),
                     key = std::vector<float>(3 * 2 * 90 * 16), value = key;
  std::vector<float> bias = std::vector<float>(6 * 90), slopes = std::vector<float>(3 * 6),
                     sinks = std::vector<float>(6);
  std::vector<std::int32_t> key_end{90, 50, 0};
  std::vector<Buffer> buffers;
  Args args;

  ConstTensor upload(std::vector<float>& host, ConstTensor tensor, std::uint64_t seed) {
    tensor.data = host.data();
    reference::fill_gaussian(
        Tensor{host.data(), DType::fp32, {.dim = static_cast<std::int64_t>(host.size())}, {}},
        seed);
    Buffer& buffer = buffers.emplace_back(host.size() * sizeof(float));
    copy(buffer.data(), host.data(), buffer.size());
    tensor.data = buffer.data();
    return tensor;
  }

  Sample() {
    const auto fp32 = DType::fp32;
    args.query = upload(query, ConstTensor::bshd(nullptr, fp32, kQuery), 1);
    args.key = upload(key, ConstTensor::bshd(nullptr, fp32, kKey), 2);
    args.value = upload(value, ConstTensor::bhsd(nullptr, fp32, kKey), 3);
    args.bias = upload(
        bias, ConstTensor::bhsd(nullptr, fp32, {.batch = 1, .head = 6, .seq = 1, .dim = 90}), 4);
    args.alibi_slopes =
        upload(slopes, ConstTensor::bhsd(nullptr, fp32, {.batch = 3, .head = 6}), 5);
    args.sinks = upload(sinks, ConstTensor::per_head(nullptr, fp32, 6), 6);
    Buffer& ends = buffers.emplace_back(key_end.size() * sizeof(std::int32_t));
    copy(ends.data(), key_end.data(), ends.size());
    args.key_end = {ends.data(), DType::int32, 3};
  }

  static constexpr std::size_t kOut = 3 * 6 * 70 * 16;
  static constexpr std::size_t kLse = 3 * 6 * 70;

  /// out, then lse, of whatever `compute` does.
  template <class Compute>
  std::vector<float> results(const Compute& compute) {
    Buffer out(kOut * sizeof(float));
    Buffer lse(kLse * sizeof(float));
    std::vector<float> host(kOut + kLse, -1.0f);
    copy(out.data(), host.data(), out.size());
    copy(lse.data(), host.data(), lse.size());
    args.out = Tensor::bshd(out.data(), DType::fp32, kQuery);
    args.lse = Tensor::lse(static_cast<float*>(lse.data()), 3, 6, 70);
    compute();
    Stream{}.synchronize();
    copy(host.data(), out.data(), out.size());
    copy(host.data() + kOut, lse.data(), lse.size());
    Stream{}.synchronize();
    return host;
  }
};

TEST(Slices, CoverEachPairOnce) {
  for (const std::int64_t parts : {0, 1, 2, 3, 4, 5, 6, 7, 100}) {
    const Sample sample;
    int seen[3][2] = {};
    for (const Slice& s : tools::slices_of(sample.args, {}, parts)) {
      for (std::int64_t b = s.batch; b < s.batch + s.batches; ++b) {
        for (std::int64_t h = s.head_k; h < s.head_k + s.heads_k; ++h) ++seen[b][h];
      }
    }
    for (const auto& row : seen) {
      for (const int count : row) EXPECT_EQ(count, 1) << parts;
    }
  }
}

TEST(Slices, DropoutIsNotCut) {
  const Sample sample;
  EXPECT_EQ(tools::slices_of(sample.args, {.dropout = 0.1}, 100).size(), 1u);
}

TEST(Slices, SameBitsAsWhole) {
  Sample sample;
  const Options options{.mask = Mask::causal(Alignment::BottomRight)};
  const std::vector<float> whole =
      sample.results([&] { execute(plan(describe(sample.args, options)), sample.args); });
  for (const std::int64_t parts : {1, 2, 3, 6}) {
    double last = 0;
    const std::vector<float> cut = sample.results([&] {
      const Plan all = plan(describe(sample.args, options));
      tools::execute_in_slices(all, sample.args, tools::slices_of(sample.args, options, parts),
                               [&](double done) {
                                 EXPECT_GT(done, last);
                                 last = done;
                               });
    });
    EXPECT_EQ(last, 1) << "must have been cut";
    // Bits, not values: every element was written, -1 is none of them.
    EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)), 0) << parts;
  }
}

}  // namespace
}  // namespace tessera::testing
