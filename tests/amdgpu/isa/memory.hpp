#pragma once
// What the memory instructions share: where each lane's bytes are, and how they get into registers.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {

// How a lane's data lies in memory and in registers.
enum class Half16 : u8 { None, Low, High };  // d16: one half of the register, the other is kept
struct Form {
  int bytes = 4;
  bool is_signed = false;
  Half16 half = Half16::None;
  constexpr int registers() const { return bytes < 4 ? 1 : bytes / 4; }
};

enum class Space : u8 { Memory, Lds, Private };

struct Access {
  u64 address[kLanes];
  u64 lanes = 0;     // that take part
  int room[kLanes];  // bytes within the bounds, of a buffer; others have all
  bool bounded = false;
};

// The host address of a lane's byte range, after all checks. Throws a Finding.
u8* host_memory(const Wave& w, const Instruction& in, int lane, u64 address, int bytes, bool write);
// All lanes at once where that is quick, lane by lane where something is wrong.
void check_memory(const Wave& w, const Access& access, int bytes, bool write);
u8* lds_bytes(const Wave& w, int lane, u32 address, int bytes);  // checks bounds and alignment

void load_lanes(Wave& w, const Instruction& in, const Form& form, const Access& access,
                int destination);
void store_lanes(Wave& w, const Instruction& in, const Form& form, const Access& access,
                 int source);
// Each lane's bytes into LDS, lane after lane from M0's and the instruction's offset on.
void load_to_lds(Wave& w, const Instruction& in, const Form& form, const Access& access);

// Addresses: of global_* with operands `address` and `base` and of flat_*.
Access global_addresses(Wave& w, const Instruction& in, int address, int base);
Access buffer_addresses(Wave& w, const Instruction& in, int first, int bytes);

// Notes an operation that a counter counts; with registers if it writes any.
void note_pending(Wave& w, Counter counter, int first, int registers, bool scalar = false,
                  const DirectRange& direct = {});
Counter store_counter(const Wave& w);
Counter scalar_counter(const Wave& w);

}  // namespace tessera::amdgpu
