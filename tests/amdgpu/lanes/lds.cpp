#include "tests/amdgpu/lanes/lds.hpp"

#include <fmt/core.h>
#include <sanitizer/asan_interface.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/amdgpu/lanes/current.hpp"
#include "tests/amdgpu/lanes/work_group.hpp"

namespace tessera::amdgpu::lanes {
namespace {

// What was done to a byte. Phases are what lies between barriers, from 1 on.
struct Byte {
  std::uint32_t written = 0;  // in which phase; 0: never
  std::uint32_t read = 0;
  std::uint32_t readers = 0;  // in that phase, a bit a wave
  std::uint8_t writer = 0;    // the wave
  bool coming = false;        // a direct load of that wave is on its way to it
  const void* write_site = nullptr;
};

// Around a variable, so that whoever leaves it is seen.
constexpr std::size_t kMargin = std::size_t{64} << 10;
constexpr int kUnwritten = 0xFF;  // which is NaN as fp32, fp16 and bf16

struct Variable {
  const void* key;
  char* memory;  // with its margins
  char* data;
  std::size_t size;
  std::vector<Byte> bytes;
};

struct Arriving {
  char* to;
  std::vector<std::uint32_t> words;
};

std::vector<Variable> variables;
std::vector<std::deque<Arriving>> arriving;  // a wave
std::uint32_t phase = 1;

Variable* find(const char* at) {
  for (Variable& v : variables)
    if (at >= v.memory && at < v.data + v.size + kMargin) return &v;
  return nullptr;
}

[[noreturn]] void report(std::string&& what, const Variable& v, const char* at, std::size_t size,
                         const void* site) {
  std::string text =
      fmt::format("LDS of work-group {}, {} bytes from byte {} of {}: wave {} {}, in {}",
                  current_group(), size, at - v.data, v.size, current_wave(), what, place_of(site));
  std::string().swap(what);
  fail(std::move(text));
}

std::string by_another(const char* does, const Byte& byte) {
  return fmt::format("{} what wave {} wrote since the last barrier in {}", does, byte.writer,
                     place_of(byte.write_site));
}

void check_bounds(const Variable& v, const char* at, std::size_t size, const void* site) {
  if (at < v.data || at + size > v.data + v.size) report("leaves it", v, at, size, site);
}

void note_read(const void* address, std::size_t size, const void* site) {
  const auto* const at = static_cast<const char*>(address);
  Variable* const v = find(at);
  if (v == nullptr) return;
  check_bounds(*v, at, size, site);
  const auto wave = static_cast<unsigned>(current_wave());
  for (std::size_t i = 0; i < size; ++i) {
    Byte& byte = v->bytes[static_cast<std::size_t>(at - v->data) + i];
    if (byte.written == 0) report("reads what nobody wrote", *v, at, size, site);
    if (byte.coming) report("reads where a load is still to arrive", *v, at, size, site);
    if (byte.written == phase && byte.writer != wave)
      report(by_another("reads", byte), *v, at, size, site);
    if (byte.read != phase) byte.readers = 0;
    byte.read = phase;
    byte.readers |= 1u << wave;
  }
}

void note_write(const void* address, std::size_t size, const void* site, bool coming = false) {
  const auto* const at = static_cast<const char*>(address);
  Variable* const v = find(at);
  if (v == nullptr) return;
  check_bounds(*v, at, size, site);
  const auto wave = static_cast<unsigned>(current_wave());
  for (std::size_t i = 0; i < size; ++i) {
    Byte& byte = v->bytes[static_cast<std::size_t>(at - v->data) + i];
    if (byte.written == phase && byte.writer != wave)
      report(by_another("writes", byte), *v, at, size, site);
    if (byte.read == phase && (byte.readers & ~(1u << wave)) != 0)
      report("writes what another wave has read since the last barrier", *v, at, size, site);
    byte.written = phase;
    byte.writer = static_cast<std::uint8_t>(wave);
    byte.write_site = site;
    byte.coming = coming;
  }
}

char* at_offset(std::uint32_t offset) {
  if (variables.size() != 1) fail("LDS addresses of a kernel whose LDS is not one variable");
  return variables.front().data + offset;
}

void land(Arriving& load, const void* site) {
  const std::size_t size = load.words.size() * sizeof load.words[0];
  note_write(load.to, size, site);
  std::memcpy(load.to, load.words.data(), size);
}

void apply_load_to_lds(const Wave& wave) {
  const auto& first = wave.from<DirectLoad>(0);
  Arriving load{at_offset(first.lds), {}};
  for (int i = 0; i < wave.lanes; ++i) {
    const auto& lane = wave.from<DirectLoad>(i);
    if (lane.lds != first.lds) fail("lanes load straight to different places of LDS");
    load.words.insert(load.words.end(), lane.word, lane.word + 4);
  }
  const std::size_t size = load.words.size() * sizeof load.words[0];
  note_write(load.to, size, wave.site, true);
  std::memset(load.to, kUnwritten, size);
  arriving[static_cast<std::size_t>(wave.number)].push_back(std::move(load));
}

void apply_wait(const Wave& wave) {
  auto& loads = arriving[static_cast<std::size_t>(wave.number)];
  for (const auto later = static_cast<std::size_t>(wave.from<int>(0)); loads.size() > later;
       loads.pop_front())
    land(loads.front(), wave.site);
}

}  // namespace

const Operation kLoadToLds{"a load to LDS", apply_load_to_lds};
const Operation kWaitForLoads{"a wait for loads", apply_wait};

void begin_lds(int waves) {
  end_lds();
  arriving.resize(static_cast<std::size_t>(waves));
}

void end_lds() {
  for (const Variable& v : variables) {
    ASAN_UNPOISON_MEMORY_REGION(v.memory, v.size + 2 * kMargin);
    std::free(v.memory);
  }
  variables.clear();
  arriving.clear();
  phase = 1;
}

void begin_lds_phase() { ++phase; }

void* lds_variable(const void* key, std::size_t size, std::size_t alignment) {
  for (const Variable& v : variables)
    if (v.key == key) return v.data;
  if (kMargin % alignment != 0) fail("LDS of such an alignment");
  const std::size_t whole = (size + alignment - 1) / alignment * alignment + 2 * kMargin;
  auto* const memory = static_cast<char*>(std::aligned_alloc(alignment, whole));
  std::memset(memory, kUnwritten, whole);
  variables.push_back({key, memory, memory + kMargin, size, std::vector<Byte>(size)});
  ASAN_POISON_MEMORY_REGION(memory, kMargin);
  ASAN_POISON_MEMORY_REGION(memory + kMargin + size, kMargin);
  return memory + kMargin;
}

std::uint32_t lds_offset(const void* in) {
  return static_cast<std::uint32_t>(static_cast<const char*>(in) - at_offset(0));
}

}  // namespace tessera::amdgpu::lanes

// What clang calls before each access of a kernel.
#define TESSERA_LANES_ACCESS(size)                                                  \
  extern "C" void __sanitizer_cov_load##size(const void* address) {                 \
    tessera::amdgpu::lanes::note_read(address, size, __builtin_return_address(0));  \
  }                                                                                 \
  extern "C" void __sanitizer_cov_store##size(const void* address) {                \
    tessera::amdgpu::lanes::note_write(address, size, __builtin_return_address(0)); \
  }
TESSERA_LANES_ACCESS(1)
TESSERA_LANES_ACCESS(2)
TESSERA_LANES_ACCESS(4)
TESSERA_LANES_ACCESS(8)
TESSERA_LANES_ACCESS(16)
