#include "tests/amdgpu/isa/hip_runtime.hpp"

#include <elf.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tessera::amdgpu {
namespace {

thread_local int the_last_error = kHipSuccess;

constexpr std::size_t kPoisoned = std::size_t{64} << 20;  // buffers up to this size start as NaNs

u64 host_memory_bytes() {
  return static_cast<u64>(::sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(::sysconf(_SC_PAGESIZE));
}

// The bytes of an ELF file in memory: the caller of hipModuleLoadData gives no size.
std::size_t image_bytes(const u8* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  u64 end = std::max<u64>(header.e_shoff + static_cast<u64>(header.e_shnum) * header.e_shentsize,
                          header.e_phoff + static_cast<u64>(header.e_phnum) * header.e_phentsize);
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + static_cast<u64>(i) * header.e_shentsize,
                sizeof section);
    if (section.sh_type != SHT_NOBITS)
      end = std::max<u64>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

template <class T>
bool contains(const std::set<std::unique_ptr<T>>& set, const T* item) {
  return std::any_of(set.begin(), set.end(), [&](const auto& each) { return each.get() == item; });
}
template <class T>
bool erase(std::set<std::unique_ptr<T>>& set, const T* item) {
  const auto at =
      std::find_if(set.begin(), set.end(), [&](const auto& each) { return each.get() == item; });
  if (at == set.end()) return false;
  set.erase(at);
  return true;
}

const Target* chosen_target() {
  const char* named = std::getenv("TESSERA_SIMULATED_DEVICE");
  const std::string_view name = named && *named ? named : "gfx942";
  if (name == "none") return nullptr;
  const Target* target = find_target(name);
  if (!target) {
    fmt::print(stderr, "TESSERA_SIMULATED_DEVICE is {}; must be none or one of {}\n", name,
               target_names());
    std::fflush(stderr);
    std::abort();
  }
  return target;
}

bool aborts() {
  const char* value = std::getenv("TESSERA_SIMULATED_ABORT");
  return value && std::string_view(value) == "1";
}

}  // namespace

Runtime::Runtime() : target_(chosen_target()) {
  if (target_) total_ = std::min(target_->memory_bytes, host_memory_bytes());
}

Runtime::~Runtime() { write_statistics(); }

int Runtime::state() const {
  const std::lock_guard lock(mutex_);
  return target_ ? sticky_ : kHipNoDevice;
}

void Runtime::fail(int error) {
  const std::lock_guard lock(mutex_);
  sticky_ = error;
}

u64 Runtime::free_memory() const {
  const std::lock_guard lock(mutex_);
  return total_ - used_;
}

int Runtime::allocate(void** data, std::size_t bytes) {
  *data = nullptr;
  if (bytes == 0) return kHipSuccess;
  const std::lock_guard lock(mutex_);
  if (bytes > total_ - used_) return kHipOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return kHipOutOfMemory;
  if (bytes <= kPoisoned) std::memset(memory, 0xff, bytes);
  memory_.add(reinterpret_cast<u64>(memory), bytes, true);
  used_ += bytes;
  *data = memory;
  return kHipSuccess;
}

int Runtime::release(void* data) {
  if (!data) return kHipSuccess;
  const std::lock_guard lock(mutex_);
  const MemoryMap::Range* range = memory_.find(reinterpret_cast<u64>(data), 1, false);
  if (!range || range->begin != reinterpret_cast<u64>(data)) return kHipInvalidValue;
  used_ -= range->end - range->begin;
  memory_.remove(range->begin);
  std::free(data);
  return kHipSuccess;
}

bool Runtime::may_copy(const void* data, std::size_t bytes, bool must_be_device) const {
  const std::lock_guard lock(mutex_);
  const u64 begin = reinterpret_cast<u64>(data);
  if (memory_.find(begin, bytes, false)) return true;
  if (must_be_device) return false;
  return std::none_of(memory_.ranges().begin(), memory_.ranges().end(),
                      [&](const MemoryMap::Range& range) {
                        return begin < range.end && range.begin < begin + bytes;
                      });
}

MemoryMap Runtime::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

int Runtime::load(const void* image, Module** module) {
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return kHipInvalidImage;
  const auto* bytes = static_cast<const u8*>(image);
  auto made = std::make_unique<Module>();
  try {
    made->object = std::make_unique<CodeObject>(std::span(bytes, image_bytes(bytes)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "simulated {}: {}\n", target_->name, error.what());
    return kHipInvalidImage;
  }
  if (made->object->target() != target_) return kHipNoBinaryForGpu;
  const std::lock_guard lock(mutex_);
  *module = made.get();
  modules_.insert(std::move(made));
  return kHipSuccess;
}

int Runtime::unload(Module* module) {
  const std::lock_guard lock(mutex_);
  return erase(modules_, module) ? kHipSuccess : kHipInvalidHandle;
}

int Runtime::find_function(Module* module, const char* name, Function** function) {
  const std::lock_guard lock(mutex_);
  if (!contains(modules_, module)) return kHipInvalidHandle;
  const auto kernel = module->object->kernels().find(name);
  if (kernel == module->object->kernels().end()) return kHipNotFound;
  auto& made = module->functions[name];
  if (!made) made = std::make_unique<Function>(Function{module, &kernel->second});
  *function = made.get();
  return kHipSuccess;
}

bool Runtime::knows(const Function* function) const {
  const std::lock_guard lock(mutex_);
  for (const auto& module : modules_)
    for (const auto& [name, each] : module->functions)
      if (each.get() == function) return true;
  return false;
}

Program& Runtime::program_of(Module& module) {
  const std::lock_guard lock(module.mutex);
  if (!module.program) module.program = disassemble(*module.object);
  return *module.program;
}

int Runtime::launch(Function& function, const Launch& launch) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    const Program& program = program_of(*function.module);
    const Statistics statistics = run_grid(program, *function.kernel, *function.module->object,
                                           launch, memory(), settings_from_environment());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    count(function.kernel->name, statistics, seconds.count());
    return kHipSuccess;
  } catch (const std::exception& error) {
    fmt::print(stderr, "simulated {}: {}\n", target_->name, error.what());
    std::fflush(stderr);
    if (aborts()) std::abort();
    fail(kHipLaunchFailure);
    return kHipLaunchFailure;
  }
}

