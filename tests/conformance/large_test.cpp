// Views over more memory than 32 bits count, and sequences too long for the reference: a sample of
// rows is checked.

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/attention.hpp>
#include <tessera/stream.hpp>

#include "reference/fill.hpp"
#include "reference/number.hpp"
#include "tests/conformance/random.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

// Address space of the host that takes memory only where it is touched.
class LazyMemory {
 public:
  explicit LazyMemory(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~LazyMemory() {
    if (mapped()) ::munmap(data_, bytes_);
  }
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  bool mapped() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

// A call whose operands lie in lazy memory, which host and kernels share.
class LargeCall {
 public:
  LargeCall(DType dtype, const Extents& query, const Extents& key, const Strides& query_stride,
            const Strides& key_stride) {
    args_.query = input(dtype, query, query_stride, 1);
    args_.key = input(dtype, key, key_stride, 2);
    args_.value = input(dtype, key, key_stride, 3);
    args_.out = {allocate(dtype, query, query_stride), dtype, query, query_stride};
    const Extents rows{.batch = query.batch, .head = query.head, .seq = query.seq, .dim = 1};
    args_.lse = Tensor::lse(static_cast<float*>(allocate(DType::fp32, rows, bhsd_strides(rows))),
                            query.batch, query.head, query.seq);
  }

  bool ready() const {
    return std::all_of(memory_.begin(), memory_.end(),
                       [](const auto& memory) { return memory->mapped(); });
  }
  Args& args() { return args_; }

  // Whole: the reference takes the same views.
  void expect_right(const Options& options, const std::string& what) {
    const auto ref = reference::forward(args_, options);
    const auto low = reference::forward_low(args_, options);
    bool computed = false;
    on_kernels(options, [&](const Kernel& kernel) {
      const auto verdict = reference::judge(args_, options, ref, low);
      EXPECT_TRUE(verdict.pass) << what << ": " << kernel.name << ": " << verdict.text;
      computed = true;
    });
    if (kernels(Operation::backward).empty()) return;  // an adapter may lack gradients
    if (!computed) forward(args_, options);            // or have them alone
    expect_gradients_right(options, what);
  }

  template <class Check>
  void on_kernels(const Options& options, Check check) {
    ++tally().cases["forward"];
    for (const Kernel& kernel : kernels_for(Operation::forward)) {
      if (!kernel.computes(args_.query.dtype)) continue;
      reference::fill_constant(args_.out, kNan);
      reference::fill_constant(args_.lse, kNan);
      if (!call(kernel, args_, options)) continue;
      ++tally().runs[kernel.name];
      check(kernel);
    }
  }

 private:
  // With gradients that lie as their operands do, and what the last forward gave.
  void expect_gradients_right(const Options& options, const std::string& what) {
    const auto like = [&](const ConstTensor& t) {
      return Tensor{allocate(t.dtype, t.extent, t.stride), t.dtype, t.extent, t.stride};
    };
    const Tensor dout = like(args_.out);
    args_.dq = like(args_.query);
    args_.dk = like(args_.key);
    args_.dv = like(args_.value);
    if (args_.bias.data != nullptr) args_.dbias = like(args_.bias);
    if (!ready()) GTEST_SKIP() << "the system gives no address space";
    reference::fill_gaussian(dout, 4);
    args_.dout = dout;
    const auto ref = reference::backward(args_, options, args_.dout, {}, args_.out);
    const auto low = reference::backward_low(args_, options, args_.dout, {}, args_.out);
    ++tally().cases["backward"];
    for_each_kernel(
        [&](const Kernel& kernel) {
          for (const Tensor& gradient : {args_.dq, args_.dk, args_.dv, args_.dbias}) {
            if (gradient.data != nullptr) reference::fill_constant(gradient, kNan);
          }
          if (!call(kernel, args_, options)) return;
          ++tally().runs[kernel.name];
          const reference::Gradients ours{
              .dq = args_.dq, .dk = args_.dk, .dv = args_.dv, .dbias = args_.dbias};
          const auto verdict = reference::judge_backward(args_, options, ours, ref, low);
          EXPECT_TRUE(verdict.pass) << what << ": " << kernel.name << ": " << verdict.text;
        },
        Operation::backward);
  }

  void* allocate(DType dtype, const Extents& e, const Strides& s) {
    const std::int64_t elements =
        (e.batch - 1) * s.batch + (e.head - 1) * s.head + (e.seq - 1) * s.seq + e.dim;
    memory_.push_back(
        std::make_unique<LazyMemory>(static_cast<std::size_t>(elements * size_of(dtype))));
    return memory_.back()->data();
  }

  ConstTensor input(DType dtype, const Extents& extent, const Strides& stride, std::uint64_t seed) {
    const Tensor tensor{allocate(dtype, extent, stride), dtype, extent, stride};
    if (memory_.back()->mapped()) reference::fill_gaussian(tensor, seed);
    return tensor;
  }

  std::vector<std::unique_ptr<LazyMemory>> memory_{};
  Args args_{};
};

class Large : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!host_memory_is_device_memory()) GTEST_SKIP() << "kernels do not read the host's memory";
  }
};

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 40;  // elements

