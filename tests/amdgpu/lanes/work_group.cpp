#include "tests/amdgpu/lanes/work_group.hpp"

#include <fmt/core.h>
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/amdgpu/lanes/current.hpp"
#include "tests/amdgpu/lanes/fiber.hpp"
#include "tests/amdgpu/lanes/lds.hpp"

namespace tessera::amdgpu::lanes {
namespace {

constexpr Operation kBarrier{"barrier", nullptr};

struct Lane {
  Fiber* fiber = nullptr;
  int thread = 0;
  bool ended = false;
  bool waits = false;
  const Operation* operation = nullptr;  // that it has come to
  const void* site = nullptr;            // in the code
  const void* in = nullptr;
  void* out = nullptr;
};

// Which wave is a lane of; what they do.
enum class State { Runs, AtBarrier, Ended };

class WorkGroup {
 public:
  WorkGroup(const Launch& launch, const std::function<void()>& kernel)
      : launch_(launch),
        kernel_(kernel),
        random_(launch.seed),
        lanes_(static_cast<std::size_t>(launch.threads)),
        waves_(static_cast<std::size_t>(launch.threads / launch.wave)) {}

  void run(unsigned group);

  const Launch& launch() const { return launch_; }
  unsigned group() const { return group_; }
  Lane& lane() { return *lane_; }
  int wave() const { return wave_; }
  Counts& counts() { return counts_; }
  void call() { kernel_(); }
  void set_failure(std::string&& what) { failure_ = std::move(what); }
  bool in_lane() const { return lane_ != nullptr; }

 private:
  void step(int wave);
  std::vector<int> together(int wave, int which) const;
  std::vector<int> ready(int wave) const;
  int choose(const std::vector<int>& ready);
  Lane& lane_of(int wave, int lane) {
    return lanes_[static_cast<std::size_t>(wave * launch_.wave + lane)];
  }
  const Lane& lane_of(int wave, int lane) const {
    return lanes_[static_cast<std::size_t>(wave * launch_.wave + lane)];
  }
  std::string describe(int wave, int lane) const;

  const Launch launch_;
  const std::function<void()>& kernel_;
  std::minstd_rand random_;
  std::vector<Lane> lanes_;
  std::vector<State> waves_;
  unsigned group_ = 0;
  Lane* lane_ = nullptr;  // that runs
  int wave_ = 0;          // that runs
  std::string failure_;
  Counts counts_;
};

WorkGroup* running = nullptr;

// Stacks are kept from run to run.
Fiber* fiber(std::size_t number) {
  static std::vector<std::unique_ptr<Fiber>> all;
  while (all.size() <= number) all.push_back(std::make_unique<Fiber>());
  return all[number].get();
}

void run_lane() {
  running->call();
  Lane& lane = running->lane();
  lane.ended = true;
  lane.operation = nullptr;
  lane.fiber->yield();
}

std::string WorkGroup::describe(int wave, int lane) const {
  const Lane& l = lane_of(wave, lane);
  if (l.ended) return fmt::format("lane {} has ended", lane);
  return fmt::format("lane {} is at {} in {}", lane, l.operation->name, place_of(l.site));
}

// Those that have come to what the first lane of `which` has come to.
std::vector<int> WorkGroup::together(int wave, int which) const {
  const Lane& first = lane_of(wave, which);
  std::vector<int> all;
  for (int i = 0; i < launch_.wave; ++i) {
    const Lane& other = lane_of(wave, i);
    if (other.ended == first.ended &&
        (first.ended || (other.operation == first.operation && other.site == first.site)))
      all.push_back(i);
  }
  return all;
}

// The lanes that do an operation now: all of them, or those that a branch led to one that takes
// some.
std::vector<int> WorkGroup::ready(int wave) const {
  std::vector<int> all = together(wave, 0);
  if (static_cast<int>(all.size()) == launch_.wave) return all;
  for (int i = 0; i < launch_.wave; ++i) {
    const Lane& lane = lane_of(wave, i);
    if (!lane.ended && lane.operation->of_some) return together(wave, i);
  }
  int other = 0;
  for (const int same : all) other += same == other;
  throw Failure(fmt::format("lanes of wave {} of work-group {} part: {}; {}", wave, group_,
                            describe(wave, 0), describe(wave, other)));
}

// Lets the wave's lanes come to their next operation, and does it.
void WorkGroup::step(int wave) {
  wave_ = wave;
  const bool backwards =
      launch_.order == Order::Reverse || (launch_.order == Order::Random && random_() % 2 == 0);
  for (int i = 0; i < launch_.wave; ++i) {
    lane_ = &lane_of(wave, backwards ? launch_.wave - 1 - i : i);
    if (!lane_->ended && !lane_->waits) lane_->fiber->resume();
    lane_ = nullptr;
    if (!failure_.empty()) throw Failure(failure_);
  }
  const std::vector<int> lanes = ready(wave);
  const Lane& first = lane_of(wave, lanes.front());
  State& state = waves_[static_cast<std::size_t>(wave)];
  if (first.ended) {
    state = State::Ended;
    return;
  }
  if (first.operation == &kBarrier) {
    state = State::AtBarrier;
  } else {
    ++counts_.operations;
    Wave all{.number = wave, .lanes = launch_.wave, .site = first.site, .in = {}, .out = {}};
    for (const int i : lanes) {
      const auto at = static_cast<std::size_t>(i);
      all.in[at] = lane_of(wave, i).in;
      all.out[at] = lane_of(wave, i).out;
    }
    first.operation->apply(all);
  }
  for (const int i : lanes) lane_of(wave, i).waits = false;
}

int WorkGroup::choose(const std::vector<int>& ready) {
  switch (launch_.order) {
    case Order::Forward:
      return ready.front();
    case Order::Reverse:
      return ready.back();
    case Order::Random:
      break;
  }
  // Mostly the same as before, so that some waves come far ahead of others.
  const bool same = std::find(ready.begin(), ready.end(), wave_) != ready.end();
  return same && random_() % 16 != 0 ? wave_ : ready[random_() % ready.size()];
}

void WorkGroup::run(unsigned group) {
  group_ = group;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i] = {.fiber = fiber(i), .thread = static_cast<int>(i)};
    lanes_[i].fiber->start(run_lane);
  }
  std::fill(waves_.begin(), waves_.end(), State::Runs);
  begin_lds(static_cast<int>(waves_.size()));
  std::vector<int> ready;
  for (;;) {
    ready.clear();
    int ended = 0;
    for (std::size_t w = 0; w < waves_.size(); ++w) {
      if (waves_[w] == State::Runs) ready.push_back(static_cast<int>(w));
      ended += waves_[w] == State::Ended;
    }
    if (!ready.empty()) {
      step(choose(ready));
      continue;
    }
    if (ended == static_cast<int>(waves_.size())) break;
    if (ended != 0)
      throw Failure(
          fmt::format("{} of the {} waves of work-group {} have ended, others wait at a "
                      "barrier",
                      ended, waves_.size(), group));
    ++counts_.barriers;
    begin_lds_phase();
    std::fill(waves_.begin(), waves_.end(), State::Runs);
  }
  end_lds();
}

}  // namespace