Stream* Runtime::make_stream() {
  const std::lock_guard lock(mutex_);
  return streams_.insert(std::make_unique<Stream>()).first->get();
}
int Runtime::destroy_stream(Stream* stream) {
  const std::lock_guard lock(mutex_);
  return erase(streams_, stream) ? kHipSuccess : kHipInvalidHandle;
}
// Null, the legacy and the thread's default stream need not be made.
bool Runtime::knows(const Stream* stream) const {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return true;
  const std::lock_guard lock(mutex_);
  return contains(streams_, stream);
}

Event* Runtime::make_event(unsigned flags) {
  const std::lock_guard lock(mutex_);
  auto event = std::make_unique<Event>();
  event->flags = flags;
  return events_.insert(std::move(event)).first->get();
}
int Runtime::destroy_event(Event* event) {
  const std::lock_guard lock(mutex_);
  return erase(events_, event) ? kHipSuccess : kHipInvalidHandle;
}
bool Runtime::knows(const Event* event) const {
  const std::lock_guard lock(mutex_);
  return contains(events_, event);
}

void Runtime::count(const std::string& kernel, const Statistics& statistics, double seconds) {
  const std::lock_guard lock(mutex_);
  KernelStatistics& of = kernels_[kernel];
  ++of.launches;
  of.wave_instructions += statistics.wave_instructions;
  of.seconds += seconds;
  for (const auto& [opcode, count] : statistics.opcodes) opcodes_[opcode] += count;
}

void Runtime::write_statistics() const {
  const char* path = std::getenv("TESSERA_SIMULATED_STATISTICS");
  if (!path || !*path || !target_) return;
  nlohmann::json line{
      {"device", target_->name}, {"kernels", nlohmann::json::object()}, {"opcodes", opcodes_}};
  for (const auto& [name, of] : kernels_)
    line["kernels"][name] = {{"launches", of.launches},
                             {"wave_instructions", of.wave_instructions},
                             {"seconds", of.seconds}};
  const std::string text = line.dump() + "\n";
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  } else {
    fmt::print(stderr, "can't write {}\n", path);
  }
}

Runtime& runtime() {
  static Runtime the_runtime;
  return the_runtime;
}

int noted(int error) {
  if (error != kHipSuccess) the_last_error = error;
  return error;
}

int last_error(bool forget) {
  const int state = runtime().state();
  const int error = state != kHipSuccess && state != kHipNoDevice ? state : the_last_error;
  if (forget) the_last_error = kHipSuccess;
  return error;
}

}  // namespace tessera::amdgpu
