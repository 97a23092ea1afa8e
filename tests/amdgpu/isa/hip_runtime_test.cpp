// The simulated HIP runtime through its own interface, as a program that opens it sees it. What the
// environment decides, and what ends in a sticky error, runs in a process of its own.

#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "tests/amdgpu/isa/hip_api.hpp"

namespace tessera::amdgpu {
namespace {

class Hip {
 public:
  Hip() : library_(::dlopen(TESSERA_SIMULATED_AMDGPU, RTLD_NOW)) {
    if (!library_) throw std::runtime_error(::dlerror());
  }
  template <class... A>
  int call(const char* name, A... arguments) const {
    void* function = ::dlsym(library_, name);
    if (!function) throw std::runtime_error(::dlerror());
    return reinterpret_cast<int (*)(A...)>(function)(arguments...);
  }
  const char* error_name(int error) const {
    return reinterpret_cast<const char* (*)(int)>(::dlsym(library_, "hipGetErrorName"))(error);
  }
  int launch(void* function, unsigned grid, unsigned block, void** params, void** extra = nullptr,
             unsigned lds = 0) const {
    return call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**>("hipModuleLaunchKernel", function, grid, 1, 1, block, 1, 1, lds,
                                nullptr, params, extra);
  }

 private:
  void* library_;
};

std::vector<char> read_kernels(const std::string& name) {
  std::ifstream file(fmt::format("{}/{}", TESSERA_AMDGPU_TEST_KERNELS, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `act` in a child process with these variables set; its result is the exit status, and what
// it prints on stderr goes to `errors`.
template <class F>
int in_child(const std::vector<std::pair<const char*, std::string>>& variables, F act,
             std::string* errors = nullptr) {
  const std::string path = ::testing::TempDir() + fmt::format("amdgpu_runtime_{}", ::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen(path.c_str(), "w", stderr)) std::_Exit(99);
    for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    std::exit(act());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (errors) {
    std::ifstream file(path);
    errors->assign(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove(path);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// As many bytes as the tests' buffers have.
constexpr std::size_t kBytes = 256 * sizeof(int);

// Runs the kernel `exchange`; returns the first error.
int exchange(const Hip& hip, const std::string& target, bool packed, std::vector<int>& out) {
  const std::vector<char> image = read_kernels("faults.O3." + target + ".co");
  void *module = nullptr, *function = nullptr, *in_buffer = nullptr, *out_buffer = nullptr;
  if (const int error =
          hip.call("hipModuleLoadData", &module, static_cast<const void*>(image.data())))
    return error;
  if (const int error = hip.call("hipModuleGetFunction", &function, module, "exchange"))
    return error;
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 1);
  for (void** buffer : {&in_buffer, &out_buffer})
    if (const int error = hip.call("hipMalloc", buffer, kBytes)) return error;
  if (const int error = hip.call("hipMemcpy", in_buffer, static_cast<const void*>(in.data()),
                                 kBytes, static_cast<int>(kHostToDevice)))
    return error;
  void* params[] = {&in_buffer, &out_buffer};
  void* block[] = {in_buffer, out_buffer};
  std::size_t size = sizeof block;
  void* extra[] = {reinterpret_cast<void*>(kLaunchBufferPointer), block,
                   reinterpret_cast<void*>(kLaunchBufferSize), &size,
                   reinterpret_cast<void*>(kLaunchEnd)};
  if (const int error = packed ? hip.launch(function, 1, 256, nullptr, extra)
                               : hip.launch(function, 1, 256, params))
    return error;
  if (const int error = hip.call("hipDeviceSynchronize")) return error;
  out.resize(256);
  if (const int error =
          hip.call("hipMemcpy", static_cast<void*>(out.data()),
                   static_cast<const void*>(out_buffer), kBytes, static_cast<int>(kDefaultKind)))
    return error;
  for (void* buffer : {in_buffer, out_buffer})
    if (const int error = hip.call("hipFree", buffer)) return error;
  return hip.call("hipModuleUnload", module);
}

bool is_right(const std::vector<int>& out) {
  for (int i = 0; i < 256; ++i)
    if (out[static_cast<std::size_t>(i)] != 2 * (256 - (i ^ 128) + 1)) return false;
  return true;
}

class Device : public ::testing::TestWithParam<std::string> {};

TEST_P(Device, NamesItself) {
  EXPECT_EQ(
      in_child({{"TESSERA_SIMULATED_DEVICE", GetParam()}},
               [&] {
                 const Hip hip;
                 int count = 0, value = 0;
                 if (hip.call("hipInit", 0u) || hip.call("hipGetDeviceCount", &count) || count != 1)
                   return 1;
                 HipDeviceProperties p;
                 if (hip.call("hipGetDevicePropertiesR0600", &p, 0) || GetParam() != p.architecture)
                   return 2;
                 if (p.warp_size != (GetParam().starts_with("gfx9") ? 64 : 32)) return 3;
                 if (hip.call("hipDeviceGetAttribute", &value,
                              static_cast<int>(kMaxSharedMemoryPerBlock), 0))
                   return 4;
                 if (static_cast<std::size_t>(value) != p.shared_per_block || value < 65536)
                   return 5;
                 if (hip.call("hipGetDevicePropertiesR0600", &p, 1) != kHipInvalidDevice) return 6;
                 return 0;
               }),
      0);
}

TEST_P(Device, RunsAKernelWithBothKindsOfArguments) {
  for (const char* order : {"forward", "reverse", "random", "random:7"})
    for (const bool packed : {false, true})
      EXPECT_EQ(
          in_child({{"TESSERA_SIMULATED_DEVICE", GetParam()}, {"TESSERA_SIMULATED_ORDER", order}},
                   [&] {
                     std::vector<int> out;
                     const int error = exchange(Hip(), GetParam(), packed, out);
                     return error ? error % 256 : is_right(out) ? 0 : 1;
                   }),
          0);
}

INSTANTIATE_TEST_SUITE_P(All, Device,
                         ::testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),
                         [](const auto& test) { return test.param; });

TEST(NoDevice, IsSaid) {
  EXPECT_EQ(in_child({{"TESSERA_SIMULATED_DEVICE", "none"}},
                     [] {
                       const Hip hip;
                       int count = 7;
                       void* data = nullptr;
                       const bool right = hip.call("hipInit", 0u) == kHipNoDevice &&
                                          hip.call("hipGetDeviceCount", &count) == kHipNoDevice &&
                                          count == 0 &&
                                          hip.call("hipMalloc", &data, kBytes) == kHipNoDevice;
                       return right ? 0 : 1;
                     }),
            0);
}

TEST(NoDevice, AnUnknownOneIsRefused) {
  std::string errors;
  EXPECT_EQ(in_child(
                {{"TESSERA_SIMULATED_DEVICE", "gfx803"}}, [] { return Hip().call("hipInit", 0u); },
                &errors),
            -SIGABRT);
  EXPECT_NE(errors.find("TESSERA_SIMULATED_DEVICE is gfx803; must be none or one of gfx90a"),
            std::string::npos)
      << errors;
}

// In a process of its own, on gfx942: in ours the runtime would stay as the first test wanted it.
void check_apart(void (*check)(const Hip&)) {
  EXPECT_EQ(in_child({},
                     [&] {
                       check(Hip());
                       return ::testing::Test::HasFailure() ? 1 : 0;
                     }),
            0);
}

void check_modules(const Hip& hip) {
  void *module = nullptr, *function = nullptr;
  const auto load = [&](const std::vector<char>& image) {
    return hip.call("hipModuleLoadData", &module, static_cast<const void*>(image.data()));
  };
  EXPECT_EQ(load(read_kernels("faults.O3.gfx950.co")), kHipNoBinaryForGpu);
  EXPECT_EQ(load(read_kernels("faults.O3.gfx1201.co")), kHipNoBinaryForGpu);
  EXPECT_EQ(load(std::vector<char>(4096, 'x')), kHipInvalidImage);
  ASSERT_EQ(load(read_kernels("faults.O3.gfx942.co")), kHipSuccess);
  EXPECT_EQ(hip.call("hipModuleGetFunction", &function, module, "no_such_kernel"), kHipNotFound);
  EXPECT_EQ(hip.call("hipModuleGetFunction", &function, module, "exchange"), kHipSuccess);
  int blocks = 0;
  EXPECT_EQ(hip.call("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, function, 256,
                     std::size_t{0}),
            kHipSuccess);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(hip.call("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, function, 256,
                     std::size_t{30000}),
            kHipSuccess);
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(hip.call("hipFuncSetAttribute", static_cast<const void*>(function),
                     static_cast<int>(kMaxDynamicSharedMemory), 64512),
            kHipSuccess);
  EXPECT_EQ(hip.call("hipFuncSetAttribute", static_cast<const void*>(function),
                     static_cast<int>(kMaxDynamicSharedMemory), 64513),
            kHipInvalidValue);
  EXPECT_EQ(hip.launch(function, 0, 256, nullptr), kHipInvalidConfiguration);
  EXPECT_EQ(hip.launch(function, 1, 257, nullptr), kHipInvalidConfiguration);
  EXPECT_EQ(hip.launch(function, 1, 256, nullptr, nullptr, 65536), kHipLaunchOutOfResources);
  EXPECT_EQ(hip.launch(function, 1, 256, nullptr), kHipInvalidValue);
  EXPECT_EQ(hip.launch(nullptr, 1, 256, nullptr), kHipInvalidHandle);
  EXPECT_EQ(hip.call("hipModuleUnload", module), kHipSuccess);
  EXPECT_EQ(hip.call("hipModuleUnload", module), kHipInvalidHandle);
  EXPECT_EQ(hip.launch(function, 1, 256, nullptr), kHipInvalidHandle);
}
TEST(Runtime, Modules) { check_apart(check_modules); }

void check_memory(const Hip& hip) {
  std::size_t free_before = 0, free_after = 0, total = 0;
  void* data = nullptr;
  EXPECT_EQ(hip.call("hipMemGetInfo", &free_before, &total), kHipSuccess);
  ASSERT_EQ(hip.call("hipMalloc", &data, std::size_t{1000}), kHipSuccess);
  EXPECT_EQ(hip.call("hipMemGetInfo", &free_after, &total), kHipSuccess);
  EXPECT_EQ(free_before - free_after, 1000u);
  std::vector<char> host(1001, 'a');
  EXPECT_EQ(hip.call("hipMemset", data, 'b', std::size_t{1001}), kHipInvalidValue);
  EXPECT_EQ(hip.call("hipMemset", data, 'b', std::size_t{1000}), kHipSuccess);
  EXPECT_EQ(hip.call("hipMemcpy", static_cast<void*>(host.data()), static_cast<const void*>(data),
                     std::size_t{1001}, static_cast<int>(kDefaultKind)),
            kHipInvalidValue);
  EXPECT_EQ(hip.call("hipMemcpy", static_cast<void*>(host.data()), static_cast<const void*>(data),
                     std::size_t{1000}, static_cast<int>(kDeviceToHost)),
            kHipSuccess);
  EXPECT_EQ(host[999], 'b');
  EXPECT_EQ(host[1000], 'a');
  EXPECT_EQ(
      hip.call("hipMemcpy", static_cast<void*>(host.data()), static_cast<const void*>(host.data()),
               std::size_t{10}, static_cast<int>(kHostToDevice)),
      kHipInvalidValue);
  EXPECT_EQ(hip.call("hipFree", static_cast<void*>(static_cast<char*>(data) + 256)),
            kHipInvalidValue);
  EXPECT_EQ(hip.call("hipGetLastError"), kHipInvalidValue);
  EXPECT_EQ(hip.call("hipGetLastError"), kHipSuccess);
  EXPECT_EQ(hip.call("hipFree", data), kHipSuccess);
  EXPECT_EQ(hip.call("hipFree", data), kHipInvalidValue);
  EXPECT_EQ(hip.call("hipMalloc", &data, total + 1), kHipOutOfMemory);
  EXPECT_STREQ(hip.error_name(kHipOutOfMemory), "hipErrorOutOfMemory");
  EXPECT_EQ(hip.call("hipPeekAtLastError"), kHipOutOfMemory);
  EXPECT_EQ(hip.call("hipGetLastError"), kHipOutOfMemory);
}
TEST(Runtime, Memory) { check_apart(check_memory); }

void check_streams_and_events(const Hip& hip) {
  void *stream = nullptr, *start = nullptr, *stop = nullptr;
  ASSERT_EQ(hip.call("hipStreamCreateWithFlags", &stream, 1u), kHipSuccess);
  ASSERT_EQ(hip.call("hipEventCreateWithFlags", &start, kEventDefault), kHipSuccess);
  ASSERT_EQ(hip.call("hipEventCreateWithFlags", &stop, kEventDisableTiming), kHipSuccess);
  float milliseconds = -1;
  int capturing = -1;
  EXPECT_EQ(hip.call("hipStreamIsCapturing", stream, &capturing), kHipSuccess);
  EXPECT_EQ(capturing, 0);
  EXPECT_EQ(hip.call("hipEventElapsedTime", &milliseconds, start, start),
            kHipInvalidHandle);  // not recorded
  EXPECT_EQ(hip.call("hipEventRecord", start, stream), kHipSuccess);
  EXPECT_EQ(hip.call("hipEventRecord", stop, stream), kHipSuccess);
  EXPECT_EQ(hip.call("hipStreamWaitEvent", stream, stop, 0u), kHipSuccess);
  EXPECT_EQ(hip.call("hipEventElapsedTime", &milliseconds, start, stop),
            kHipInvalidHandle);  // made without timing
  EXPECT_EQ(hip.call("hipEventElapsedTime", &milliseconds, start, start), kHipSuccess);
  EXPECT_EQ(milliseconds, 0);
  EXPECT_EQ(hip.call("hipStreamDestroy", stream), kHipSuccess);
  EXPECT_EQ(hip.call("hipStreamSynchronize", stream), kHipInvalidHandle);
  for (void* event : {start, stop}) EXPECT_EQ(hip.call("hipEventDestroy", event), kHipSuccess);
  EXPECT_EQ(hip.call("hipEventRecord", start, static_cast<void*>(nullptr)), kHipInvalidHandle);
}
TEST(Runtime, StreamsAndEvents) { check_apart(check_streams_and_events); }

// A kernel that reads outside its buffer.
int faulty_launch(const Hip& hip) {
  const std::vector<char> image = read_kernels("faults.O3.gfx942.co");
  void *module = nullptr, *function = nullptr, *buffer = nullptr;
  hip.call("hipModuleLoadData", &module, static_cast<const void*>(image.data()));
  hip.call("hipModuleGetFunction", &function, module, "shifted");
  hip.call("hipMalloc", &buffer, kBytes);
  int in_shift = 193, out_shift = 0;
  void* params[] = {&buffer, &buffer, &in_shift, &out_shift};
  return hip.launch(function, 1, 64, params);
}

TEST(Faults, ReportAndStay) {
  std::string errors;
  EXPECT_EQ(in_child(
                {},
                [] {
                  const Hip hip;
                  void* data = nullptr;
                  if (faulty_launch(hip) != kHipLaunchFailure) return 1;
                  if (hip.call("hipGetLastError") != kHipLaunchFailure ||
                      hip.call("hipGetLastError") != kHipLaunchFailure)
                    return 2;
                  return hip.call("hipMalloc", &data, kBytes) == kHipLaunchFailure ? 0 : 3;
                },
                &errors),
            0);
  for (const char* part :
       {"simulated gfx942: kernel shifted, pc 0x", "'global_load_dword ",
        "workgroup (0, 0, 0), wave 0, lane 63: read of 4 bytes at 0x", "outside every buffer"})
    EXPECT_NE(errors.find(part), std::string::npos) << errors;
}

TEST(Faults, AbortIfAsked) {
  EXPECT_EQ(in_child({{"TESSERA_SIMULATED_ABORT", "1"}}, [] { return faulty_launch(Hip()); }),
            -SIGABRT);
}

TEST(Faults, AnOrderThatIsNoneFailsTheLaunch) {
  std::string errors;
  EXPECT_EQ(in_child(
                {{"TESSERA_SIMULATED_ORDER", "sideways"}},
                [] {
                  std::vector<int> out;
                  return exchange(Hip(), "gfx942", false, out) == kHipLaunchFailure ? 0 : 1;
                },
                &errors),
            0);
  EXPECT_NE(
      errors.find(
          "TESSERA_SIMULATED_ORDER is sideways; must be forward, reverse, random or random:SEED"),
      std::string::npos)
      << errors;
}

TEST(Faults, WithoutADisassemblerTheLaunchFails) {
  std::string errors;
  EXPECT_EQ(in_child(
                {{"TESSERA_AMDGPU_OBJDUMP", "/no/such/objdump"}},
                [] {
                  std::vector<int> out;
                  return exchange(Hip(), "gfx942", false, out) == kHipLaunchFailure ? 0 : 1;
                },
                &errors),
            0);
  EXPECT_NE(errors.find("TESSERA_AMDGPU_OBJDUMP names the llvm-objdump to use"), std::string::npos)
      << errors;
}

TEST(Statistics, AreALineOfJson) {
  const std::string path = ::testing::TempDir() + fmt::format("amdgpu_statistics_{}", ::getpid());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(in_child({{"TESSERA_SIMULATED_STATISTICS", path}, {"TESSERA_SIMULATED_THREADS", "2"}},
                       [] {
                         std::vector<int> out;
                         const Hip hip;
                         return exchange(hip, "gfx942", false, out) ||
                                exchange(hip, "gfx942", true, out);
                       }),
              0);
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("device"), "gfx942");
    EXPECT_EQ(json.at("kernels").at("exchange").at("launches"), 2);
    EXPECT_EQ(json.at("opcodes").at("s_barrier"), 2 * 4 * 3);  // launches, waves, barriers
    int sum = 0;
    for (const auto& [opcode, count] : json.at("opcodes").items()) sum += count.get<int>();
    EXPECT_EQ(json.at("kernels").at("exchange").at("wave_instructions"), sum);
  }
  EXPECT_EQ(lines, 2);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tessera::amdgpu
