#include <memory>
#include <span>
#include <stdexcept>

#include "bench/bandwidth.hpp"
#include "bench/figures/figures.hpp"

namespace tessera::bench {
namespace {

constexpr double kGoal = 0.80;
constexpr std::size_t kCaches = 8;              // K and V together are so many last-level caches
constexpr std::size_t kSmallest = 256U << 20U;  // where the system does not say how large that is

std::span<const std::byte> bytes_of_tensor(const ConstTensor& tensor) {
  const Extents& e = tensor.extent;
  const auto count = static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim);
  return {static_cast<const std::byte*>(tensor.data),
          count * static_cast<std::size_t>(size_of(tensor.dtype))};
}

Json figure_of(Case c, int rounds) {
  const DeviceInfo device = device_info();
  const std::size_t wanted = std::max(kSmallest, kCaches * last_level_cache());
  c.seq = 1;
  c.seq = static_cast<std::int64_t>(static_cast<double>(wanted) / bytes_of(c)) / 1024 * 1024 + 1024;
  const Workload workload(c);
  const Runner runner(workload);
  const std::vector<std::span<const std::byte>> buffers{bytes_of_tensor(workload.args().key),
                                                        bytes_of_tensor(workload.args().value)};
  std::vector<double> seconds, bandwidth, fraction;
  runner.run();
  double before = measure_read_bandwidth(buffers, device.threads);
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(seconds_of([&] { runner.run(); }, 0, 1));
    const double after = measure_read_bandwidth(buffers, device.threads);
    bandwidth.push_back((before + after) / 2);
    fraction.push_back(bytes_of(c) / seconds.back() / bandwidth.back());
    before = after;
  }
  Json figure{{"name", full_name_of(c)},
              {"kernel", runner.kernel()},
              {"batch", c.batch},
              {"kv_bytes", bytes_of(c)},
              {"milliseconds", median(seconds) * 1e3},
              {"gigabytes_per_second", bytes_of(c) / median(seconds) / 1e9},
              {"read_gigabytes_per_second", median(bandwidth) / 1e9}};
  add_rounds(figure, "bandwidth_fraction", fraction);
  figure["goal"] = kGoal;
  figure["met"] = median(fraction) >= kGoal;
  return figure;
}

}  // namespace

Json decode_figures(int rounds) {
  Json figures = Json::array();
  const auto add = [&](const Case& c) { figures.push_back(figure_of(c, rounds)); };
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    Case c{.dtype = dtype,
           .head_dim = 128,
           .visible = Visible::Causal,
           .operation = Operation::decode};
    add(c);
    c.extra = Extra::Gqa4;
    add(c);
    c.extra = Extra::None;
    c.batch = 8;
    add(c);
  }
  return figures;
}

}  // namespace tessera::bench