TEST_F(Large, StridesBeyond32Bits) {
  if (largest_head_dim() < 72) GTEST_SKIP() << "built for shorter heads";
  const Extents query{.batch = 3, .head = 2, .seq = 33, .dim = 72};
  const Extents key{.batch = 3, .head = 2, .seq = 65, .dim = 72};
  const Strides dense{.batch = 16384, .head = 8192, .seq = 72};
  Strides batch = dense, head = dense, seq = dense;
  batch.batch = kFar;
  head.head = kFar;
  seq.seq = kFar / 16;  // row 16 is beyond
  seq.head = 72;
  seq.batch = 144;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const auto& [what, stride] : {std::pair{"batch", batch}, {"head", head}, {"seq", seq}}) {
      LargeCall call(dtype, query, key, stride, stride);
      if (!call.ready()) GTEST_SKIP() << "the system gives no address space";
      call.expect_right({.mask = Mask::causal(Alignment::BottomRight)}, what);
    }
  }
}

TEST_F(Large, BatchStrideOf2To30WithSelectedBatches) {
  const Extents extent{.batch = 5, .head = 2, .seq = 20, .dim = 64};
  const Strides stride{.batch = std::int64_t{1} << 30, .head = 4096, .seq = 64};
  LargeCall call(DType::fp16, extent, extent, stride, stride);
  if (!call.ready()) GTEST_SKIP() << "the system gives no address space";
  call.expect_right({}, "field_layer_strided");
}

TEST_F(Large, TheLastBatchOf1600By729By16By72) {
  if (largest_head_dim() < 72) GTEST_SKIP() << "built for shorter heads";
  const std::int64_t batch = 729 * 16 * 72;
  const Extents extent{.batch = 2, .head = 16, .seq = 20, .dim = 72};
  const Strides stride{.batch = 1599 * batch, .head = 72, .seq = 16 * 72};
  LargeCall call(DType::bf16, extent, extent, stride, stride);
  if (!call.ready()) GTEST_SKIP() << "the system gives no address space";
  call.expect_right({}, "field_1600_729_16_72");
}

TEST_F(Large, BiasBeyond32Bits) {
  const Extents query{.batch = 2, .head = 2, .seq = 33, .dim = 16};
  LargeCall call(DType::bf16, query, query, bhsd_strides(query), bhsd_strides(query));
  const std::int64_t elements = 3 * kFar + 33 * 33;
  const LazyMemory memory(static_cast<std::size_t>(elements * 4));
  if (!call.ready() || !memory.mapped()) GTEST_SKIP() << "the system gives no address space";
  const Tensor bias{memory.data(),
                    DType::fp32,
                    {.batch = 2, .head = 2, .seq = 33, .dim = 33},
                    {.batch = 2 * kFar, .head = kFar, .seq = 33}};
  reference::fill_gaussian(bias, 4);
  call.args().bias = bias;
  call.expect_right({}, "bias");
}

// Rows [row, row + rows) of a Tensor or ConstTensor.
template <class View>
View rows_of(const View& tensor, std::int64_t row, std::int64_t rows) {
  using Byte = std::conditional_t<std::is_same_v<View, Tensor>, std::byte, const std::byte>;
  View part = tensor;
  part.data = static_cast<Byte*>(tensor.data) + row * tensor.stride.seq * size_of(tensor.dtype);
  part.extent.seq = rows;
  return part;
}

// Of a few rows: the reference computes them alone.
void expect_rows_right(const Args& args, const Options& options, const Kernel& kernel,
                       std::int64_t row) {
  const auto verdict = reference::judge(args, options, reference::forward(args, options),
                                        reference::forward_low(args, options));
  EXPECT_TRUE(verdict.pass) << "rows from " << row << ": " << kernel.name << ": " << verdict.text;
}

