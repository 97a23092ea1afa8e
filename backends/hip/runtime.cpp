#include "backends/hip/runtime.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace tessera::hip {
namespace {

constexpr const char* kVariable = "TESSERA_HIP_RUNTIME";

// Newest first. Their properties differ, their other functions do not.
constexpr std::array kLibraries{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                "libamdhip64.so"};

std::string last_dl_error() {
  const char* const text = dlerror();
  return text != nullptr ? text : "for an unknown reason";
}

// Null, with the reason in `opened`, if there is none.
void* open_library(const char* chosen, Opened& opened) {
  if (chosen != nullptr && *chosen != '\0') {
    opened.library = chosen;
    void* const library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      opened.why_not = "the environment variable " + std::string(kVariable) + " is '" + chosen +
                       "', which cannot be opened: " + last_dl_error();
    }
    return library;
  }
  std::string reasons;
  for (const char* const name : kLibraries) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      opened.library = name;
      return library;
    }
    reasons += "; " + last_dl_error();
  }
  opened.why_not = "the HIP runtime cannot be opened (" + std::string(kVariable) +
                   " may name its file)" + reasons;
  return nullptr;
}

// Takes functions out of a library, and notes those that it lacks.
class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}

  template <class Function>
  bool find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    return function != nullptr;
  }

  template <class Function>
  void take(const char* name, Function*& function) {
    if (!find(name, function)) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

// HIP 6 kept the name without a suffix for programs built before it, with the layout of then.
void take_properties(Resolver& resolver, Runtime& r) {
  r.properties = abi::kPropertiesR0600;
  if (resolver.find("hipGetDevicePropertiesR0600", r.get_device_properties)) return;
  r.properties = abi::kPropertiesR0000;
  resolver.take("hipGetDeviceProperties", r.get_device_properties);
}

void take_all(Resolver& resolver, Runtime& r) {
  resolver.take("hipGetDeviceCount", r.get_device_count);
  resolver.take("hipGetDevice", r.get_device);
  resolver.take("hipSetDevice", r.set_device);
  take_properties(resolver, r);
  resolver.take("hipMemGetInfo", r.mem_get_info);
  resolver.take("hipMalloc", r.malloc);
  resolver.take("hipFree", r.free);
  resolver.take("hipMallocAsync", r.malloc_async);
  resolver.take("hipFreeAsync", r.free_async);
  resolver.take("hipMemcpyAsync", r.memcpy_async);
  resolver.take("hipMemsetAsync", r.memset_async);
  resolver.take("hipStreamSynchronize", r.stream_synchronize);
  resolver.take("hipStreamIsCapturing", r.stream_is_capturing);
  resolver.take("hipStreamWaitEvent", r.stream_wait_event);
  resolver.take("hipEventCreateWithFlags", r.event_create_with_flags);
  resolver.take("hipEventRecord", r.event_record);
  resolver.take("hipEventDestroy", r.event_destroy);
  resolver.take("hipGetLastError", r.get_last_error);
  resolver.take("hipPeekAtLastError", r.peek_at_last_error);
  resolver.take("hipGetErrorName", r.get_error_name);
  resolver.take("hipGetErrorString", r.get_error_string);
  resolver.take("hipModuleLoadData", r.module_load_data);
  resolver.take("hipModuleGetFunction", r.module_get_function);
  resolver.take("hipModuleLaunchKernel", r.module_launch_kernel);
  resolver.take("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
                r.module_occupancy_max_active_blocks_per_multiprocessor);
}

// Leaked: threads may still launch while the process ends.
const Opened& opened() {
  static const Opened& once = *new Opened(open_runtime(std::getenv(kVariable)));
  return once;
}

}  // namespace

Opened open_runtime(const char* chosen) {
  Opened opened;
  void* const library = open_library(chosen, opened);
  if (library == nullptr) return opened;
  Resolver resolver(library);
  take_all(resolver, opened.runtime);
  if (!resolver.missing().empty()) {
    opened.why_not = "the HIP runtime " + opened.library + " lacks " + resolver.missing();
    dlclose(library);
  }
  return opened;
}

const Runtime* runtime() noexcept try {
  return opened().why_not.empty() ? &opened().runtime : nullptr;
} catch (...) {  // no memory; the next call tries again
  return nullptr;
}

const char* why_no_runtime() noexcept try { return opened().why_not.c_str(); } catch (...) {
  return "there is no memory to open the HIP runtime";
}

}  // namespace tessera::hip
