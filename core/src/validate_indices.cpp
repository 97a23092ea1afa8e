#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/src/backend.hpp"
#include "core/src/operands.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera::detail {
namespace {

// The numbers of a vector, where the host can read them.
class Numbers {
 public:
  Numbers(const ConstVector& vector, const Stream& stream) : size_(vector.size) {
    indices_ = {vector.data, vector.dtype == DType::int64};
    if (backend::host_reads_device_memory()) return;
    copy_.resize(static_cast<std::size_t>(size_ * size_of(vector.dtype)));
    backend::copy(copy_.data(), vector.data, copy_.size(), stream);
    backend::synchronize(stream);
    indices_.data = copy_.data();
  }

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t i) const { return indices_[i]; }

 private:
  std::vector<std::byte> copy_;
  kernel::Indices indices_;
  std::int64_t size_;
};

void check_prefix_sums(const char* name, const Numbers& sums, std::int64_t total,
                       const char* total_name, std::int64_t longest, const char* longest_name) {
  const auto element = [name](std::int64_t i) { return concat(name, "[", i, "]"); };
  if (sums[0] != 0)
    refuse(element(0), concat(sums[0]), "must be 0: the first segment begins at row 0");
  for (std::int64_t i = 1; i < sums.size(); ++i) {
    const std::int64_t before = sums[i - 1];
    const std::int64_t here = sums[i];
    if (here < before)
      refuse(element(i), concat(here),
             concat("must be at least ", element(i - 1), " (", before, ")"));
    if (here > total)
      refuse(element(i), concat(here), concat("must be at most ", total_name, " (", total, ")"));
    if (here - before > longest) {
      refuse(element(i), concat(here),
             concat("must be at most ", before + longest, ": its segment has ", here - before,
                    " rows, and ", longest_name, " is ", longest));
    }
  }
}

void check_range(const char* name, const Numbers& range) {
  for (std::int64_t i = 0; i < range.size(); ++i) {
    if (range[i] < 0) refuse(concat(name, "[", i, "]"), concat(range[i]), "must be at least 0");
  }
}

}  // namespace

void validate_indices(const Args& args, const Problem& problem, const Stream& stream) {
  if (problem.packed) {
    const Sizes sizes = sizes_of(problem);
    check_prefix_sums("cu_seqlens_q", Numbers(args.cu_seqlens_q, stream), problem.query.extent.seq,
                      "query.extent.seq", sizes.seq_q, "options.max_seq_q");
    check_prefix_sums("cu_seqlens_k", Numbers(args.cu_seqlens_k, stream), problem.key.extent.seq,
                      "key.extent.seq", sizes.seq_k, "options.max_seq_k");
  }
  for (const RangeVector& range : kRangeVectors) {
    if (problem.*range.given) check_range(range.name, Numbers(args.*range.vector, stream));
  }
}

}  // namespace tessera::detail
