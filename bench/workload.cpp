#include "bench/workload.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/flops.hpp"
#include "reference/fill.hpp"

namespace tessera::bench {
namespace {

constexpr std::string_view to_string(Visible visible) noexcept {
  switch (visible) {
    case Visible::Full:
      return "full";
    case Visible::Causal:
      return "causal";
    case Visible::Window:
      return "window";
  }
  return "unknown";
}

constexpr std::string_view to_string(Extra extra) noexcept {
  switch (extra) {
    case Extra::None:
      return "";
    case Extra::Gqa4:
      return "gqa4";
    case Extra::Softcap:
      return "softcap";
    case Extra::Alibi:
      return "alibi";
    case Extra::Bias:
      return "bias";
    case Extra::Dropout:
      return "dropout";
  }
  return "unknown";
}

std::int64_t key_heads(const Case& c) noexcept {
  if (c.key_heads > 0) return c.key_heads;
  return c.extra == Extra::Gqa4 ? c.heads / 4 : c.heads;
}

std::int64_t dim_v(const Case& c) noexcept { return c.head_dim_v > 0 ? c.head_dim_v : c.head_dim; }

std::int64_t rows_of(const Case& c) noexcept {
  return c.operation == Operation::decode ? 1 : c.seq;
}

Mask mask_of(const Case& c) noexcept {
  switch (c.visible) {
    case Visible::Full:
      return Mask::none();
    case Visible::Causal:
      return Mask::causal(Alignment::BottomRight);
    case Visible::Window:
      return Mask::window(c.window - 1, 0, Alignment::BottomRight);
  }
  return Mask::none();
}

/// Keys that the rows of a head see, all together, in a sequence of that length.
double visible_pairs(const Case& c, std::int64_t seq) noexcept {
  const auto length = static_cast<double>(seq);
  const std::int64_t window = c.visible == Visible::Window ? c.window : seq;
  if (c.operation == Operation::decode) return static_cast<double>(std::min(window, seq));
  if (c.visible == Visible::Full) return length * length;
  return length * mean_causal_keys(seq, window);
}

Strides strides_of(Layout layout, const Extents& extent) noexcept {
  return layout == Layout::Bshd ? bshd_strides(extent) : bhsd_strides(extent);
}

}  // namespace

std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::forward:
      return "forward";
    case Operation::backward:
      return "backward";
    case Operation::decode:
      return "decode";
  }
  return "unknown";
}

std::string name_of(const Case& c) {
  std::string name{to_string(c.dtype)};
  name += "/d" + std::to_string(c.head_dim);
  name += '/';
  name += to_string(c.visible);
  name += "/s" + std::to_string(c.seq);
  if (c.extra != Extra::None) {
    name += '/';
    name += to_string(c.extra);
  }
  if (!c.preset.empty()) {
    name += '/';
    name += c.preset;
    name += "/b" + std::to_string(c.batch) + "/k" + std::to_string(key_heads(c));
    name += c.layout == Layout::Bshd ? "/bshd" : "/bhsd";
  }
  if (!c.note.empty()) {
    name += '/';
    name += c.note;
  }
  return name;
}

std::string full_name_of(const Case& c) {
  std::string name{to_string(c.operation)};
  name += '/';
  return name + name_of(c);
}

std::vector<std::int64_t> document_lengths(const Case& c) {
  // A document has a share of the tokens that falls off geometrically: the longest is e times as
  // long as the mean or so, the shortest a fraction of it.
  const auto count = static_cast<std::size_t>(c.documents);
  std::vector<std::int64_t> lengths(count);
  double weights = 0;
  const auto weight = [&](std::size_t i) {
    const auto turn = static_cast<double>(i * 37 % count) + 0.5;  // short and long ones mixed
    return -std::log(turn / static_cast<double>(count)) + 0.1;
  };
  for (std::size_t i = 0; i < count; ++i) weights += weight(i);
  std::int64_t given = 0;
  double share = 0;
  for (std::size_t i = 0; i < count; ++i) {
    share += weight(i) / weights;
    const auto spare = static_cast<double>(c.seq - c.documents);  // beside one token each
    const std::int64_t end = i + 1 == count ? c.seq
                                            : static_cast<std::int64_t>(share * spare) +
                                                  static_cast<std::int64_t>(i) + 1;
    lengths[i] = end - given;
    given = end;
  }
  return lengths;
}

double flops_of(const Case& c) noexcept {
  double pairs = 0;
  if (c.documents > 0) {
    for (const std::int64_t length : document_lengths(c)) pairs += visible_pairs(c, length);
  } else {
    pairs = visible_pairs(c, c.seq);
  }
  const auto heads = static_cast<double>(c.batch * c.heads);
  const auto d = static_cast<double>(c.head_dim), d_v = static_cast<double>(dim_v(c));
  return 2 * heads * pairs * (c.operation == Operation::backward ? 3 * d + 2 * d_v : d + d_v);
}

double bytes_of(const Case& c) noexcept {
  const std::int64_t kv = key_heads(c) * c.seq * (c.head_dim + dim_v(c));
  if (c.operation == Operation::decode) return static_cast<double>(c.batch * kv * size_of(c.dtype));
  const std::int64_t q_out = c.heads * c.seq * (c.head_dim + dim_v(c));
  const std::int64_t bias =
      c.extra == Extra::Bias ? c.heads * c.seq * c.seq * size_of(DType::fp32) : 0;
  if (c.operation == Operation::forward)
    return static_cast<double>(c.batch * ((q_out + kv) * size_of(c.dtype) + bias));
  const std::int64_t lse = c.heads * c.seq * size_of(DType::fp32);
  // q, k, v, out, lse and dout are read; dq, dk and dv written.
  return static_cast<double>(c.batch * (2 * (q_out + kv) * size_of(c.dtype) + lse));
}

