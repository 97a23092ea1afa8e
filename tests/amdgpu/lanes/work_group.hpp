#pragma once
// Runs a kernel whose source is compiled for the host: each lane is a fiber, which runs until it
// comes to an operation of its whole wave. When all lanes of the wave have come to one, it must be
// the same one at the same place in the code; it is done for all of them, and they go on. (Some may
// be met by the lanes of a branch alone: they are done for these when no lane can go on.) A barrier
// lets waves go on when all of the work-group's have come to one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace tessera::amdgpu::lanes {

// What a kernel did that it must not do.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Which wave runs, of those that can, and which of its lanes before which. Random: other waves may
// come in at any operation.
enum class Order { Forward, Reverse, Random };

struct Launch {
  int wave = 64;      // lanes of a wave
  int threads = 256;  // of a work-group, a multiple of it
  unsigned groups = 1;
  const void* argument = nullptr;
  Order order = Order::Forward;
  unsigned seed = 1;  // of Order::Random
};

struct Counts {
  std::int64_t operations = 0;  // of waves
  std::int64_t barriers = 0;
};

// Calls `kernel` in every lane of every work-group. Throws Failure.
Counts run(const Launch& launch, const std::function<void()>& kernel);

// --- By lanes ----------------------------------------------------------------------------------

int thread();
unsigned group();
const void* argument();
int wave_size();

// The wave that does an operation: what each of its lanes gave, and where it wants the result.
struct Wave {
  int number;  // of the work-group
  int lanes;
  const void* site;    // in the kernel
  const void* in[64];  // null: the lane takes no part
  void* out[64];

  template <class T>
  const T& from(int lane) const {
    return *static_cast<const T*>(in[lane]);
  }
  template <class T>
  T& to(int lane) const {
    return *static_cast<T*>(out[lane]);
  }
};

// An operation of all lanes at once. There is one object each: its address says which it is.
struct Operation {
  const char* name;
  void (*apply)(const Wave& wave);
  bool of_some = false;  // may also be one of those lanes that a branch has led to it
};

// The calling lane's part in it; returns when it is done. Two calls in the source are
// two places.
[[gnu::noinline, clang::convergent]] void meet(const Operation& operation, const void* in,
                                               void* out);
[[gnu::noinline, clang::convergent]] void barrier();

// Ends the run: the calling lane's, or the operation's, failure. A lane's stack is left as it is:
// what lives there must own nothing.
[[noreturn]] void fail(std::string&& what);

}  // namespace tessera::amdgpu::lanes
