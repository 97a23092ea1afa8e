#pragma once
// What the tests share: single instructions on a wave, and compiled kernels on buffers.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/machine.hpp"
#include "tests/amdgpu/isa/state.hpp"

namespace tessera::amdgpu::testing {

// A wave with all lanes on, in which instructions run one by one as the disassembler writes them.
class OneWave {
 public:
  explicit OneWave(std::string_view target, u32 lds_bytes = 4096);
  void run(std::string_view text);
  Wave& operator*() { return *wave_; }
  Wave* operator->() { return wave_.get(); }
  u32& vector(int index, int lane) { return wave_->vector[index].lane[lane]; }
  MemoryMap& memory() { return memory_; }
  Workgroup& group() { return group_; }

 private:
  MemoryMap memory_{};
  Program program_{};
  Workgroup group_{};
  std::unique_ptr<Wave> wave_;
};

// A code object that the build has compiled from kernels/NAME.hip.
class CompiledKernels {
 public:
  CompiledKernels(const std::string& name, const std::string& target,
                  const std::string& options = "O3");
  // Puts `text` in the place of the instruction `at`.
  void replace(std::size_t at, std::string_view text);
  // Indices of a kernel's instructions with this opcode.
  std::vector<std::size_t> find(const std::string& kernel, const std::string& opcode) const;
  Statistics run(const std::string& kernel, u32 grid, u32 block, const std::vector<u8>& arguments,
                 const Settings& settings = {}, u32 dynamic_lds = 0) const;
  template <class T>
  void allow(std::vector<T>& buffer) {
    memory_.add(reinterpret_cast<u64>(buffer.data()), buffer.size() * sizeof(T), true);
  }
  bool has(const std::string& kernel) const { return object_->kernels().contains(kernel); }

 private:
  std::unique_ptr<CodeObject> object_;
  std::unique_ptr<Program> program_;
  MemoryMap memory_{};
};

// Arguments as they lie in the kernarg segment: each at a multiple of its size.
class Arguments {
 public:
  template <class T>
  Arguments& add(const T& value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* from = reinterpret_cast<const u8*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  template <class T>
  Arguments& add(std::vector<T>& buffer) {
    return add(buffer.data());
  }
  operator const std::vector<u8>&() const { return bytes_; }

 private:
  std::vector<u8> bytes_{};
};

inline const std::vector<std::string> kAllTargets{"gfx90a", "gfx942", "gfx950", "gfx1100",
                                                  "gfx1201"};

// Names a test's parameter.
struct TargetName {
  template <class Info>
  std::string operator()(const Info& info) const {
    return info.param;
  }
};

}  // namespace tessera::amdgpu::testing
