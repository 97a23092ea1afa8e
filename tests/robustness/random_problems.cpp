// Random problems of some milliseconds, judged by the reference on every kernel of the build.
//
//     random_problems --seconds 60             for a minute, with a seed that it prints
//     random_problems --seed 7 --first 41 --count 1    again the one that failed
//
// Exit status 0: all well; 1: a problem failed; 2: wrong usage.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include <CLI/CLI.hpp>

#include "tests/conformance/random.hpp"
#include "tests/conformance/runner.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kCost = 1'500'000;  // multiply-adds: some 10 ms everywhere

std::int64_t draw_length(Random& random) {
  switch (random.below(4)) {
    case 0:
      return random.between(0, 9);
    case 1:  // about a multiple of a tile
      return std::max<std::int64_t>(16 * random.between(0, 20) + random.between(-1, 1), 0);
    case 2:
      return random.between(1, 130);
    default:
      return random.between(1, 1100);
  }
}

Mask draw_mask(Random& random) {
  const Alignment alignment = random.chance(0.5) ? Alignment::TopLeft : Alignment::BottomRight;
  const auto edge = [&]() -> std::optional<std::int64_t> {
    switch (random.below(4)) {
      case 0:
        return std::nullopt;
      case 1:
        return 0;
      case 2:
        return random.between(0, 20);
      default:
        return random.between(0, 1200);
    }
  };
  switch (random.below(3)) {
    case 0:
      return Mask::none();
    case 1:
      return Mask::causal(alignment);
    default:
      return Mask::window(edge(), edge(), alignment);
  }
}

std::vector<std::int32_t> draw_ends(Random& random, std::int64_t batch, std::int64_t extent) {
  std::vector<std::int32_t> ends;
  for (std::int64_t b = 0; b < batch; ++b) {
    ends.push_back(static_cast<std::int32_t>(random.between(0, extent + extent / 4)));
  }
  return ends;
}

void draw_lengths(Case& c, Random& random) {
  c.packed = random.chance(0.3);
  if (c.packed) {
    const std::int64_t segments = random.between(0, 9);
    for (std::int64_t i = 0; i < segments; ++i) {
      c.lengths_q.push_back(random.chance(0.2) ? 0 : draw_length(random));
      c.lengths_k.push_back(random.chance(0.2) ? 0 : draw_length(random));
    }
    while (c.multiply_adds() > kCost) {
      for (auto* lengths : {&c.lengths_q, &c.lengths_k}) {
        for (std::int64_t& length : *lengths) length = length * 3 / 4;
      }
    }
    c.wide_prefix_sums = random.chance(0.5);
    // A longest segment of 0 is none that is stated: then modifiers are as long as the total.
    c.slack_k = c.longest_k() > 0 && random.chance(0.3) ? random.between(1, 80) : 0;
    if (c.longest_q() == 0 || c.longest_k() == 0) c.states_maximum = false;
    return;
  }
  c.batch = random.between(1, 4);
  const bool decode = c.operation == Operation::decode;
  c.seq_q = decode ? random.between(0, 9) : draw_length(random);
  c.seq_k = decode ? random.between(1, 6000) : random.chance(0.3) ? c.seq_q : draw_length(random);
  while (c.multiply_adds() > kCost) {
    (c.seq_q > c.seq_k ? c.seq_q : c.seq_k) /= 2;
  }
  if (random.chance(0.2)) c.key_begin = draw_ends(random, c.batch, c.seq_k);
  if (random.chance(0.3)) c.key_end = draw_ends(random, c.batch, c.seq_k);
  if (random.chance(0.2)) c.query_end = draw_ends(random, c.batch, c.seq_q);
}

unsigned draw_broadcast(Random& random) {
  return random.chance(0.5) ? kNoBroadcast : static_cast<unsigned>(random.below(32));
}

void draw_modifiers(Case& c, Random& random) {
  if (random.chance(0.4)) return;  // the plain flavour
  if (random.chance(0.3)) c.softcap = static_cast<float>(0.1 + 30 * random.uniform());
  if (random.chance(0.3)) c.alibi = random.chance(0.5) ? Alibi::per_head : Alibi::per_batch;
  c.negative_slopes = random.chance(0.3);
  if (random.chance(0.3)) c.bias = random.chance(0.5) ? Bias::fp32 : Bias::input;
  c.bias_broadcast = draw_broadcast(random);
  c.boolean_mask = random.chance(0.3);
  c.boolean_broadcast = draw_broadcast(random);
  c.visible = random.uniform();
  c.sinks = random.chance(0.3);
  if (random.chance(0.3)) c.dropout = random.uniform();
  c.seed = random.next();
  c.offset = random.next();
  c.seed_on_device = random.chance(0.5);
}

