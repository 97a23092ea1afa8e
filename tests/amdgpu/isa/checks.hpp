#pragma once
// What hardware would not tell: registers used before their load has arrived, and waves that touch
// the same LDS bytes with no barrier between.

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/instruction.hpp"

namespace tessera::amdgpu {

// A fault of the kernel. The machine adds where it happened.
struct Finding : std::runtime_error {
  explicit Finding(const std::string& what, int in_lane = -1)
      : std::runtime_error(what), lane(in_lane) {}
  int lane;
};

enum class Counter : u8 { VectorLoads, VectorStores, Lds, Scalar };
inline constexpr int kCounters = 4;

// LDS bytes that a load writes directly: `size` bytes a lane, lane after lane, from `first` on.
struct DirectRange {
  u32 first = 0, size = 0, wave = 0;
  u64 lanes = 0;
};

struct PendingEntry {
  RegisterSet registers{};
  bool has_registers = false, unordered = false;
  DirectRange direct{};
  u32 instruction = 0;
};

class LdsChecker;

// A wave's operations that have been issued and not been waited for.
class Pending {
 public:
  void clear();
  void add(Counter counter, PendingEntry entry);
  // Leaves at most `remaining` of the counter's operations.
  void wait(Counter counter, int remaining, LdsChecker& lds);
  bool any() const { return any_; }
  bool empty() const;
  u32 outstanding(Counter counter) const {
    return static_cast<u32>(queues_[static_cast<std::size_t>(counter)].size());
  }
  const RegisterSet& registers() const { return registers_; }
  // The operation that has one of these registers, and its counter; null if none has. Those of
  // `in_order` are passed over.
  const PendingEntry* find(const RegisterSet& registers, Counter& counter, int in_order = -1) const;

 private:
  void collect();
  std::array<std::vector<PendingEntry>, kCounters> queues_{};
  RegisterSet registers_{};
  bool any_ = false;  // registers
};

class LdsChecker {
 public:
  static constexpr u32 kMostWaves = 32;
  void reset(u32 bytes);
  // All waves have met. Of a wave's LDS operations, `outstanding` have not been waited for.
  void barrier() { ++epoch_; }
  void arrive(u32 wave, u32 outstanding) {
    visible_[wave] = issued_[wave] - outstanding;
    direct_visible_[wave] = direct_done_[wave];
  }
  void issue(u32 wave) { ++issued_[wave]; }
  // Throws a Finding. `lane` is for its text.
  void read(u32 address, u32 bytes, u32 wave, int lane) {
    access(address, bytes, wave, lane, false);
  }
  void write(u32 address, u32 bytes, u32 wave, int lane) {
    access(address, bytes, wave, lane, true);
  }
  // By a load into LDS, which begin_direct and end_direct enclose.
  void write_direct(u32 address, u32 bytes, u32 wave, int lane) {
    write(address, bytes, wave, lane);
    for (u32 dword = address / 4; dword < (address + bytes + 3) / 4; ++dword) {
      dwords_[dword].number = direct_issued_[wave] + 1;
      dwords_[dword].direct = true;
    }
  }
  void atomic(u32 address, u32 bytes, u32 wave, int lane);
  void begin_direct(const DirectRange& range);
  void end_direct(const DirectRange& range);

 private:
  struct Dword {
    u32 epoch = 0, writers = 0, readers = 0, atomics = 0;
    bool fine = false;  // bytes_ tells
    bool direct = false;
    u32 writer = 0, number = 0;  // the last write: by whom, and which of its operations it was
  };
  struct Byte {
    u32 writers = 0, readers = 0, atomics = 0;
  };
  void access(u32 address, u32 bytes, u32 wave, int lane, bool is_write);
  void part(u32 dword, u32 mask, u32 wave, int lane, bool is_write);
  void in_flight(u32 address, u32 bytes, int lane, bool is_write) const;
  Dword& current(u32 dword);
  [[noreturn]] void race(u32 address, u32 wave, int lane, bool is_write, const Byte& others) const;

  u32 epoch_ = 1, bytes_total_ = 0, direct_ = 0;
  std::vector<Dword> dwords_{};
  std::vector<std::array<Byte, 4>> bytes_{};
  std::vector<u8> flying_{};  // a dword
  std::array<u32, kMostWaves> issued_{}, visible_{}, direct_issued_{}, direct_done_{},
      direct_visible_{};
};

}  // namespace tessera::amdgpu