std::string place_of(const void* site) {
  // One string after another, the last empty: what was inlined in what.
  std::array<char, 2048> text{};
  const auto address = static_cast<const char*>(site) - 1;  // of the call, not of what follows it
  __sanitizer_symbolize_pc(const_cast<char*>(address), "%f %S", text.data(), text.size() - 2);
  std::string all;
  for (const char* one = text.data(); *one != '\0'; one += std::strlen(one) + 1)
    all += (all.empty() ? "" : " < ") + std::string(one);
  return fmt::format("{} ({})", all, site);
}

int current_wave() { return running->wave(); }
unsigned current_group() { return running->group(); }

Counts run(const Launch& launch, const std::function<void()>& kernel) {
  if (launch.wave != 32 && launch.wave != 64) throw std::invalid_argument("waves of 32 or 64");
  if (launch.threads <= 0 || launch.threads % launch.wave != 0)
    throw std::invalid_argument("threads that are no whole waves");
  WorkGroup group(launch, kernel);
  struct Running {
    explicit Running(WorkGroup& which) { running = &which; }
    ~Running() {
      running = nullptr;
      end_lds();
    }
  } const scope(group);
  for (unsigned i = 0; i < launch.groups; ++i)
    group.run(launch.order == Order::Reverse ? launch.groups - 1 - i : i);
  return group.counts();
}

int thread() { return running->lane().thread; }
unsigned group() { return running->group(); }
const void* argument() { return running->launch().argument; }
int wave_size() { return running->launch().wave; }

namespace {

void wait_at(const Operation& operation, const void* site, const void* in, void* out) {
  Lane& lane = running->lane();
  lane.operation = &operation;
  lane.site = site;
  lane.in = in;
  lane.out = out;
  lane.waits = true;
  lane.fiber->yield();
}

}  // namespace

void meet(const Operation& operation, const void* in, void* out) {
  wait_at(operation, __builtin_return_address(0), in, out);
}

void barrier() { wait_at(kBarrier, __builtin_return_address(0), nullptr, nullptr); }

void fail(std::string&& what) {
  if (running == nullptr || !running->in_lane()) throw Failure(what);
  running->set_failure(std::move(what));
  for (;;) running->lane().fiber->yield();
}

}  // namespace tessera::amdgpu::lanes
