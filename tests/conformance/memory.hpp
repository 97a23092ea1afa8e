#pragma once
/// Memory of a test: bytes on the host and the same on the device, reached through the public API
/// alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <tessera/buffer.hpp>
#include <tessera/tensor.hpp>

namespace tessera::testing {

enum class Side : std::uint8_t { host, device };

/// What memory is filled with before a test writes to it: NaN in every floating-point type.
inline constexpr int kPoison = 0xff;

/// A block of memory on both sides. The host's is poisoned; the device's holds what was last
/// uploaded.
class Block {
 public:
  explicit Block(std::size_t bytes);

  std::byte* host() noexcept { return host_.get(); }
  void* data(Side side) noexcept { return side == Side::host ? host_.get() : device_.data(); }
  std::size_t size() const noexcept { return size_; }

  void poison() noexcept;
  void upload();
  void download();

 private:
  struct Release {
    void operator()(std::byte* data) const noexcept {
      ::operator delete(data, std::align_val_t{kAlignment});
    }
  };
  static constexpr std::size_t kAlignment = 128;

  std::size_t size_;
  std::unique_ptr<std::byte[], Release> host_;
  Buffer device_;
};

/// A tensor in a block: where it starts, and its shape. Without a block: absent.
struct Slot {
  std::shared_ptr<Block> block{};
  DType dtype = DType::fp32;
  std::int64_t offset = 0;  ///< of the first element, in elements
  Extents extent{};
  Strides stride{};

  explicit operator bool() const noexcept { return block != nullptr; }
  ConstTensor input(Side side) const;
  Tensor output(Side side) const;
  std::int64_t index(std::int64_t batch, std::int64_t head, std::int64_t seq,
                     std::int64_t dim) const noexcept;
  double get(std::int64_t batch, std::int64_t head, std::int64_t seq, std::int64_t dim) const;
  void set(std::int64_t batch, std::int64_t head, std::int64_t seq, std::int64_t dim,
           double number) const;
  /// Calls `visit(batch, head, seq, dim)` for every element in that order.
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t b = 0; b < extent.batch; ++b) {
      for (std::int64_t h = 0; h < extent.head; ++h) {
        for (std::int64_t s = 0; s < extent.seq; ++s) {
          for (std::int64_t d = 0; d < extent.dim; ++d) visit(b, h, s, d);
        }
      }
    }
  }
};

/// A vector of indices. Without a block: absent.
struct Numbers {
  std::shared_ptr<Block> block{};
  DType dtype = DType::int32;
  std::int64_t size = 0;

  ConstVector input(Side side) const;
};

/// Do kernels of this build run where the host's own memory can be given to them?
bool host_memory_is_device_memory();

}  // namespace tessera::testing