TEST_F(Large, WindowOver65537RowsAndKeys) {
  constexpr std::int64_t kLeft = 100;
  constexpr std::int64_t kRows = 8;
  for (const std::int64_t seq : {32769, 65537}) {
    SCOPED_TRACE("of " + std::to_string(seq));
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      const Extents extent{.batch = 1, .head = 1, .seq = seq, .dim = 16};
      LargeCall call(dtype, extent, extent, bhsd_strides(extent), bhsd_strides(extent));
      ASSERT_TRUE(call.ready());
      const Options whole{.mask = Mask::window(kLeft, 0, Alignment::TopLeft)};
      call.on_kernels(whole, [&](const Kernel& kernel) {
        for (const std::int64_t row : {seq / 2, 32760L, seq - 9, seq - kRows}) {
          if (row + kRows > seq) continue;
          Args args;
          args.query = rows_of(call.args().query, row, kRows);
          args.key = rows_of(call.args().key, row - kLeft, kRows + kLeft);
          args.value = rows_of(call.args().value, row - kLeft, kRows + kLeft);
          args.out = rows_of(call.args().out, row, kRows);
          args.lse = rows_of(call.args().lse, row, kRows);
          const Options slice{.mask = Mask::window(kLeft, 0, Alignment::BottomRight)};
          expect_rows_right(args, slice, kernel, row);
        }
      });
    }
  }
}

TEST_F(Large, CausalRowsBeyond65536) {
  // Top-left: row i sees keys [0, i]. The rows checked take all of the keys before them.
  constexpr std::int64_t kSeq = 65537;
  const Extents query{.batch = 1, .head = 1, .seq = kSeq, .dim = 8};
  const Extents key{.batch = 1, .head = 1, .seq = 300, .dim = 8};
  LargeCall call(DType::fp32, query, key, bhsd_strides(query), bhsd_strides(key));
  ASSERT_TRUE(call.ready());
  call.on_kernels({.mask = Mask::causal(Alignment::TopLeft)}, [&](const Kernel& kernel) {
    for (const std::int64_t row : {0L, 299L, 32767L, 65535L, 65536L}) {
      Args args = call.args();
      args.query = rows_of(call.args().query, row, 1);
      args.out = rows_of(call.args().out, row, 1);
      args.lse = rows_of(call.args().lse, row, 1);
      const std::int64_t keys = std::min<std::int64_t>(row + 1, 300);
      args.key = rows_of(call.args().key, 0, keys);
      args.value = rows_of(call.args().value, 0, keys);
      expect_rows_right(args, {}, kernel, row);
    }
  });
}

TEST_F(Large, MoreThan2To31Keys) {
  // All but the last twelve are padding. key_begin is an int32: they lie on both sides of 2^31.
  constexpr std::int64_t kSeq = (std::int64_t{1} << 31) + 8;
  constexpr std::int32_t kFirst = 0x7ffffffc;
  const Extents query{.batch = 1, .head = 2, .seq = 3, .dim = 8};
  const Extents key{.batch = 1, .head = 1, .seq = kSeq, .dim = 8};
  const Strides stride{.batch = 8 * kSeq, .head = 8 * kSeq, .seq = 8};
  LargeCall call(DType::bf16, query, query, bhsd_strides(query), bhsd_strides(query));
  const auto bytes = static_cast<std::size_t>(8 * kSeq * size_of(DType::bf16));
  const LazyMemory keys(bytes), values(bytes);
  if (!call.ready() || !keys.mapped() || !values.mapped()) {
    GTEST_SKIP() << "the system gives no address space";
  }
  const Tensor k{keys.data(), DType::bf16, key, stride}, v{values.data(), DType::bf16, key, stride};
  reference::fill_gaussian(rows_of(k, kFirst, kSeq - kFirst), 5);
  reference::fill_gaussian(rows_of(v, kFirst, kSeq - kFirst), 6);
  call.args().key = k;
  call.args().value = v;
  call.args().key_begin = {&kFirst, DType::int32, 1};
  call.on_kernels({}, [&](const Kernel& kernel) {
    Args args = call.args();
    args.key = rows_of(args.key, kFirst, kSeq - kFirst);
    args.value = rows_of(args.value, kFirst, kSeq - kFirst);
    args.key_begin = {};
    expect_rows_right(args, {}, kernel, 0);
  });
}

}  // namespace
}  // namespace tessera::testing
