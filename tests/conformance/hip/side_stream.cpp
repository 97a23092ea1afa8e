#include "tests/conformance/side_stream.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tessera::testing {
namespace {

// The runtime that the library has opened: it has made its first call by now.
void* opened_runtime() {
  const char* const chosen = std::getenv("TESSERA_HIP_RUNTIME");
  const std::array names{chosen != nullptr ? chosen : "", "libamdhip64.so.7", "libamdhip64.so.6",
                         "libamdhip64.so.5", "libamdhip64.so"};
  for (const char* const name : names) {
    if (*name == '\0') continue;
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  throw std::runtime_error("no HIP runtime is open");
}

template <class Function>
Function* find(const char* name) {
  static void* const runtime = opened_runtime();
  void* const found = dlsym(runtime, name);
  if (found == nullptr) throw std::runtime_error(std::string("the HIP runtime lacks ") + name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

struct SideStream::Impl {
  void* stream = nullptr;  // hipStream_t

  Impl() {
    constexpr unsigned kNonBlocking = 1;
    if (find<int(void**, unsigned)>("hipStreamCreateWithFlags")(&stream, kNonBlocking) != 0)
      throw std::runtime_error("no second stream can be had");
  }
  ~Impl() { find<int(void*)>("hipStreamDestroy")(stream); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

SideStream::SideStream() : impl_(std::make_unique<Impl>()) {}
SideStream::~SideStream() = default;

Stream SideStream::stream() const noexcept { return Stream::from_native(impl_->stream); }

}  // namespace tessera::testing
