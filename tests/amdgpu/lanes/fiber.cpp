#include "tests/amdgpu/lanes/fiber.hpp"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

// Leaves one stack, whose place goes to *from, for another: what the ABI lets a callee not change
// lies on top of it.
extern "C" void tessera_lanes_switch(void** from, void* to);
asm(R"(
.text
.globl tessera_lanes_switch
.hidden tessera_lanes_switch
.type tessera_lanes_switch, @function
tessera_lanes_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size tessera_lanes_switch, . - tessera_lanes_switch
)");

namespace tessera::amdgpu::lanes {
namespace {

constexpr std::size_t kStack = std::size_t{512} << 10;  // instrumented kernels take some 100 KB
constexpr std::size_t kGuard = 4096;                    // below it
Fiber* beginning = nullptr;

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
}

Fiber::~Fiber() {
  ASAN_UNPOISON_MEMORY_REGION(memory_ + kGuard, kStack);
  munmap(memory_, kGuard + kStack);
}

void Fiber::start(void (*entry)()) {
  // Of a stack that was left in the middle of a function.
  if (begun_) ASAN_UNPOISON_MEMORY_REGION(memory_ + kGuard, kStack);
  entry_ = entry;
  begun_ = false;
  auto* top = reinterpret_cast<std::uintptr_t*>(memory_ + kGuard + kStack);
  *--top = 0;  // where begin() would return to
  *--top = reinterpret_cast<std::uintptr_t>(&Fiber::begin);
  for (int saved = 0; saved < 6; ++saved) *--top = 0;
  stack_ = top;
}

void Fiber::begin() {
  Fiber& self = *beginning;
  __sanitizer_finish_switch_fiber(nullptr, &self.caller_bottom_, &self.caller_size_);
  self.entry_();
  std::abort();
}

void Fiber::resume() {
  void* fake = nullptr;
  if (!begun_) beginning = this;
  begun_ = true;
  __sanitizer_start_switch_fiber(&fake, memory_ + kGuard, kStack);
  tessera_lanes_switch(&caller_, stack_);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

void Fiber::yield() {
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, caller_bottom_, caller_size_);
  tessera_lanes_switch(&stack_, caller_);
  __sanitizer_finish_switch_fiber(fake, &caller_bottom_, &caller_size_);
}

}  // namespace tessera::amdgpu::lanes
