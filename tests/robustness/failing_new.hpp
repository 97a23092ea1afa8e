#pragma once
/// Allocations through operator new that fail when told to: linking failing_new.cpp replaces the
/// operators of the whole program, libraries included.

#include <cstdint>

namespace tessera::testing {

/// What was allocated through operator new and not deleted yet.
std::int64_t live_allocations() noexcept;

/// While it lives, allocation number `first`, counted from 1, fails, on whatever thread it is, and
/// perhaps all that follow. One at a time.
class FailingNew {
 public:
  enum class Which : std::uint8_t { one, all_from };

  FailingNew(std::int64_t first, Which which) noexcept;
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  /// Has any failed?
  bool failed() const noexcept;
};

}  // namespace tessera::testing
