#include "tests/amdgpu/isa/checks.hpp"

#include <fmt/core.h>

namespace tessera::amdgpu {
namespace {

void set_bits(u64* words, int first, int count) {
  for (int i = first; i < first + count; ++i) words[i / 64] |= u64{1} << (i % 64);
}

}  // namespace

void RegisterSet::add_vector(int first, int count) { set_bits(vector.data(), first, count); }
void RegisterSet::add_scalar(int first, int count) { set_bits(scalar.data(), first, count); }
void RegisterSet::remove(const RegisterSet& other) {
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] &= ~other.vector[i];
  for (std::size_t i = 0; i < scalar.size(); ++i) scalar[i] &= ~other.scalar[i];
}

void Pending::clear() {
  for (auto& queue : queues_) queue.clear();
  collect();
}

bool Pending::empty() const {
  for (const auto& queue : queues_)
    if (!queue.empty()) return false;
  return true;
}

void Pending::collect() {
  registers_ = {};
  any_ = false;
  for (const auto& queue : queues_)
    for (const PendingEntry& entry : queue) {
      if (!entry.has_registers) continue;
      any_ = true;
      for (std::size_t i = 0; i < registers_.vector.size(); ++i)
        registers_.vector[i] |= entry.registers.vector[i];
      for (std::size_t i = 0; i < registers_.scalar.size(); ++i)
        registers_.scalar[i] |= entry.registers.scalar[i];
    }
}

void Pending::add(Counter counter, PendingEntry entry) {
  queues_[static_cast<std::size_t>(counter)].push_back(entry);
  if (!entry.has_registers) return;
  any_ = true;
  for (std::size_t i = 0; i < registers_.vector.size(); ++i)
    registers_.vector[i] |= entry.registers.vector[i];
  for (std::size_t i = 0; i < registers_.scalar.size(); ++i)
    registers_.scalar[i] |= entry.registers.scalar[i];
}

void Pending::wait(Counter counter, int remaining, LdsChecker& lds) {
  auto& queue = queues_[static_cast<std::size_t>(counter)];
  if (remaining < 0 || static_cast<int>(queue.size()) <= remaining) return;
  if (remaining > 0)
    for (const PendingEntry& entry : queue)
      if (entry.unordered) return;  // any of them may be the ones that remain
  const auto end = queue.end() - remaining;
  for (auto entry = queue.begin(); entry != end; ++entry)
    if (entry->direct.size) lds.end_direct(entry->direct);
  queue.erase(queue.begin(), end);
  if (any_) collect();
}

const PendingEntry* Pending::find(const RegisterSet& registers, Counter& counter,
                                  int in_order) const {
  for (int i = 0; i < kCounters; ++i)
    for (const PendingEntry& entry : queues_[static_cast<std::size_t>(i)])
      if (entry.has_registers && entry.registers.meets(registers) &&
          !(i == in_order && !entry.unordered)) {
        counter = static_cast<Counter>(i);
        return &entry;
      }
  return nullptr;
}

void LdsChecker::reset(u32 bytes) {
  const std::size_t dwords = (bytes + 3) / 4;
  if (dwords_.size() < dwords) {
    dwords_.assign(dwords, {});
    bytes_.assign(dwords, {});
    flying_.assign(dwords, 0);
    epoch_ = 0;
  }
  if (direct_) std::fill(flying_.begin(), flying_.end(), u8{0});
  direct_ = 0;
  bytes_total_ = bytes;
  ++epoch_;
  issued_.fill(0);
  visible_.fill(0);
  direct_issued_.fill(0);
  direct_done_.fill(0);
  direct_visible_.fill(0);
  for (std::size_t i = 0; i < dwords; ++i) dwords_[i].number = 0;
}

LdsChecker::Dword& LdsChecker::current(u32 dword) {
  Dword& state = dwords_[dword];
  if (state.epoch != epoch_) {
    state = {
        .epoch = epoch_, .direct = state.direct, .writer = state.writer, .number = state.number};
  }
  return state;
}

