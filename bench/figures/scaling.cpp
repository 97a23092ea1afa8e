// How time grows: with what is computed again, with documents' lengths, with the sequence.

#include <cmath>
#include <memory>

#include "bench/figures/figures.hpp"
#include "bench/layers.hpp"

namespace tessera::bench {
namespace {

constexpr double kRecomputeGoal = 1.32;  // of the time of keeping both
constexpr double kPackedGoal = 0.90;     // of the rate of a dense batch
constexpr double kGrowthGoal = 2.0, kGrowthSlack = 0.05;

struct Timed {
  Case c;
  Workload workload{c};
  Runner runner{workload};
  std::vector<double> seconds{};

  void measure(double least, std::int64_t calls) {
    runner.run();
    seconds.push_back(seconds_of([&] { runner.run(); }, least, calls));
  }
  // Each call apart: a disturbance spoils as many short calls as its own length, but one long one.
  void measure_calls(double least) {
    runner.run();
    for (double all = 0; all < least; all += seconds.back())
      seconds.push_back(seconds_of([&] { runner.run(); }, 0, 1));
  }
};

// Of y over x, by least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return xy / xx;
}

}  // namespace

Json recompute_figures(int rounds) {
  Json figures = Json::array();
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    const Case c{.head_dim = 64, .visible = visible, .seq = 2048};
    Stack both(c, Kept::Both), lse(c, Kept::Lse), nothing(c, Kept::Nothing);
    std::vector<double> seconds, lse_ratio, nothing_ratio;
    both.run();
    double before = seconds_of([&] { both.run(); }, 0, 1);
    for (int round = 0; round < rounds; ++round) {
      const double with_lse = seconds_of([&] { lse.run(); }, 0, 1);
      const double with_nothing = seconds_of([&] { nothing.run(); }, 0, 1);
      const double after = seconds_of([&] { both.run(); }, 0, 1);
      seconds.push_back((before + after) / 2);
      lse_ratio.push_back(with_lse / seconds.back());
      nothing_ratio.push_back(with_nothing / seconds.back());
      before = after;
    }
    const auto add = [&](const char* name, const Stack& stack, const std::vector<double>& ratio) {
      Json figure{{"name", "stack/" + name_of(c) + '/' + name},
                  {"kept_bytes", stack.kept_bytes()},
                  {"kept_bytes_of_both", both.kept_bytes()},
                  {"milliseconds_of_both", median(seconds) * 1e3}};
      add_rounds(figure, "time_ratio", ratio);
      figure["goal"] = kRecomputeGoal;
      figure["met"] = median(ratio) <= kRecomputeGoal;
      figures.push_back(std::move(figure));
    };
    add("lse", lse, lse_ratio);
    add("nothing", nothing, nothing_ratio);
  }
  return figures;
}

Json packed_figures(int rounds) {
  Json figures = Json::array();
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    constexpr std::int64_t kDocuments = 64, kMean = 512;
    Timed packed{Case{
        .head_dim = 64, .visible = visible, .seq = kDocuments * kMean, .documents = kDocuments}};
    Timed dense{Case{.head_dim = 64, .visible = visible, .seq = kMean, .batch = kDocuments}};
    std::vector<double> ratio;
    dense.measure(0.2, 1);
    for (int round = 0; round < rounds; ++round) {
      const double before = dense.seconds.back();
      packed.measure(0.2, 1);
      dense.measure(0.2, 1);
      const double seconds = (before + dense.seconds.back()) / 2;
      ratio.push_back(flops_of(packed.c) / packed.seconds.back() / (flops_of(dense.c) / seconds));
    }
    Json figure{{"name", "packed/" + name_of(packed.c)},
                {"documents", kDocuments},
                {"milliseconds", median(packed.seconds) * 1e3},
                {"gflops_per_second", flops_of(packed.c) / median(packed.seconds) / 1e9}};
    add_rounds(figure, "rate_ratio", ratio);
    figure["goal"] = kPackedGoal;
    figure["met"] = median(ratio) >= kPackedGoal;
    figures.push_back(std::move(figure));
  }
  return figures;
}

Json growth_figures(int rounds) {
  std::vector<std::unique_ptr<Timed>> cells;
  for (const std::int64_t seq : {1024, 2048, 4096, 8192, 16384})
    cells.push_back(std::make_unique<Timed>(Case{.head_dim = 64, .seq = seq}));
  for (int round = 0; round < rounds; ++round)
    for (const auto& cell : cells) cell->measure_calls(0.1);
  std::vector<double> seq, seconds;
  Json times = Json::object();
  for (const auto& cell : cells) {
    const double one = median(cell->seconds);
    seq.push_back(std::log2(static_cast<double>(cell->c.seq)));
    seconds.push_back(std::log2(one));
    times[std::to_string(cell->c.seq)] = one * 1e3;
  }
  const double exponent = slope(seq, seconds);
  return Json::array({{{"name", "growth/fp32/d64/full"},
                       {"milliseconds", times},
                       {"exponent", exponent},
                       {"goal", kGrowthGoal},
                       {"slack", kGrowthSlack},
                       {"met", std::fabs(exponent - kGrowthGoal) <= kGrowthSlack}}});
}

}  // namespace tessera::bench
