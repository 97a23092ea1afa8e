#include "tests/amdgpu/isa/machine_setup.hpp"

#include <fmt/core.h>

namespace tessera::amdgpu {
namespace {

// Bits of a descriptor's properties: which user registers the kernel asks for, in this order.
enum class Property {
  PrivateBuffer,
  DispatchPointer,
  QueuePointer,
  Arguments,
  DispatchId,
  FlatScratch,
  PrivateSize
};

class UserRegisters {
 public:
  explicit UserRegisters(Wave& wave) : wave_(wave) {}
  void put(u32 value) { wave_.scalar[next_++] = value; }
  void put64(u64 value) {
    put(static_cast<u32>(value));
    put(static_cast<u32>(value >> 32));
  }
  int next() const { return next_; }
  void skip_to(int at) { next_ = at; }

 private:
  Wave& wave_;
  int next_ = 0;
};

void put_user_registers(UserRegisters& to, const Kernel& kernel, const Launch& launch,
                        const DispatchPacket& packet) {
  const auto asks = [&](Property property) {
    return kernel.properties >> static_cast<int>(property) & 1;
  };
  if (asks(Property::PrivateBuffer)) {  // base 0 and a lane's own slice: buffer accesses know it
    to.put64(u64{1} << 63);
    to.put(~0u);
    to.put(1u << 23);
  }
  if (asks(Property::DispatchPointer)) to.put64(reinterpret_cast<u64>(&packet));
  if (asks(Property::QueuePointer)) to.put64(0);
  if (asks(Property::Arguments)) to.put64(reinterpret_cast<u64>(launch.arguments.data()));
  if (asks(Property::DispatchId)) to.put64(0);
  if (asks(Property::FlatScratch)) to.put64(0);
  if (asks(Property::PrivateSize)) to.put(kernel.private_bytes);
  const u32 words = kernel.preload & 127, first = kernel.preload >> 7;
  for (u32 i = 0; i < words; ++i) {
    u32 value = 0;
    if ((first + i + 1) * 4 <= launch.arguments.size())
      std::memcpy(&value, launch.arguments.data() + (first + i) * 4, 4);
    to.put(value);
  }
}

void put_ids(Wave& wave, UserRegisters& to, const Kernel& kernel) {
  const auto& id = wave.group->id;
  const u32 asks = kernel.resources2;
  if (wave.group->target->generation == Generation::Gfx12) {
    wave.scalar[kTtmp + 9] = id[0];
    wave.scalar[kTtmp + 7] = (id[1] & 0xffff) | id[2] << 16;
    return;
  }
  to.skip_to(static_cast<int>(asks >> 1 & 31));  // as many user registers as the kernel counts
  for (int i = 0; i < 3; ++i)
    if (asks >> (7 + i) & 1) to.put(id[static_cast<std::size_t>(i)]);
  if (asks >> 10 & 1) to.put(0);
  if (asks & 1) to.put(0);  // where the wave's private memory begins
}

}  // namespace

void start_wave(Wave& wave, const Kernel& kernel, const Launch& launch, u32 index,
                const DispatchPacket& packet) {
  const Target& target = *wave.group->target;
  wave.id = index;
  wave.size = target.wave_size;
  wave.lanes = wave.size == 64 ? ~u64{0} : 0xffffffffu;
  wave.done = wave.waiting = wave.signalled = wave.yielded = false;
  wave.scc = 0;
  wave.executed = 0;
  wave.mode.bits = kernel.resources1 >> 12 & 0xff;
  wave.pending.clear();
  // NaNs of every format, so that what nobody has written is seen in the results.
  std::memset(wave.scalar, 0xff, sizeof wave.scalar);
  const u32 registers = std::min<u32>(kernel.vector_registers + 8, kAccumulators);
  std::memset(wave.vector, 0xff, registers * sizeof(Row));
  std::memset(wave.vector + kAccumulators, 0xff,
              std::min<u32>(kernel.accumulators, 256) * sizeof(Row));
  UserRegisters registers_to(wave);
  put_user_registers(registers_to, kernel, launch, packet);
  put_ids(wave, registers_to, kernel);
  const u32 items = launch.block[0] * launch.block[1] * launch.block[2], first = index * wave.size;
  const u32 present = std::min(items - first, wave.size);
  wave.set_pair(kExec, present == 64 ? ~u64{0} : (u64{1} << present) - 1);
  for (u32 l = 0; l < wave.size; ++l) {
    const u32 item = first + l, x = item % launch.block[0],
              y = item / launch.block[0] % launch.block[1],
              z = item / (launch.block[0] * launch.block[1]);
    wave.vector[0].lane[l] = x | y << 10 | z << 20;
  }
  wave.scratch.assign(static_cast<std::size_t>(wave.group->scratch_per_lane) * wave.size, 0xff);
  const u64 entry = kernel.entry + (kernel.preload & 127 ? 256 : 0);
  wave.pc = wave.group->program->index_at.at(entry);
}

}  // namespace tessera::amdgpu
