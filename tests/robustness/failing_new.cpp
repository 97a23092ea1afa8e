#include "tests/robustness/failing_new.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::int64_t> live = 0;
constinit std::atomic<bool> armed = false;
constinit std::atomic<bool> once = false;
constinit std::atomic<std::int64_t> before_failure = 0;
constinit std::atomic<bool> failed_any = false;

bool fails() noexcept {
  if (!armed) return false;
  const std::int64_t left = --before_failure;
  if (once ? left != 0 : left > 0) return false;
  failed_any = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  const std::size_t whole =
      (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  if (whole < size) return nullptr;
  void* const data = alignment <= alignof(std::max_align_t) ? std::malloc(whole)
                                                            : std::aligned_alloc(alignment, whole);
  if (data != nullptr) ++live;
  return data;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* const data = allocate(size, alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void release(void* data) noexcept {
  if (data == nullptr) return;
  --live;
  std::free(data);
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, number(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, number(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kUsual);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kUsual);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, number(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, number(alignment));
}

void operator delete(void* data) noexcept { release(data); }
void operator delete[](void* data) noexcept { release(data); }
void operator delete(void* data, std::size_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t) noexcept { release(data); }
void operator delete(void* data, std::align_val_t) noexcept { release(data); }
void operator delete[](void* data, std::align_val_t) noexcept { release(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { release(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { release(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { release(data); }
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  release(data);
}
void operator delete[](void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  release(data);
}

namespace tessera::testing {

std::int64_t live_allocations() noexcept { return live; }

FailingNew::FailingNew(std::int64_t first, Which which) noexcept {
  once = which == Which::one;
  before_failure = first;
  failed_any = false;
  armed = true;
}

FailingNew::~FailingNew() { armed = false; }

bool FailingNew::failed() const noexcept { return failed_any; }

}  // namespace tessera::testing
