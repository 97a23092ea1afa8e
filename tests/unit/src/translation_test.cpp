// What other libraries call a mask, as docs/numerics.md translates it: the band that a kernel gets
// is what their own definition shows.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "core/kernel/sequence.hpp"
#include "tests/unit/src/call.hpp"
#include "tests/unit/src/fake_backend.hpp"

namespace tessera::testing {
namespace {

// Does row i of `rows` see key j of `keys`?
using Visible =
    std::function<bool(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t keys)>;

constexpr std::int64_t kLongest = 9;

class Translation : public ::testing::Test {
 protected:
  void SetUp() override { fake_backend() = {}; }
  void TearDown() override { fake_backend() = {}; }

  void expect(const Mask& mask, const Visible& visible, const std::string& what) {
    for (std::int64_t rows = 1; rows <= kLongest; ++rows) {
      for (std::int64_t keys = 1; keys <= kLongest; ++keys) {
        SCOPED_TRACE(what + ", " + std::to_string(rows) + " rows, " + std::to_string(keys) +
                     " keys");
        check(mask, visible, rows, keys);
        if (HasFatalFailure()) return;
      }
    }
  }

 private:
  void check(const Mask& mask, const Visible& visible, std::int64_t rows, std::int64_t keys) {
    const Extents query{.seq = rows, .dim = 8};
    const Extents key{.seq = keys, .dim = 8};
    forward({.query = ConstTensor::bhsd(inputs_, DType::fp32, query),
             .key = ConstTensor::bhsd(inputs_, DType::fp32, key),
             .value = ConstTensor::bhsd(inputs_, DType::fp32, key),
             .out = Tensor::bhsd(out_, DType::fp32, query)},
            {.mask = mask});
    const kernel::Sequence sequence = kernel::sequence(fake_backend().arguments, 0);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto row = sequence.band.row(i);
      for (std::int64_t j = 0; j < keys; ++j) {
        ASSERT_EQ(row.begin <= j && j < row.end, visible(i, j, rows, keys))
            << "row " << i << " key " << j;
      }
    }
  }

  Call memory_{};
  const void* inputs_ = memory_.inputs(kLongest * 8 * sizeof(float));
  void* out_ = memory_.outputs(kLongest * 8 * sizeof(float));
};

// scaled_dot_product_attention: torch.ones(L, S).tril(diagonal=0).
TEST_F(Translation, TorchIsCausal) {
  expect(
      Mask::causal(Alignment::TopLeft), [](auto i, auto j, auto, auto) { return j - i <= 0; },
      "is_causal");
}

// torch.nn.attention.bias.causal_lower_right(L, S): torch.ones(L, S).tril(diagonal=S - L).
TEST_F(Translation, TorchCausalLowerRight) {
  expect(
      Mask::causal(Alignment::BottomRight),
      [](auto i, auto j, auto rows, auto keys) { return j - i <= keys - rows; },
      "causal_lower_right");
}

// flash_attn_func: a query i sees the keys between i + seqlen_k - seqlen_q - window_size[0] and
// i + seqlen_k - seqlen_q + window_size[1], both included, -1 being infinite; causal is
// window_size[1] = 0.
TEST_F(Translation, FlashAttention) {
  const auto edge = [](std::int64_t size) {
    return size == -1 ? std::nullopt : std::optional(size);
  };
  const auto window = [](std::int64_t left, std::int64_t right) {
    return [=](auto i, auto j, auto rows, auto keys) {
      const std::int64_t diagonal = i + keys - rows;
      return (left == -1 || diagonal - left <= j) && (right == -1 || j <= diagonal + right);
    };
  };
  expect(Mask::causal(Alignment::BottomRight), window(-1, 0), "causal=True");
  for (const std::int64_t left : {-1, 0, 1, 2, 5, 20}) {
    for (const std::int64_t right : {-1, 0, 1, 3, 20}) {
      expect(Mask::window(edge(left), edge(right), Alignment::BottomRight), window(left, right),
             "window_size=(" + std::to_string(left) + ", " + std::to_string(right) + ")");
    }
  }
}

// transformers: kv_idx <= q_idx and kv_idx > q_idx - sliding_window, where q_idx counts the keys
// that are cached already.
TEST_F(Translation, HuggingFaceSlidingWindow) {
  for (const std::int64_t size : {1, 2, 4, 8, 100}) {
    expect(
        Mask::window(size - 1, 0, Alignment::BottomRight),
        [&](auto i, auto j, auto rows, auto keys) {
          const std::int64_t position = i + keys - rows;
          return j <= position && j > position - size;
        },
        "sliding_window=" + std::to_string(size));
  }
}

}  // namespace
}  // namespace tessera::testing
