#include "tests/conformance/side_stream.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace tessera::testing {

struct SideStream::Impl {
  cudaStream_t stream = nullptr;

  Impl() {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
      throw std::runtime_error("no second stream can be had");
  }
  ~Impl() { cudaStreamDestroy(stream); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

SideStream::SideStream() : impl_(std::make_unique<Impl>()) {}
SideStream::~SideStream() = default;

Stream SideStream::stream() const noexcept { return Stream::from_native(impl_->stream); }

}  // namespace tessera::testing
