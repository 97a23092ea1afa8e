#include "tools/command/slices.hpp"

#include <algorithm>
#include <type_traits>

namespace tessera::tools {
namespace {

/// What a slice takes of the axes that it cuts; an axis that it covers whole stays as it is,
/// whatever its extent (a bias of packed segments has more entries than the one batch).
struct Cut {
  Slice slice;
  bool batch = false;
  bool head = false;

  /// `group` heads of the tensor belong to a key head. Extents of 1 are for all and stay.
  template <class AnyTensor>
  AnyTensor operator()(AnyTensor tensor, std::int64_t group) const {
    if (tensor.data == nullptr) return tensor;
    std::int64_t offset = 0;
    if (batch && tensor.extent.batch > 1) {
      offset += slice.batch * tensor.stride.batch;
      tensor.extent.batch = slice.batches;
    }
    if (head && tensor.extent.head > 1) {
      offset += slice.head_k * group * tensor.stride.head;
      tensor.extent.head = slice.heads_k * group;
    }
    using Byte = std::conditional_t<std::is_same_v<AnyTensor, Tensor>, char, const char>;
    tensor.data = static_cast<Byte*>(tensor.data) + offset * size_of(tensor.dtype);
    return tensor;
  }

  ConstVector operator()(ConstVector vector) const {
    if (vector.data == nullptr || !batch) return vector;
    vector.data = static_cast<const char*>(vector.data) + slice.batch * size_of(vector.dtype);
    vector.size = slice.batches;
    return vector;
  }
};

}  // namespace

std::vector<Slice> slices_of(const Args& args, const Options& options, std::int64_t parts) {
  const std::int64_t batch = args.key.extent.batch;
  const std::int64_t heads = args.key.extent.head;
  if (options.dropout > 0 || batch < 1 || heads < 1) return {{0, batch, 0, heads}};
  std::vector<Slice> slices;
  if (parts <= batch) {
    const std::int64_t step = (batch + parts - 1) / std::max<std::int64_t>(parts, 1);
    for (std::int64_t b = 0; b < batch; b += step)
      slices.push_back({b, std::min(step, batch - b), 0, heads});
    return slices;
  }
  const std::int64_t step = std::max<std::int64_t>(1, heads / (parts / batch));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; h += step)
      slices.push_back({b, 1, h, std::min(step, heads - h)});
  }
  return slices;
}

Args restrict_to(const Args& args, const Slice& slice) {
  const std::int64_t group =
      args.query.extent.head / std::max<std::int64_t>(args.key.extent.head, 1);
  const Cut cut{slice, slice.batches != args.key.extent.batch,
                slice.heads_k != args.key.extent.head};
  Args result = args;
  for (ConstTensor Args::* tensor :
       {&Args::query, &Args::alibi_slopes, &Args::bias, &Args::boolean_mask, &Args::sinks}) {
    result.*tensor = cut(args.*tensor, group);
  }
  for (ConstTensor Args::* tensor : {&Args::key, &Args::value})
    result.*tensor = cut(args.*tensor, 1);
  for (Tensor Args::* tensor : {&Args::out, &Args::lse}) result.*tensor = cut(args.*tensor, group);
  for (ConstVector Args::* vector : {&Args::key_begin, &Args::key_end, &Args::query_end}) {
    result.*vector = cut(args.*vector);
  }
  return result;
}

double work_of(const Args& args) noexcept {
  const Extents& q = args.query.extent;
  return 2.0 * static_cast<double>(q.batch) * static_cast<double>(q.head) *
         static_cast<double>(q.seq) * static_cast<double>(args.key.extent.seq) *
         static_cast<double>(q.dim + args.value.extent.dim);
}

}  // namespace tessera::tools