Case draw_case(std::uint64_t seed, std::int64_t index) {
  Random random(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(index));
  Case c;
  constexpr DType kTypes[] = {DType::fp32, DType::fp16, DType::bf16};
  c.label = "random";
  c.dtype = random.pick(kTypes);
  const std::int64_t largest = std::min<std::int64_t>(largest_head_dim(), 256);
  c.dim = 8 * random.between(1, largest / 8);
  c.dim_v = random.chance(0.6) ? c.dim : 8 * random.between(1, largest / 8);
  c.head_k = random.between(1, 3);
  c.head_q = c.head_k * random.between(1, 6);
  // A forward case runs on decode's kernels, too.
  constexpr Operation kOperations[] = {Operation::forward, Operation::backward, Operation::backward,
                                       Operation::decode};
  c.operation = random.pick(kOperations);
  draw_lengths(c, random);
  c.mask = draw_mask(random);
  draw_modifiers(c, random);
  c.layout = static_cast<Layout>(random.below(9));
  if (random.chance(0.2)) {
    const double usual = 1 / std::sqrt(static_cast<double>(c.dim));
    c.scale = static_cast<float>(2 * usual * (random.uniform() - 0.5));
  }
  constexpr Distribution kDistributions[] = {Distribution::gaussian, Distribution::skewed,
                                             Distribution::large};
  c.distribution = random.pick(kDistributions);
  if (c.dtype == DType::fp32 && c.distribution == Distribution::large) {
    c.distribution = Distribution::gaussian;
  }
  c.lse = random.chance(0.8);
  c.exact_end = random.chance(0.5);
  c.fill = random.next();
  if (c.dtype == DType::fp16 && c.operation != Operation::backward && random.chance(0.25))
    c.accumulate = Accumulate::fp16;
  return c.operation == Operation::backward ? backward_of(c) : c;
}

struct Request {
  double seconds = 0;
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

int run_all(const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::int64_t failed = 0;
  std::int64_t index = request.first;
  for (; (request.count == 0 || index < request.first + request.count) &&
         (request.seconds <= 0 || elapsed() < request.seconds);
       ++index) {
    const std::vector<std::string> failures = run(draw_case(request.seed, index));
    for (const std::string& text : failures) std::printf("%s\n", text.c_str());
    if (failures.empty()) continue;
    ++failed;
    std::printf("again: random_problems --seed %llu --first %lld --count 1\n",
                static_cast<unsigned long long>(request.seed), static_cast<long long>(index));
  }
  std::printf("seed %llu: %lld problems, %lld failed, %.1f s\n",
              static_cast<unsigned long long>(request.seed),
              static_cast<long long>(index - request.first), static_cast<long long>(failed),
              elapsed());
  for (const auto& [kernel, runs] : tally().runs) {
    std::printf("  %-28s %lld judged\n", kernel.c_str(), static_cast<long long>(runs));
  }
  for (const auto& [kernel, runs] : tally().not_run) {
    std::printf("  %-28s %lld not run here\n", kernel.c_str(), static_cast<long long>(runs));
  }
  if (tally().runs.empty() && !tally().cases.empty()) std::printf("no kernel ran\n");
  return failed > 0 || tally().runs.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  tessera::testing::Request request;
  request.seed = std::random_device{}();
  CLI::App app{"Random attention problems against the reference, on every kernel of the build."};
  app.add_option("--seconds", request.seconds, "stop after so many seconds");
  app.add_option("--seed", request.seed, "of all problems; random if absent");
  app.add_option("--first", request.first, "index of the first problem");
  app.add_option("--count", request.count, "problems; 300 if neither this nor --seconds is given");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  if (request.count == 0 && request.seconds <= 0) request.count = 300;
  std::printf("seed %llu\n", static_cast<unsigned long long>(request.seed));
  std::fflush(stdout);
  return tessera::testing::run_all(request);
}
