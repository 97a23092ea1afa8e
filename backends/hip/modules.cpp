#include "backends/hip/modules.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <tessera/error.hpp>

#include "backends/gpu_common/device_guard.hpp"
#include "backends/gpu_common/devices.hpp"
#include "backends/gpu_common/error.hpp"
#include "backends/hip/code_objects.hpp"
#include "backends/hip/runtime.hpp"

namespace tessera::hip {
namespace {

// Never destroyed: the runtime may be gone by the time that static destructors run.
struct Loaded {
  std::mutex loading{};
  std::map<int, std::string> targets{};  // of devices
  std::map<std::pair<int, std::string>, const void*> functions{};
};

Loaded& loaded() {
  static Loaded& all = *new Loaded;
  return all;
}

const std::string& target_of(int device) {
  std::map<int, std::string>& known = loaded().targets;
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  return known.emplace(device, gpu::properties(device).isa.data()).first->second;
}

const void* load(int device, const CodeObject& object) {
  const std::string what = "the kernel " + std::string(object.instance) + " for " +
                           std::string(object.target) + " on device " + std::to_string(device);
  const gpu::DeviceGuard guard(device);  // has spoken up if there is no runtime
  void* module = nullptr;
  gpu::check(runtime()->module_load_data(&module, object.data), "loading " + what);
  void* function = nullptr;
  const std::string symbol = "tessera_" + std::string(object.instance);
  gpu::check(runtime()->module_get_function(&function, module, symbol.c_str()),
             "finding " + symbol + " in " + what);
  return function;
}

}  // namespace

const void* function(int device, std::string_view instance) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.loading);
  const std::pair key(device, std::string(instance));
  if (const auto found = all.functions.find(key); found != all.functions.end())
    return found->second;
  const std::string& target = target_of(device);
  const CodeObject* const object = find(code_objects(), instance, target);
  if (object == nullptr) throw Unsupported(reject_target(target, instance));
  const void* const function = load(device, *object);
  all.functions.emplace(key, function);
  return function;
}

}  // namespace tessera::hip
