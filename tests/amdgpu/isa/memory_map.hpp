#pragma once
// The ranges of host memory that a kernel may touch.

#include <algorithm>
#include <vector>

#include "tests/amdgpu/isa/formats.hpp"

namespace tessera::amdgpu {

class MemoryMap {
 public:
  struct Range {
    u64 begin = 0, end = 0;
    bool writable = true;
  };

  void add(u64 begin, u64 bytes, bool writable) {
    const Range range{begin, begin + bytes, writable};
    ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), range, before), range);
  }
  // Whether there was one that begins there.
  bool remove(u64 begin) {
    const auto at = std::find_if(ranges_.begin(), ranges_.end(),
                                 [&](const Range& range) { return range.begin == begin; });
    if (at == ranges_.end()) return false;
    ranges_.erase(at);
    return true;
  }
  // The range that holds all these bytes, or null.
  const Range* find(u64 address, u64 bytes, bool write) const {
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), Range{address, address}, before);
    if (at == ranges_.begin()) return nullptr;
    --at;
    return address + bytes <= at->end && (at->writable || !write) ? &*at : nullptr;
  }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  static bool before(const Range& a, const Range& b) { return a.begin < b.begin; }
  std::vector<Range> ranges_{};
};

}  // namespace tessera::amdgpu
