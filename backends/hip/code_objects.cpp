#include "backends/hip/code_objects.hpp"

#include "backends/hip/target.hpp"

namespace tessera::hip {

std::string targets_of(std::string_view instance) {
  const std::span<const CodeObject> all = code_objects();
  std::string text;
  for (const Target& target : kTargets) {
    const bool built = std::any_of(all.begin(), all.end(), [&](const CodeObject& object) {
      return object.target == target.isa && (instance.empty() || object.instance == instance);
    });
    if (built) text.append(text.empty() ? "" : ", ").append(target.isa);
  }
  return text.empty() ? "no target" : text;
}

std::string reject_target(std::string_view target, std::string_view instance) {
  if (find(code_objects(), instance, target) != nullptr) return {};
  std::string text = "the device is " + std::string(target) + "; this build has the kernel " +
                     std::string(instance) + " for " + targets_of(instance);
  if (find_target(target) != nullptr) text += ": TESSERA_HIP_TARGETS chooses what is built";
  return text;
}

}  // namespace tessera::hip