Workload::Workload(const Case& c) : case_(c) {
  const Extents query{.batch = c.batch, .head = c.heads, .seq = rows_of(c), .dim = c.head_dim};
  const Extents key{.batch = c.batch, .head = key_heads(c), .seq = c.seq, .dim = c.head_dim};
  Extents value = key, out = query;
  value.dim = out.dim = dim_v(c);
  args_.query = random_tensor(query, 1);
  args_.key = random_tensor(key, 2);
  args_.value = random_tensor(value, 3);
  args_.out = random_tensor(out, 4);  // its pages exist before the clock starts
  options_.mask = mask_of(c);
  add_extra();
  if (c.documents > 0) pack();
  if (c.operation == Operation::backward) add_gradients();
}

Tensor Workload::random_tensor(const Extents& extent, std::uint64_t seed) {
  const std::int64_t count = extent.batch * extent.head * extent.seq * extent.dim;
  return {.data = random(case_.dtype, count, seed),
          .dtype = case_.dtype,
          .extent = extent,
          .stride = strides_of(case_.layout, extent)};
}

void Workload::add_extra() {
  const Case& c = case_;
  switch (c.extra) {
    case Extra::None:
    case Extra::Gqa4:
      break;
    case Extra::Softcap:
      args_.softcap = 20;
      break;
    case Extra::Alibi: {
      std::vector<float> slopes(static_cast<std::size_t>(c.heads));
      for (std::size_t head = 0; head < slopes.size(); ++head) {
        slopes[head] = std::exp2(-8.0F * static_cast<float>(head + 1) /
                                 static_cast<float>(c.heads));  // as the paper has them
      }
      args_.alibi_slopes = ConstTensor::per_head(
          upload(slopes.data(), slopes.size() * sizeof(float)), DType::fp32, c.heads);
      break;
    }
    case Extra::Bias: {
      const Extents bias{.batch = 1, .head = c.heads, .seq = c.seq, .dim = c.seq};
      args_.bias =
          ConstTensor::bhsd(random(DType::fp32, c.heads * c.seq * c.seq, 6), DType::fp32, bias);
      break;
    }
    case Extra::Dropout:
      options_.dropout = 0.1;
      args_.seed = 7;
      break;
  }
}

void Workload::pack() {
  std::vector<std::int32_t> ends{0};
  for (const std::int64_t length : document_lengths(case_)) {
    ends.push_back(ends.back() + static_cast<std::int32_t>(length));
    options_.max_seq_q = std::max(options_.max_seq_q, length);
  }
  options_.max_seq_k = options_.max_seq_q;
  args_.cu_seqlens_q = {.data = upload(ends.data(), ends.size() * sizeof(std::int32_t)),
                        .dtype = DType::int32,
                        .size = static_cast<std::int64_t>(ends.size())};
  args_.cu_seqlens_k = args_.cu_seqlens_q;
}

// What forward leaves to backward, and where that writes.
void Workload::add_gradients() {
  const Extents& out = args_.out.extent;
  auto* const lse = static_cast<float*>(random(DType::fp32, out.batch * out.head * out.seq, 5));
  args_.lse = Tensor::lse(lse, out.batch, out.head, out.seq);
  forward(args_, options_);
  Stream{}.synchronize();
  args_.dout = random_tensor(out, 7);
  args_.dq = random_tensor(args_.query.extent, 8);
  args_.dk = random_tensor(args_.key.extent, 9);
  args_.dv = random_tensor(args_.value.extent, 10);
}

void* Workload::random(DType dtype, std::int64_t count, std::uint64_t seed) {
  std::vector<unsigned char> host(static_cast<std::size_t>(count * size_of(dtype)));
  const Extents extent{.batch = 1, .head = 1, .seq = 1, .dim = count};
  reference::fill_gaussian(Tensor::bhsd(host.data(), dtype, extent), seed);
  return upload(host.data(), host.size());
}

void* Workload::upload(const void* host, std::size_t bytes) {
  void* data = buffers_.emplace_back(bytes).data();
  copy(data, host, bytes);
  Stream{}.synchronize();
  return data;
}

Runner::Runner(const Workload& workload, const Adapter* adapter)
    : adapter_(adapter),
      operation_(workload.what().operation),
      options_(workload.options()),
      args_(workload.args()) {
  if (adapter_ != nullptr) {
    const Support support = adapter_->supports(operation_, args_, options_);
    if (!support) throw Unsupported(support.reason);
    return;
  }
  plan_ = tessera::plan(workload.problem());
  workspace_ = Buffer(plan_->workspace_size());
  args_.workspace = {.data = workspace_.data(), .size = workspace_.size()};
}

std::string_view Runner::kernel() const noexcept {
  return plan_ ? plan_->kernel() : std::string_view(adapter_->name());
}

void Runner::queue() const {
  if (plan_) {
    execute(*plan_, args_);
  } else {
    adapter_->call(operation_, args_, options_);
  }
}

void Runner::run() const {
  queue();
  Stream{}.synchronize();
}

}  // namespace tessera::bench
