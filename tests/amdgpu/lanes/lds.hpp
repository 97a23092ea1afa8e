#pragma once
// The LDS of the work-group that runs. Every access of kernels is looked at (clang's trace-loads
// and trace-stores): one outside of it, of a byte that nobody has written, or one that another
// wave's may come before or after, for there is no barrier between them, is a failure.

#include <cstddef>
#include <cstdint>

#include "tests/amdgpu/lanes/work_group.hpp"

namespace tessera::amdgpu::lanes {

// The work-group's variable that `key` is the name of; the same for all of its lanes.
void* lds_variable(const void* key, std::size_t size, std::size_t alignment);
template <class T, std::size_t kAlignment>
T& lds_variable() {
  static char key;
  return *static_cast<T*>(lds_variable(&key, sizeof(T), kAlignment));
}

// Byte addresses, as instructions have them: a kernel that uses them has one variable.
std::uint32_t lds_offset(const void* in);

// --- Loads from memory straight to LDS, 16 bytes a lane ------------------------------------------

struct DirectLoad {
  std::uint32_t lds;  // the first lane's; the others' follow
  std::uint32_t word[4];
};
// They arrive when the wave waits for them, and not before; what lay there is lost at once.
extern const Operation kLoadToLds;  // takes a DirectLoad
// Until at most so many of the wave's last are on their way.
extern const Operation kWaitForLoads;  // takes an int

// --- By the work-group ---------------------------------------------------------------------------

void begin_lds(int waves);  // of a work-group
void end_lds();
void begin_lds_phase();  // after a barrier

}  // namespace tessera::amdgpu::lanes
