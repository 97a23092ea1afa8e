#include "tests/conformance/memory.hpp"

#include <algorithm>
#include <cstring>

#include <tessera/info.hpp>
#include <tessera/stream.hpp>

#include "reference/number.hpp"

namespace tessera::testing {

Block::Block(std::size_t bytes)
    : size_(bytes),
      host_(static_cast<std::byte*>(
          ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment}))),
      device_(std::max<std::size_t>(bytes, 1)) {
  poison();
}

void Block::poison() noexcept { std::memset(host_.get(), kPoison, size_); }

void Block::upload() {
  if (size_ == 0) return;
  copy(device_.data(), host_.get(), size_);
  Stream().synchronize();  // tests edit the host's copy next
}

void Block::download() {
  if (size_ == 0) return;
  copy(host_.get(), device_.data(), size_);
  Stream().synchronize();
}

ConstTensor Slot::input(Side side) const {
  if (block == nullptr) return {};
  return {static_cast<const std::byte*>(block->data(side)) + offset * size_of(dtype), dtype, extent,
          stride};
}

Tensor Slot::output(Side side) const {
  if (block == nullptr) return {};
  return {static_cast<std::byte*>(block->data(side)) + offset * size_of(dtype), dtype, extent,
          stride};
}

std::int64_t Slot::index(std::int64_t batch, std::int64_t head, std::int64_t seq,
                         std::int64_t dim) const noexcept {
  return offset + batch * stride.batch + head * stride.head + seq * stride.seq + dim * stride.dim;
}

double Slot::get(std::int64_t batch, std::int64_t head, std::int64_t seq, std::int64_t dim) const {
  return reference::load(dtype, block->host(), index(batch, head, seq, dim));
}

void Slot::set(std::int64_t batch, std::int64_t head, std::int64_t seq, std::int64_t dim,
               double number) const {
  reference::store(dtype, block->host(), index(batch, head, seq, dim), number);
}

ConstVector Numbers::input(Side side) const {
  if (block == nullptr) return {};
  return {block->data(side), dtype, size};
}

bool host_memory_is_device_memory() {
  const std::string space = device_info().space;
  return space == "OpenMP" || space == "Serial" || space == "Threads" || space == "HPX" ||
         space == "calling thread";  // without Kokkos
}

}  // namespace tessera::testing
