// A training step's attention: forward keeps the output and the log-sum-exp, backward makes the
// gradients of a loss from the output's. The loss is the sum of the output times `weights`; a small
// step of the query against its gradient lowers it by the step times the gradient's square.
//
// Prints:
//   the loss falls as its gradient says: yes
#include <cmath>
#include <cstddef>
#include <iostream>
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

constexpr Extents kShape{.batch = 1, .head = 2, .seq = 16, .dim = 8};
constexpr std::size_t kCount = 2 * 16 * 8, kBytes = kCount * sizeof(float);

std::vector<float> wave(float frequency) {
  std::vector<float> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) numbers[i] = std::sin(frequency * static_cast<float>(i));
  return numbers;
}

Buffer upload(const std::vector<float>& numbers) {
  Buffer buffer(kBytes);
  copy(buffer.data(), numbers.data(), kBytes);
  return buffer;
}

std::vector<float> download(const Buffer& buffer) {
  std::vector<float> numbers(kCount);
  copy(numbers.data(), buffer.data(), kBytes);
  Stream{}.synchronize();
  return numbers;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kCount; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

int main() {
  std::vector<float> query = wave(0.7F);
  const std::vector<float> weights = wave(0.3F);
  Buffer q = upload(query), k = upload(wave(1.1F)), v = upload(wave(1.9F)), dout = upload(weights);
  Buffer out(kBytes), lse(2 * 16 * sizeof(float)), dq(kBytes), dk(kBytes), dv(kBytes);

  const Options options{.mask = Mask::causal(Alignment::BottomRight)};
  Args args{.query = ConstTensor::bhsd(q.data(), DType::fp32, kShape),
            .key = ConstTensor::bhsd(k.data(), DType::fp32, kShape),
            .value = ConstTensor::bhsd(v.data(), DType::fp32, kShape),
            .out = Tensor::bhsd(out.data(), DType::fp32, kShape),
            .lse = Tensor::lse(static_cast<float*>(lse.data()), 1, 2, 16)};
  forward(args, options);
  const double loss = dot(download(out), weights);

  args.dout = ConstTensor::bhsd(dout.data(), DType::fp32, kShape);
  args.dq = Tensor::bhsd(dq.data(), DType::fp32, kShape);
  args.dk = Tensor::bhsd(dk.data(), DType::fp32, kShape);
  args.dv = Tensor::bhsd(dv.data(), DType::fp32, kShape);
  backward(args, options);

  const std::vector<float> gradient = download(dq);
  constexpr float kStep = 0.05F;
  for (std::size_t i = 0; i < kCount; ++i) query[i] -= kStep * gradient[i];
  copy(q.data(), query.data(), kBytes);
  forward(args, options);
  const double fall = loss - dot(download(out), weights);
  const double promised = kStep * dot(gradient, gradient);
  std::cout << "the loss falls as its gradient says: "
            << (std::fabs(fall / promised - 1) < 0.05 ? "yes" : "no") << '\n';
}
