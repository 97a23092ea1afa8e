#pragma once
// The state behind the simulated HIP runtime: one device, its memory, its modules. Everything
// completes before a function returns.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "tests/amdgpu/isa/hip_api.hpp"
#include "tests/amdgpu/isa/machine.hpp"

namespace tessera::amdgpu {

struct Module {
  std::unique_ptr<CodeObject> object{};
  std::unique_ptr<Program> program{};  // at the first launch
  std::mutex mutex{};
  std::map<std::string, std::unique_ptr<struct Function>> functions{};
};

struct Function {
  Module* module = nullptr;
  const Kernel* kernel = nullptr;
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time{};
};

struct Stream {};

struct KernelStatistics {
  u64 launches = 0, wave_instructions = 0;
  double seconds = 0;
};

class Runtime {
 public:
  Runtime();
  ~Runtime();  // writes the statistics
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Target* target() const { return target_; }  // null without a device
  // kHipNoDevice, the error of a launch that failed, or success.
  int state() const;
  void fail(int error);  // from now on everything fails so
  u64 total_memory() const { return total_; }
  u64 free_memory() const;

  int allocate(void** data, std::size_t bytes);
  int release(void* data);
  // Whether a copy may touch these bytes: within one buffer, or outside all.
  bool may_copy(const void* data, std::size_t bytes, bool must_be_device) const;
  MemoryMap memory() const;

  int load(const void* image, Module** module);
  int unload(Module* module);
  int find_function(Module* module, const char* name, Function** function);
  bool knows(const Function* function) const;
  int launch(Function& function, const Launch& launch);

  Stream* make_stream();
  int destroy_stream(Stream* stream);
  bool knows(const Stream* stream) const;
  Event* make_event(unsigned flags);
  int destroy_event(Event* event);
  bool knows(const Event* event) const;

 private:
  Program& program_of(Module& module);
  void count(const std::string& kernel, const Statistics& statistics, double seconds);
  void write_statistics() const;

  mutable std::mutex mutex_{};
  const Target* target_ = nullptr;
  u64 total_ = 0, used_ = 0;
  int sticky_ = kHipSuccess;
  MemoryMap memory_{};
  std::set<std::unique_ptr<Module>> modules_{};
  std::set<std::unique_ptr<Stream>> streams_{};
  std::set<std::unique_ptr<Event>> events_{};
  std::map<std::string, KernelStatistics> kernels_{};
  std::map<std::string, u64> opcodes_{};
};

Runtime& runtime();

// Remembers an error for hipGetLastError and returns it.
int noted(int error);
int last_error(bool forget);

}  // namespace tessera::amdgpu
