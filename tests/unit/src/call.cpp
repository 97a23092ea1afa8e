#include "tests/unit/src/call.hpp"

#include <algorithm>

#include "tests/call_in_one.hpp"

namespace tessera::testing {
namespace {

constexpr std::uint8_t kPattern = 0xA5;

std::size_t bytes_of(DType dtype, const Extents& e) {
  return static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim * size_of(dtype));
}

}  // namespace

void* Call::put(const void* data, std::size_t bytes) {
  Buffer& buffer = inputs_.emplace_back(bytes);
  copy(buffer.data(), data, bytes);
  Stream{}.synchronize();
  return buffer.data();
}

void* Call::inputs(std::size_t bytes) {
  std::vector<float> numbers(bytes / 4 + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i % 13) * 0.125f - 0.5f;
  return put(numbers.data(), bytes);
}

void* Call::outputs(std::size_t bytes) {
  const std::vector<std::uint8_t> pattern(bytes, kPattern);
  Buffer& buffer = outputs_.emplace_back(bytes);
  copy(buffer.data(), pattern.data(), bytes);
  Stream{}.synchronize();
  return buffer.data();
}

bool Call::outputs_are_untouched() const {
  Stream{}.synchronize();
  return std::all_of(outputs_.begin(), outputs_.end(), [](const Buffer& buffer) {
    std::vector<std::uint8_t> bytes(buffer.size());
    copy(bytes.data(), buffer.data(), bytes.size());
    Stream{}.synchronize();
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::uint8_t byte) { return byte == kPattern; });
  });
}

std::vector<float> Call::out() const {
  std::vector<float> numbers(outputs_.front().size() / sizeof(float));
  Stream{}.synchronize();
  copy(numbers.data(), outputs_.front().data(), outputs_.front().size());
  Stream{}.synchronize();
  return numbers;
}

Call Call::dense() {
  Call call;
  const auto input = [&](const Extents& e) {
    return ConstTensor::bhsd(call.inputs(bytes_of(DType::fp32, e)), DType::fp32, e);
  };
  call.args.query = input(kQuery);
  call.args.key = input(kKey);
  call.args.value = input(kValue);
  call.args.out = Tensor::bhsd(call.outputs(bytes_of(DType::fp32, kOut)), DType::fp32, kOut);
  void* lse = call.outputs(bytes_of(DType::fp32, {kOut.batch, kOut.head, kOut.seq, 1}));
  call.args.lse = Tensor::lse(static_cast<float*>(lse), kOut.batch, kOut.head, kOut.seq);
  return call;
}

Call Call::everything() {
  Call call = dense();
  const Extents scores{kQuery.batch, kQuery.head, kQuery.seq, kKey.seq};
  call.args.bias =
      ConstTensor::bhsd(call.inputs(bytes_of(DType::fp32, scores)), DType::fp32, scores);
  call.args.boolean_mask =
      ConstTensor::bhsd(call.inputs(bytes_of(DType::uint8, scores)), DType::uint8, scores);
  const Extents slopes{.batch = kQuery.batch, .head = kQuery.head};
  call.args.alibi_slopes =
      ConstTensor::bhsd(call.inputs(bytes_of(DType::fp32, slopes)), DType::fp32, slopes);
  call.args.sinks = ConstTensor::per_head(call.inputs(16), DType::fp32, kQuery.head);
  call.args.key_begin = call.vector<std::int32_t>(DType::int32, {0, 1});
  call.args.key_end = call.vector<std::int32_t>(DType::int32, {7, 6});
  call.args.query_end = call.vector<std::int32_t>(DType::int32, {5, 4});
  call.args.softcap = 20;
  call.args.scale = 0.5f;
  call.options.mask = Mask::window(4, 2, Alignment::BottomRight);
  return call;
}

Call Call::packed() {
  Call call;
  const auto input = [&](const Extents& e) {
    return ConstTensor::bshd(call.inputs(bytes_of(DType::fp32, e)), DType::fp32, e);
  };
  call.args.query = input({.head = 4, .seq = 5, .dim = 16});
  call.args.key = input({.head = 2, .seq = 6, .dim = 16});
  call.args.value = input({.head = 2, .seq = 6, .dim = 8});
  const Extents out{.head = 4, .seq = 5, .dim = 8};
  call.args.out = Tensor::bshd(call.outputs(bytes_of(DType::fp32, out)), DType::fp32, out);
  call.args.lse = Tensor::lse(static_cast<float*>(call.outputs(4 * 5 * sizeof(float))), 1, 4, 5);
  call.args.cu_seqlens_q = call.vector<std::int64_t>(DType::int64, {0, 2, 2, 5});
  call.args.cu_seqlens_k = call.vector<std::int32_t>(DType::int32, {0, 3, 4, 6});
  call.options.max_seq_q = 3;
  call.options.max_seq_k = 3;
  return call;
}

Call Call::gradients() {
  Call call = everything();
  call.operation = Operation::backward;
  const auto output_like = [&](const ConstTensor& t) {
    return Tensor{call.outputs(bytes_of(t.dtype, t.extent)), t.dtype, t.extent,
                  bhsd_strides(t.extent)};
  };
  call.args.dout = ConstTensor::bhsd(call.inputs(bytes_of(DType::fp32, kOut)), DType::fp32, kOut);
  const Extents rows{.batch = kOut.batch, .head = kOut.head, .seq = kOut.seq};
  call.args.dlse = ConstTensor::bhsd(call.inputs(bytes_of(DType::fp32, rows)), DType::fp32, rows);
  call.args.dq = output_like(call.args.query);
  call.args.dk = output_like(call.args.key);
  call.args.dv = output_like(call.args.value);
  call.args.dbias = output_like(call.args.bias);
  call.args.dsink = output_like(call.args.sinks);
  return call;
}

void Call::run() const { call_in_one(operation, args, options); }

bool matches(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t skip = star; skip <= text.size(); ++skip) {
    if (matches(text.substr(skip), rest)) return true;
  }
  return false;
}

}  // namespace tessera::testing
