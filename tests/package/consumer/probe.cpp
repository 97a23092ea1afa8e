// A program that uses Tessera from outside.
//   probe                computes something whose result is known
//   probe LARGEST        also: this build has no head dimension above LARGEST, and says so
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "probe: " << what << '\n';
  ++failures;
}

tessera::Args arguments(std::vector<float>& data, std::vector<float>& out, std::int64_t dim) {
  const tessera::Extents extent{.batch = 1, .head = 2, .seq = 3, .dim = dim};
  const auto input = tessera::ConstTensor::bhsd(data.data(), tessera::DType::fp32, extent);
  return {.query = input,
          .key = input,
          .value = input,
          .out = tessera::Tensor::bhsd(out.data(), tessera::DType::fp32, extent)};
}

// Under a causal mask the first row sees one key: its output is that key's value.
void check_forward() {
  constexpr std::int64_t kDim = 64;
  constexpr std::size_t kSize = 2 * 3 * kDim;
  std::vector<float> data(kSize);
  std::vector<float> out(kSize, -1.0F);
  for (std::size_t i = 0; i < kSize; ++i) data[i] = static_cast<float>(i % 7) / 8;
  tessera::forward(arguments(data, out, kDim),
                   {.mask = tessera::Mask::causal(tessera::Alignment::TopLeft)});
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t d = 0; d < kDim; ++d) {
      const std::size_t at = head * 3 * kDim + d;
      expect(out[at] == data[at], "wrong output in element " + std::to_string(at));
    }
  }
}

void check_largest(std::int64_t largest) {
  const std::int64_t dim = largest + 8;
  std::vector<float> data(static_cast<std::size_t>(2 * 3 * dim), 1.0F);
  std::vector<float> out(data.size(), -1.0F);
  const tessera::Args args = arguments(data, out, dim);
  const tessera::Support support = tessera::supports(tessera::describe(args));
  expect(support.status == tessera::Support::Status::Unsupported,
         "head_dim " + std::to_string(dim) + " should be Unsupported");
  expect(support.reason.find(std::to_string(largest)) != std::string::npos,
         "the reason does not name " + std::to_string(largest) + ": " + support.reason);
  try {
    tessera::forward(args);
    expect(false, "forward took head_dim " + std::to_string(dim));
  } catch (const tessera::Unsupported&) {
  }
  expect(out == std::vector<float>(out.size(), -1.0F), "the output was touched");
}

}  // namespace

int main(int argc, char** argv) {
  const tessera::BuildInfo info = tessera::build_info();
  std::cout << info.backend << ", " << info.toolkit << ", " << info.compiler << ", head dimensions "
            << info.head_dims << ", commit " << info.commit << '\n';
  expect(tessera::library_version() == tessera::kHeaderVersion, "headers of another version");
  check_forward();
  if (argc > 1) check_largest(std::atoll(argv[1]));
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
