#include "bench/workload.hpp"

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
  return c.extra == Extra::Gqa4 ? kHeads / 4 : kHeads;
}

Mask mask_of(Visible visible) noexcept {
  switch (visible) {
    case Visible::Full:
      return Mask::none();
    case Visible::Causal:
      return Mask::causal(Alignment::BottomRight);
    case Visible::Window:
      return Mask::window(kWindow - 1, 0, Alignment::BottomRight);
  }
  return Mask::none();
}

double mean_visible_keys(const Case& c) noexcept {
  const auto seq = static_cast<double>(c.seq);
  switch (c.visible) {
    case Visible::Full:
      return seq;
    case Visible::Causal:
      return mean_causal_keys(c.seq, c.seq);
    case Visible::Window:
      return mean_causal_keys(c.seq, kWindow);
  }
  return seq;
}

}  // namespace

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
  return name;
}

double flops_of(const Case& c) noexcept {
  const auto rows = static_cast<double>(kHeads * c.seq);
  return forward_flops(rows, mean_visible_keys(c), c.head_dim, c.head_dim);
}

double bytes_of(const Case& c) noexcept {
  const std::int64_t rows = 2 * (kHeads + key_heads(c)) * c.seq;  // of q and out, k and v
  const std::int64_t bias =
      c.extra == Extra::Bias ? kHeads * c.seq * c.seq * size_of(DType::fp32) : 0;
  return static_cast<double>(rows * c.head_dim * size_of(c.dtype) + bias);
}

Workload::Workload(const Case& c) {
  const Extents query{.batch = 1, .head = kHeads, .seq = c.seq, .dim = c.head_dim};
  const Extents key{.batch = 1, .head = key_heads(c), .seq = c.seq, .dim = c.head_dim};
  const std::int64_t query_count = query.head * query.seq * query.dim;
  const std::int64_t key_count = key.head * key.seq * key.dim;
  args_.query = ConstTensor::bhsd(random(c.dtype, query_count, 1), c.dtype, query);
  args_.key = ConstTensor::bhsd(random(c.dtype, key_count, 2), c.dtype, key);
  args_.value = ConstTensor::bhsd(random(c.dtype, key_count, 3), c.dtype, key);
  args_.out = Tensor::bhsd(random(c.dtype, query_count, 4), c.dtype,
                           query);  // its pages exist before the clock starts
  options_.mask = mask_of(c.visible);
  switch (c.extra) {
    case Extra::None:
    case Extra::Gqa4:
      break;
    case Extra::Softcap:
      args_.softcap = 20;
      break;
    case Extra::Alibi: {
      std::vector<float> slopes(kHeads);
      for (std::size_t head = 0; head < slopes.size(); ++head) {
        slopes[head] =
            std::exp2(-8.0F * static_cast<float>(head + 1) / kHeads);  // as the paper has them
      }
      args_.alibi_slopes = ConstTensor::per_head(
          upload(slopes.data(), slopes.size() * sizeof(float)), DType::fp32, kHeads);
      break;
    }
    case Extra::Bias: {
      const Extents bias{.batch = 1, .head = kHeads, .seq = c.seq, .dim = c.seq};
      args_.bias =
          ConstTensor::bhsd(random(DType::fp32, kHeads * c.seq * c.seq, 6), DType::fp32, bias);
      break;
    }
    case Extra::Dropout:
      options_.dropout = 0.1;
      args_.seed = 7;
      break;
  }
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

Runner::Runner(const Workload& workload)
    : plan_(tessera::plan(workload.problem())),
      workspace_(plan_.workspace_size()),
      args_(workload.args()) {
  args_.workspace = {.data = workspace_.data(), .size = workspace_.size()};
}

void Runner::queue() const { execute(plan_, args_); }

void Runner::run() const {
  queue();
  Stream{}.synchronize();
}

}  // namespace tessera::bench
