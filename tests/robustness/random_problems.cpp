// Random problems of some milliseconds, judged by the reference on every kernel of the build.
//
//     random_problems --seconds 60             for a minute, with a seed that it prints
//     random_problems --seed 7 --first 41 --count 1    again the one that failed
//
// A problem whose numbers are beyond their bound, by at most a factor of 2, is drawn again with
// other numbers three times, and is wrong if one of these fails, too; otherwise it is listed, and
// counted apart. decision.hpp says why. Any other failure is wrong at once.
//
// Exit status 0: nothing is wrong; 1: a problem is, or no kernel ran; 2: wrong usage.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include <CLI/CLI.hpp>

#include "tests/conformance/random.hpp"
#include "tests/conformance/runner.hpp"
#include "tests/robustness/decision.hpp"

namespace tessera::testing {
namespace {

// In multiply-adds: some 10 ms for all kernels and the reference. What an element of an operand
// costs to fill, copy, compare and judge counts as so many.
constexpr std::int64_t kCost = 1'000'000;
constexpr std::int64_t kElementCost = 30;

std::int64_t cost(const Case& c) {
  const auto sum = [](const std::vector<std::int64_t>& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  };
  const std::int64_t rows = c.packed ? c.head_q * sum(c.lengths_q) + c.head_k * sum(c.lengths_k)
                                     : c.batch * (c.head_q * c.seq_q + c.head_k * c.seq_k);
  return c.multiply_adds() + kElementCost * rows * (c.dim + c.dim_v);
}

// Of each group, or a group; false if there is but one head.
bool drop_a_head(Case& c) {
  if (c.head_q > c.head_k) {
    c.head_q -= c.head_k;
  } else if (c.head_k > 1) {
    c.head_q = --c.head_k;
  } else {
    return false;
  }
  return true;
}

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
    while (cost(c) > kCost) {
      if (random.chance(0.5) && drop_a_head(c)) continue;
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
  while (cost(c) > kCost) {
    if (random.chance(0.5) && c.batch > 1) {
      --c.batch;
    } else if (!random.chance(0.7) || !drop_a_head(c)) {
      std::int64_t& longest = c.seq_q > c.seq_k ? c.seq_q : c.seq_k;
      longest = longest * 3 / 4;
    }
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
  c.expensive = true;  // cost() bounds it; the reference's time, on a busy machine, says nothing
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
  constexpr Distribution kAlike[] = {Distribution::alike, Distribution::sink};
  c.distribution = random.pick(kDistributions);
  if (c.dtype == DType::fp32 && c.distribution == Distribution::large) {
    c.distribution = Distribution::gaussian;
  }
  c.lse = random.chance(0.8);
  c.exact_end = random.chance(0.5);
  c.fill = random.next();
  if (c.dtype == DType::fp16 && c.operation != Operation::backward && random.chance(0.25))
    c.accumulate = Accumulate::fp16;
  if (random.chance(0.15)) {
    c.distribution = random.pick(kAlike);
    // Of decode's lengths, which are those that show what long sums lose.
    if (c.operation == Operation::decode) c.operation = Operation::forward;
  }
  return c.operation == Operation::backward ? backward_of(c) : c;
}

struct Request {
  double seconds = 0;
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// One draw of a problem on every kernel.
struct Draw {
  std::vector<std::string> failures{};
  Outcome outcome{};
};

Draw run_once(const Case& c) {
  tally().worst.clear();
  Draw draw{.failures = run(c)};
  draw.outcome.failures = draw.failures.size();
  for (const auto& [kernel, ratio] : tally().worst) {  // a failure each, if it is beyond its bound
    if (ratio > 1) ++draw.outcome.excesses;
    draw.outcome.ratio = std::max(draw.outcome.ratio, ratio);
  }
  return draw;
}

// The same problem with other numbers in its operands.
Case with_other_numbers(Case c, int draw) {
  c.fill = Random(c.fill + static_cast<std::uint64_t>(draw)).next();
  return c;
}

std::string reproducer(std::uint64_t seed, std::int64_t index) {
  return "random_problems --seed " + std::to_string(seed) + " --first " + std::to_string(index) +
         " --count 1";
}

// Prints what there is to say of a problem.
Decision judge_problem(std::uint64_t seed, std::int64_t index) {
  const Case c = draw_case(seed, index);
  const Draw first = run_once(c);
  std::vector<std::string> failures = first.failures;
  const Decision decision = decide(first.outcome, [&](int i) {
    Draw again = run_once(with_other_numbers(c, i));
    for (std::string& text : again.failures) {
      failures.push_back("with other numbers: " + std::move(text));
    }
    return again.outcome;
  });
  if (decision == Decision::near_miss) {
    std::printf("beyond the bound once, within it in three other draws: %.3f of it, %s\n",
                first.outcome.ratio, name(c).c_str());
  }
  if (decision == Decision::wrong) {
    for (const std::string& text : failures) std::printf("%s\n", text.c_str());
  }
  if (decision != Decision::right) std::printf("again: %s\n", reproducer(seed, index).c_str());
  std::fflush(stdout);
  return decision;
}

int run_all(const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::int64_t wrong = 0;
  std::int64_t near_misses = 0;
  std::int64_t index = request.first;
  for (; (request.count == 0 || index < request.first + request.count) &&
         (request.seconds <= 0 || elapsed() < request.seconds);
       ++index) {
    const Decision decision = judge_problem(request.seed, index);
    if (decision == Decision::wrong) ++wrong;
    if (decision == Decision::near_miss) ++near_misses;
  }
  std::printf(
      "seed %llu: %lld problems, %lld wrong, %lld beyond the bound once and within it in three "
      "other draws, %.1f s\n",
      static_cast<unsigned long long>(request.seed), static_cast<long long>(index - request.first),
      static_cast<long long>(wrong), static_cast<long long>(near_misses), elapsed());
  for (const auto& [kernel, runs] : tally().runs) {
    std::printf("  %-28s %lld judged\n", kernel.c_str(), static_cast<long long>(runs));
  }
  for (const auto& [kernel, runs] : tally().not_run) {
    std::printf("  %-28s %lld not run here\n", kernel.c_str(), static_cast<long long>(runs));
  }
  if (tally().runs.empty() && !tally().cases.empty()) std::printf("no kernel ran\n");
  // Chance is rare: see decision.hpp.
  const bool too_often = near_misses > 1 + (index - request.first) / 500;
  if (too_often) std::printf("beyond the bound too often to be chance\n");
  return wrong > 0 || too_often || tally().runs.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  tessera::testing::Request request;
  request.seed = std::random_device{}();
  CLI::App app{"Random attention problems against the reference, on every kernel of the build."};
  app.footer(
      "A bound is made of the error that the plain fp32 computation makes of the same numbers. "
      "Once\n"
      "in some thousand problems that one happens to round next to nothing, and right results are\n"
      "beyond the bound by some per cent. So a problem that is beyond it by at most a factor of 2 "
      "is\n"
      "drawn again with other numbers, three times. If one of these fails, too, the problem is "
      "wrong;\n"
      "otherwise it is listed and counted apart. Any other failure is wrong at once.\n\n"
      "Exit status 0: nothing is wrong; 1: a problem is, or no kernel ran; 2: wrong usage.");
  const CLI::Validator positive(
      [](const std::string& text) {
        const double seconds = std::strtod(text.c_str(), nullptr);
        return std::isfinite(seconds) && seconds > 0 ? "" : "is '" + text + "'; must be above 0";
      },
      "X", "seconds");
  const auto whole = CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max() / 2);
  app.add_option("--seconds", request.seconds, "stop after so many seconds")->check(positive);
  app.add_option("--seed", request.seed, "of all problems; random if absent");
  app.add_option("--first", request.first, "index of the first problem")->check(whole);
  app.add_option("--count", request.count, "problems; 300 if neither this nor --seconds is given")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max() / 2));
  std::string word;
  app.add_option("--kernels", word, "only kernels whose names hold this");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  tessera::testing::choose_kernels(word);
  if (request.count == 0 && request.seconds <= 0) request.count = 300;
  std::printf("seed %llu\n", static_cast<unsigned long long>(request.seed));
  std::fflush(stdout);
  return tessera::testing::run_all(request);
}
