#pragma once
// A code object: the ELF file that the compiler writes for one target.

#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/formats.hpp"
#include "tests/amdgpu/isa/target.hpp"

namespace tessera::amdgpu {

struct KernelArgument {
  u32 offset = 0, size = 0;
  std::string kind{};  // "by_value", "global_buffer", "hidden_block_count_x", ...
};

struct Kernel {
  std::string name{};
  u32 lds_bytes = 0, private_bytes = 0, kernarg_bytes = 0;
  u64 entry = 0;  // offset in the image
  u32 resources1 = 0, resources2 = 0, resources3 = 0, properties = 0, preload = 0;
  u32 max_threads = 1024, vector_registers = 0, accumulators = 0, scalar_registers = 0;
  std::vector<KernelArgument> arguments{};
};

// Not a file of the kind, or one that breaks its own rules.
struct BadCodeObject : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CodeObject {
 public:
  explicit CodeObject(std::span<const u8> file);

  const Target* target() const { return target_; }  // null for one that is not simulated
  u32 machine() const { return machine_; }
  const std::map<std::string, Kernel>& kernels() const { return kernels_; }
  const std::vector<u8>& file() const { return file_; }
  u8* image() const { return image_.get(); }
  u64 image_bytes() const { return image_bytes_; }

 private:
  struct Free {
    void operator()(u8* memory) const { std::free(memory); }
  };
  template <class T>
  T at(u64 offset) const;
  void load_segments();
  void read_symbols();
  void relocate();
  void read_metadata();
  void read_descriptor(const std::string& name, u64 address);

  std::vector<u8> file_{};
  const Target* target_ = nullptr;
  u32 machine_ = 0;
  std::unique_ptr<u8, Free> image_{};
  u64 image_bytes_ = 0;
  std::map<std::string, Kernel> kernels_{};
};

}  // namespace tessera::amdgpu
