#include <memory>
#include <stdexcept>

#include "bench/figures/figures.hpp"
#include "bench/peak.hpp"

namespace tessera::bench {
namespace {

struct Goals {
  double full;
  double causal;
};

// Shares of the peak.
Goals goals_of(std::string_view isa, Operation operation) {
  if (isa == "avx2") {
    return operation == Operation::forward ? Goals{.full = 0.76, .causal = 0.71}
                                           : Goals{.full = 0.72, .causal = 0.65};
  }
  return {.full = 0.80, .causal = 0.75};
}

struct Cell {
  Case c;
  double goal;
  Workload workload{c};
  Runner runner{workload};
  std::vector<double> seconds{}, peak{}, fraction{};
};

}  // namespace

Json arithmetic_figures(Operation operation, int rounds) {
  const DeviceInfo device = device_info();
  if (!has_peak(device.isa))
    throw std::runtime_error("no peak is known for instruction set " + device.isa);
  const Goals goals = goals_of(device.isa, operation);
  std::vector<std::unique_ptr<Cell>> cells;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const Visible visible : {Visible::Full, Visible::Causal}) {
      const Case c{.head_dim = head_dim, .visible = visible, .seq = 2048, .operation = operation};
      cells.push_back(
          std::make_unique<Cell>(c, visible == Visible::Full ? goals.full : goals.causal));
    }
  }
  for (int round = 0; round < rounds; ++round) {
    double before = measure_peak(device.isa, device.threads);
    for (const auto& cell : cells) {
      cell->runner.run();  // wakes the threads that slept meanwhile
      cell->seconds.push_back(seconds_of([&] { cell->runner.run(); }, 0.2));
      const double after = measure_peak(device.isa, device.threads);
      cell->peak.push_back((before + after) / 2);
      cell->fraction.push_back(flops_of(cell->c) / cell->seconds.back() / cell->peak.back());
      before = after;
    }
  }
  Json figures = Json::array();
  for (const auto& cell : cells) {
    const double seconds = median(cell->seconds);
    Json figure{{"name", full_name_of(cell->c)},
                {"kernel", cell->runner.kernel()},
                {"milliseconds", seconds * 1e3},
                {"gflops_per_second", flops_of(cell->c) / seconds / 1e9},
                {"peak_gflops_per_second", median(cell->peak) / 1e9}};
    add_rounds(figure, "peak_fraction", cell->fraction);
    figure["goal"] = cell->goal;
    figure["met"] = median(cell->fraction) >= cell->goal;
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace tessera::bench