void LdsChecker::race(u32 address, u32 wave, int lane, bool is_write, const Byte& others) const {
  const u32 mine = 1u << wave;
  const u32 writers = (others.writers | others.atomics) & ~mine, readers = others.readers & ~mine;
  const u32 other = writers ? writers : readers;
  throw Finding(fmt::format("LDS race: {} of LDS byte {} by wave {}, which wave {} {} since the "
                            "last barrier",
                            is_write ? "write" : "read", address, wave, std::countr_zero(other),
                            writers ? "has written" : "has read"),
                lane);
}

void LdsChecker::in_flight(u32 address, u32 bytes, int lane, bool is_write) const {
  for (u32 dword = address / 4; dword <= (address + bytes - 1) / 4; ++dword)
    if (flying_[dword])
      throw Finding(fmt::format("{} of LDS byte {} while a load into LDS that has not been waited "
                                "for may still write it",
                                is_write ? "write" : "read", address),
                    lane);
}

void LdsChecker::part(u32 dword, u32 mask, u32 wave, int lane, bool is_write) {
  Dword& state = current(dword);
  const u32 mine = 1u << wave, others = ~mine;
  if (!state.fine && mask != 15) {
    state.fine = true;
    bytes_[dword].fill({state.writers, state.readers, state.atomics});
  }
  if (state.fine) {
    for (u32 i = 0; i < 4; ++i) {
      if (!(mask >> i & 1)) continue;
      Byte& byte = bytes_[dword][i];
      if ((byte.writers | byte.atomics | (is_write ? byte.readers : 0)) & others)
        race(dword * 4 + i, wave, lane, is_write, byte);
      (is_write ? byte.writers : byte.readers) |= mine;
    }
  } else if ((state.writers | state.atomics | (is_write ? state.readers : 0)) & others) {
    race(dword * 4, wave, lane, is_write, {state.writers, state.readers, state.atomics});
  }
  (is_write ? state.writers : state.readers) |= mine;
  if (is_write) {
    state.writer = wave;
    state.number = issued_[wave] + 1;
    state.direct = false;
  } else if (state.writer != wave &&
             state.number > (state.direct ? direct_visible_ : visible_)[state.writer]) {
    throw Finding(
        fmt::format("read of LDS byte {} by wave {}, which wave {} has written without waiting "
                    "for it before the barrier",
                    dword * 4, wave, state.writer),
        lane);
  }
}

void LdsChecker::access(u32 address, u32 bytes, u32 wave, int lane, bool is_write) {
  if (direct_) in_flight(address, bytes, lane, is_write);
  if (address % 4 == 0 && bytes % 4 == 0) {
    for (u32 dword = address / 4; dword < (address + bytes) / 4; ++dword)
      part(dword, 15, wave, lane, is_write);
    return;
  }
  for (u32 at = address; at < address + bytes; ++at)
    part(at / 4, 1u << at % 4, wave, lane, is_write);
}

// Atomics may meet atomics, and nothing else.
void LdsChecker::atomic(u32 address, u32 bytes, u32 wave, int lane) {
  if (direct_) in_flight(address, bytes, lane, true);
  for (u32 dword = address / 4; dword <= (address + bytes - 1) / 4; ++dword) {
    Dword& state = current(dword);
    const u32 mine = 1u << wave;
    if ((state.writers | state.readers) & ~mine)
      race(dword * 4, wave, lane, true, {state.writers, state.readers, 0});
    state.atomics |= mine;
    if (state.fine)
      for (Byte& byte : bytes_[dword]) byte.atomics |= mine;
  }
}

void LdsChecker::begin_direct(const DirectRange& range) {
  ++direct_;
  ++direct_issued_[range.wave];
  for (u32 lane = 0; lane < 64; ++lane)
    if (range.lanes >> lane & 1)
      for (u32 at = 0; at < range.size; at += 4)
        ++flying_[(range.first + lane * range.size + at) / 4];
}

void LdsChecker::end_direct(const DirectRange& range) {
  --direct_;
  ++direct_done_[range.wave];
  for (u32 lane = 0; lane < 64; ++lane)
    if (range.lanes >> lane & 1)
      for (u32 at = 0; at < range.size; at += 4)
        --flying_[(range.first + lane * range.size + at) / 4];
}

}  // namespace tessera::amdgpu
