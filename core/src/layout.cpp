#include "core/src/layout.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tessera::detail {
namespace {

constexpr Wide kLimit = std::numeric_limits<std::int64_t>::max();

struct Step {
  std::int64_t count;   // extent, at least 2
  std::int64_t stride;  // in elements or bytes
};

// The axes along which there is more than one element, by ascending stride.
struct Steps {
  std::array<Step, 4> storage{};
  std::size_t size = 0;

  Steps(const Extents& extent, const Strides& stride, std::int64_t unit) {
    for (const Axis& axis : kAxes) {
      if (extent.*axis.extent > 1) insert({extent.*axis.extent, stride.*axis.stride * unit});
    }
  }
  const Step* begin() const { return storage.data(); }
  const Step* end() const { return storage.data() + size; }

 private:
  // In order: g++ 12 takes std::sort of so short an array for an access out of bounds.
  void insert(const Step& step) {
    std::size_t at = size++;
    for (; at > 0 && storage[at - 1].stride > step.stride; --at) storage[at] = storage[at - 1];
    storage[at] = step;
  }
};

// A multiple of `stride`, the factor within [low, high].
struct Term {
  Wide stride;
  Wide low;
  Wide high;
};

Wide floor_div(Wide a, Wide b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }  // b > 0
Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }

// Is there a choice of factors for which the sum of the terms lies within [low, high]? Branch and
// bound: of each stride, largest first, only the factors from which the smaller terms can still
// reach the interval are tried.
class Reach {
 public:
  void add(Wide stride, Wide low, Wide high) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (terms_[i].stride == stride) {
        terms_[i].low += low;
        terms_[i].high += high;
        return;
      }
    }
    terms_[size_++] = {stride, low, high};
  }

  bool reaches(Wide low, Wide high) {
    std::sort(terms_.begin(), terms_.begin() + size_,
              [](const Term& a, const Term& b) { return a.stride > b.stride; });
    for (std::size_t i = size_; i-- > 0;) {
      rest_[i] = {std::gcd(static_cast<std::int64_t>(terms_[i].stride), rest_[i + 1].divisor),
                  rest_[i + 1].low + terms_[i].low * terms_[i].stride,
                  rest_[i + 1].high + terms_[i].high * terms_[i].stride};
    }
    return search(0, low, high);
  }

 private:
  // What the terms from i on can give: multiples of the divisor within [low, high].
  struct Rest {
    std::int64_t divisor = 0;
    Wide low = 0;
    Wide high = 0;
  };

  bool search(std::size_t i, Wide low, Wide high) {
    low = std::max(low, rest_[i].low);
    high = std::min(high, rest_[i].high);
    if (low > high) return false;
    if (i == size_) return true;  // 0 lies within
    if (ceil_div(low, rest_[i].divisor) > floor_div(high, rest_[i].divisor)) return false;
    if (--budget_ < 0) return true;
    const Term& term = terms_[i];
    const Wide first = std::max(term.low, ceil_div(low - rest_[i + 1].high, term.stride));
    const Wide last = std::min(term.high, floor_div(high - rest_[i + 1].low, term.stride));
    for (Wide factor = first; factor <= last; ++factor) {
      if (search(i + 1, low - factor * term.stride, high - factor * term.stride)) return true;
    }
    return false;
  }

  std::array<Term, 8> terms_{};
  std::array<Rest, 9> rest_{};
  std::size_t size_ = 0;
  int budget_ = 10'000;
};

}  // namespace

std::optional<std::int64_t> element_count(const Extents& extent) {
  if (is_empty(extent)) return 0;
  Wide count = 1;
  for (const Axis& axis : kAxes) {
    count *= extent.*axis.extent;
    if (count > kLimit) return std::nullopt;
  }
  return static_cast<std::int64_t>(count);
}

std::optional<std::int64_t> byte_span(DType dtype, const Extents& extent, const Strides& stride) {
  if (is_empty(extent)) return 0;
  Wide span = 1;
  for (const Axis& axis : kAxes) {
    if (extent.*axis.extent > 1) span += Wide{extent.*axis.extent - 1} * (stride.*axis.stride);
    if (span > kLimit || span < -kLimit) return std::nullopt;
  }
  span *= size_of(dtype);
  if (span > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(span);
}

bool may_overlap_itself(const Extents& extent, const Strides& stride) {
  if (is_empty(extent)) return false;
  std::int64_t span = 1;
  for (const Step& step : Steps(extent, stride, 1)) {
    if (step.stride < span) return true;
    span += (step.count - 1) * step.stride;
  }
  return false;
}

bool may_overlap(const Region& a, const Region& b) {
  const std::int64_t span_a = byte_span(a.dtype, a.extent, a.stride).value_or(0);
  const std::int64_t span_b = byte_span(b.dtype, b.extent, b.stride).value_or(0);
  if (span_a == 0 || span_b == 0) return false;
  // They share a byte if a.address + Σ a's steps + x = b.address + Σ b's steps + y with x and y
  // within what is contiguous.
  const Wide distance = static_cast<Wide>(b.address) - static_cast<Wide>(a.address);
  if (distance >= span_a || -distance >= span_b) return false;

  Reach reach;
  const auto take = [&reach](const Region& region, bool positive) {
    const std::int64_t size = size_of(region.dtype);
    Wide run = size;  // contiguous bytes
    for (const Step& step : Steps(region.extent, region.stride, size)) {
      const Wide last = step.count - 1;
      if (step.stride <= run) {
        run += last * step.stride;
      } else {
        reach.add(step.stride, positive ? Wide{0} : -last, positive ? last : Wide{0});
      }
    }
    return run;
  };
  const Wide run_a = take(a, true);
  const Wide run_b = take(b, false);
  return reach.reaches(distance - (run_a - 1), distance + (run_b - 1));
}

}  // namespace tessera::detail
