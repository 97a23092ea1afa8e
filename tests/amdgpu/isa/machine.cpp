#include "tests/amdgpu/isa/machine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "tests/amdgpu/isa/cross_lane.hpp"
#include "tests/amdgpu/isa/machine_setup.hpp"
#include "tests/amdgpu/isa/opcodes.hpp"
#include "tests/amdgpu/isa/state.hpp"

namespace tessera::amdgpu {
namespace {

constexpr u64 kMostInstructions = u64{1} << 33;  // of a wave: no kernel of ours comes near

const char* counter_name(Counter counter) {
  constexpr std::array<const char*, 4> kNames{"vector load", "vector store", "LDS or scalar",
                                              "scalar load"};
  return kNames[static_cast<std::size_t>(counter)];
}

std::string register_text(const RegisterSet& set) {
  for (int i = 0; i < kVectorRegisters; ++i)
    if (set.vector[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1)
      return i < kAccumulators ? fmt::format("v{}", i) : fmt::format("a{}", i - kAccumulators);
  for (int i = 0; i < kScalarRegisters; ++i)
    if (set.scalar[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) return fmt::format("s{}", i);
  return "no register";
}

bool is_lds(const Instruction& in) { return in.opcode.starts_with("ds_"); }

// Loads of one kind arrive in order, so a second one may write what a first one still will.
void check_pending(const Wave& w, const Instruction& in) {
  RegisterSet touched = in.touched;
  Counter counter{};
  const PendingEntry* entry = nullptr;
  if (in.is_load) {
    RegisterSet read = touched;
    read.remove(in.written);
    entry = w.pending.find(read, counter);
    if (!entry)
      entry = w.pending.find(in.written, counter,
                             static_cast<int>(is_lds(in) ? Counter::Lds : Counter::VectorLoads));
  } else {
    entry = w.pending.find(touched, counter);
  }
  if (!entry) return;
  RegisterSet common{};
  for (std::size_t i = 0; i < common.vector.size(); ++i)
    common.vector[i] = entry->registers.vector[i] & touched.vector[i];
  for (std::size_t i = 0; i < common.scalar.size(); ++i)
    common.scalar[i] = entry->registers.scalar[i] & touched.scalar[i];
  throw Finding(fmt::format("a wait is missing: {} is used while the {} of '{}' is outstanding",
                            register_text(common), counter_name(counter),
                            w.group->program->instructions[entry->instruction].text));
}

class Runner {
 public:
  Runner(const Program& program, const Kernel& kernel, const CodeObject& object,
         const Launch& launch, const MemoryMap& memory, const Settings& settings)
      : program_(program),
        kernel_(kernel),
        launch_(launch),
        random_(settings.seed),
        settings_(settings),
        counts_(program.instructions.size()) {
    const u32 size = program.target->wave_size;
    const u32 items = launch.block[0] * launch.block[1] * launch.block[2];
    for (u32 i = 0; i < (items + size - 1) / size; ++i) waves_.push_back(std::make_unique<Wave>());
    group_.target = program.target;
    group_.program = &program;
    group_.memory = &memory;
    group_.lds_size = kernel.lds_bytes + launch.dynamic_lds;
    group_.lds.resize(group_.lds_size + 16);
    group_.scratch_per_lane = kernel.private_bytes;
    packet_.lds_bytes = group_.lds_size;
    packet_.private_bytes = kernel.private_bytes;
    packet_.arguments = reinterpret_cast<u64>(launch.arguments.data());
    for (std::size_t i = 0; i < 3; ++i) {
      packet_.workgroup_size[i] = static_cast<u16>(launch.block[i]);
      packet_.grid_size[i] = launch.grid[i] * launch.block[i];
    }
    static_cast<void>(object);
  }

  const DispatchPacket& packet() const { return packet_; }
  const std::vector<u64>& counts() const { return counts_; }

  void run(const std::array<u32, 3>& id) {
    group_.id = id;
    std::fill(group_.lds.begin(), group_.lds.end(), u8{0xff});
    group_.lds_checker.reset(group_.lds_size);
    for (u32 i = 0; i < waves_.size(); ++i) {
      waves_[i]->group = &group_;
      start_wave(*waves_[i], kernel_, launch_, i, packet_);
    }
    std::vector<u32> order(waves_.size());
    for (u32 i = 0; i < order.size(); ++i) order[i] = i;
    if (settings_.order == WaveOrder::Reverse) std::reverse(order.begin(), order.end());
    for (bool running = true; running;) {
      if (settings_.order == WaveOrder::Random) std::shuffle(order.begin(), order.end(), random_);
      for (const u32 i : order) advance(*waves_[i]);
      running = release();
    }
  }

 private:
  // To the next barrier, the end or a pause.
  void advance(Wave& w) {
    const Instruction* instructions = program_.instructions.data();
    w.yielded = false;
    while (!w.done && !w.waiting && !w.yielded) {
      const u32 at = w.pc;
      if (at >= program_.instructions.size())
        throw KernelFault(fmt::format("{}: ran past the end of its code", kernel_.name));
      const Instruction& in = instructions[at];
      w.pc = at + 1;
      ++counts_[at];
      try {
        if (w.pending.any() && in.touched.meets(w.pending.registers())) check_pending(w, in);
        execute(w, in);
        if (++w.executed > kMostInstructions) throw Finding("it does not end");
      } catch (const Finding& finding) {
        throw KernelFault(describe(w, in, finding.what(), finding.lane));
      } catch (const std::exception& error) {
        throw KernelFault(describe(w, in, error.what(), -1));
      }
    }
  }

  static void execute(Wave& w, const Instruction& in) {
    w.active = w.exec();
    if (!in.second.empty()) [[unlikely]]
      return execute_both(w, in);
    if (in.is_dpp) select_lanes(w, in);
    in.handler(w, in);
  }

  // Both halves read before either writes.
  static void execute_both(Wave& w, const Instruction& in) {
    const Instruction& second = in.second.front();
    const int index = in[0].index;
    const Row before = w.vector[index];
    in.handler(w, in);
    const Row after = w.vector[index];
    w.vector[index] = before;
    second.handler(w, second);
    if (second[0].index == index)
      throw Finding("both halves of a dual instruction write one register");
    w.vector[index] = after;
  }

  std::string describe(const Wave& w, const Instruction& in, const std::string& what,
                       int lane) const {
    return fmt::format("kernel {}, pc {:#x}, '{}', workgroup ({}, {}, {}), wave {}{}: {}",
                       kernel_.name, in.pc, in.text, group_.id[0], group_.id[1], group_.id[2], w.id,
                       lane < 0 ? "" : fmt::format(", lane {}", lane), what);
  }

  // Opens the barrier if every wave that still runs has come to it; false if none runs.
  bool release() {
    bool any = false, all = true;
    for (const auto& wave : waves_) {
      if (wave->done) continue;
      any = true;
      all = all && wave->waiting;
    }
    if (!any || !all) return any;
    for (const auto& wave : waves_) {
      group_.lds_checker.arrive(wave->id, wave->pending.outstanding(Counter::Lds));
      wave->waiting = false;
    }
    group_.lds_checker.barrier();
    return true;
  }

  const Program& program_;
  const Kernel& kernel_;
  const Launch& launch_;
  std::mt19937_64 random_;
  const Settings& settings_;
  std::vector<u64> counts_;
  Workgroup group_{};
  DispatchPacket packet_{};
  std::vector<std::unique_ptr<Wave>> waves_{};
};

void check_launch(const Program& program, const Kernel& kernel, const Launch& launch) {
  const u32 items = launch.block[0] * launch.block[1] * launch.block[2];
  if (items == 0 || items > std::min(1024u, kernel.max_threads))
    throw KernelFault(fmt::format("{}: {} work-items a workgroup; must be 1 to {}", kernel.name,
                                  items, kernel.max_threads));
  if (kernel.lds_bytes + launch.dynamic_lds > program.target->lds_bytes)
    throw KernelFault(fmt::format("{}: {} bytes of LDS; {} has {}", kernel.name,
                                  kernel.lds_bytes + launch.dynamic_lds, program.target->name,
                                  program.target->lds_bytes));
}

#if defined(__AVX2__)
void check_processor() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    throw std::runtime_error(
        "the simulated device was built for processors with AVX2 and FMA, and this has none");
}
#else
void check_processor() {}
#endif

}  // namespace

Statistics run_grid(const Program& program, const Kernel& kernel, const CodeObject& object,
                    const Launch& launch, MemoryMap memory, const Settings& settings) {
  check_processor();
  check_launch(program, kernel, launch);
  memory.add(reinterpret_cast<u64>(object.image()), object.image_bytes(), true);
  if (!launch.arguments.empty())
    memory.add(reinterpret_cast<u64>(launch.arguments.data()), launch.arguments.size(), false);
  const u64 groups = static_cast<u64>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const u32 threads = static_cast<u32>(std::clamp<u64>(settings.threads, 1, groups ? groups : 1));
  std::vector<std::unique_ptr<Runner>> runners;
  for (u32 i = 0; i < threads; ++i)
    runners.push_back(std::make_unique<Runner>(program, kernel, object, launch, memory, settings));
  for (const auto& runner : runners)
    memory.add(reinterpret_cast<u64>(&runner->packet()), sizeof(DispatchPacket), false);
  std::atomic<u64> next{0};
  std::mutex mutex;
  std::exception_ptr fault;
  const auto work = [&](Runner& runner) {
    try {
      for (u64 at = 0; (at = next++) < groups;) {
        const u64 x = at % launch.grid[0], y = at / launch.grid[0] % launch.grid[1],
                  z = at / launch.grid[0] / launch.grid[1];
        runner.run({static_cast<u32>(x), static_cast<u32>(y), static_cast<u32>(z)});
      }
    } catch (...) {
      next = groups;
      const std::lock_guard lock(mutex);
      if (!fault) fault = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (u32 i = 1; i < threads; ++i) others.emplace_back(work, std::ref(*runners[i]));
  work(*runners[0]);
  for (std::thread& other : others) other.join();
  if (fault) std::rethrow_exception(fault);
  Statistics statistics;
  for (const auto& runner : runners)
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      if (const u64 count = runner->counts()[i]) {
        statistics.wave_instructions += count;
        statistics.opcodes[program.instructions[i].opcode] += count;
      }
  return statistics;
}

Settings settings_from_environment() {
  Settings settings;
  settings.threads = std::max(1u, std::thread::hardware_concurrency());
  if (const char* order = std::getenv("TESSERA_SIMULATED_ORDER"); order && *order) {
    const std::string_view text = order;
    if (text == "reverse")
      settings.order = WaveOrder::Reverse;
    else if (text.starts_with("random")) {
      settings.order = WaveOrder::Random;
      if (text.size() > 7 && text[6] == ':')
        settings.seed = std::stoull(std::string(text.substr(7)));
    } else if (text != "forward")
      throw std::invalid_argument(fmt::format(
          "TESSERA_SIMULATED_ORDER is {}; must be forward, reverse, random or random:SEED", text));
  }
  if (const char* threads = std::getenv("TESSERA_SIMULATED_THREADS"); threads && *threads) {
    const int count = std::atoi(threads);
    if (count < 1)
      throw std::invalid_argument(
          fmt::format("TESSERA_SIMULATED_THREADS is {}; must be 1 or more", threads));
    settings.threads = static_cast<u32>(count);
  }
  return settings;
}

}  // namespace tessera::amdgpu
