#pragma once
// A call stack of its own: what a lane runs on until it has to wait for others.

#include <cstddef>

namespace tessera::amdgpu::lanes {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() calls `entry`, which must not return. What ran here before is forgotten.
  void start(void (*entry)());
  // Runs it until it yields. By whoever is no fiber.
  void resume();
  // Back to resume(). By the fiber itself.
  void yield();

 private:
  char* memory_;
  void* stack_ = nullptr;   // while it does not run
  void* caller_ = nullptr;  // while it does
  const void* caller_bottom_ = nullptr;
  std::size_t caller_size_ = 0;
  void (*entry_)() = nullptr;
  bool begun_ = false;

  static void begin();
};

}  // namespace tessera::amdgpu::lanes
