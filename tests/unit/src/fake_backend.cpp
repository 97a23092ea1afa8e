#include "tests/unit/src/fake_backend.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include <tessera/error.hpp>

namespace tessera::testing {

FakeBackend& fake_backend() {
  static FakeBackend fake;
  return fake;
}

namespace {
bool recording = true;
}
void set_recording(bool on) { recording = on; }

}  // namespace tessera::testing

namespace tessera::backend {
namespace {

using kernel::ForwardArguments;
using kernel::Index;
using testing::fake_backend;
using testing::FakeBackend;
using testing::recording;

constexpr auto kAlignment = std::align_val_t{128};

double load(const void* data, DType dtype, Index i) {
  if (dtype == DType::fp32) return static_cast<const float*>(data)[i];
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[i];
  return std::bit_cast<float>(bits << 16);
}

void store(void* data, DType dtype, Index i, double value) {
  const float narrow = static_cast<float>(value);
  if (dtype == DType::fp32) {
    static_cast<float*>(data)[i] = narrow;
  } else {
    static_cast<std::uint16_t*>(data)[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(narrow) >> 16);
  }
}

// One batch entry or segment: where its rows and keys begin in memory, and how many of them there
// are.
struct Part {
  Index batch = 0;     // along batch
  Index modifier = 0;  // along the batch axis of bias, mask and slopes
  Index first_row = 0, first_key = 0;
  Index rows = 0;       // in memory
  Index query_end = 0;  // rows that compute
  Index key_begin = 0, key_end = 0;
};

Part part_of(const ForwardArguments& a, Index b) {
  if (a.packed()) {
    const Index q = a.cu_seqlens_q[b], k = a.cu_seqlens_k[b];
    const Index rows = a.cu_seqlens_q[b + 1] - q;
    return {.modifier = b,
            .first_row = q,
            .first_key = k,
            .rows = rows,
            .query_end = rows,
            .key_end = a.cu_seqlens_k[b + 1] - k};
  }
  const auto at = [b](const std::int32_t* values, Index otherwise) {
    return values != nullptr ? values[b] : otherwise;
  };
  return {.batch = b,
          .modifier = b,
          .rows = a.seq_q,
          .query_end = std::min<Index>(at(a.query_end, a.seq_q), a.seq_q),
          .key_begin = at(a.key_begin, 0),
          .key_end = std::min<Index>(at(a.key_end, a.seq_k), a.seq_k)};
}

void compute_row(const Problem& p, const ForwardArguments& a, const Part& part, Index head,
                 Index row) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  const DType dtype = p.query.dtype;
  const Index key_head = head / (a.head_q / a.head_k);
  const Index diagonal = a.bottom_right ? part.key_end - part.query_end : 0;
  const Index q =
      part.batch * a.query.batch + head * a.query.head + (part.first_row + row) * a.query.seq;

  std::vector<double> scores;
  for (Index j = part.key_begin; j < part.key_end; ++j) {
    const bool visible =
        row < part.query_end && j >= row + diagonal - a.left && j <= row + diagonal + a.right;
    const auto modifier = [&](const kernel::ScoreOperand& o) {
      return part.modifier * o.batch + head * o.head + row * o.row + j * o.column;
    };
    if (!visible ||
        (a.boolean_mask.data != nullptr &&
         static_cast<const std::uint8_t*>(a.boolean_mask.data)[modifier(a.boolean_mask)] == 0)) {
      scores.push_back(kHidden);
      continue;
    }
    const Index k =
        part.batch * a.key.batch + key_head * a.key.head + (part.first_key + j) * a.key.seq;
    double score = 0;
    for (Index d = 0; d < a.dim; ++d)
      score += load(a.query.data, dtype, q + d) * load(a.key.data, dtype, k + d);
    score *= double{a.scale};
    if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
    if (a.bias.data != nullptr)
      score += load(a.bias.data, a.bias_fp32 ? DType::fp32 : dtype, modifier(a.bias));
    if (a.alibi_slopes != nullptr) {
      score -= double{a.alibi_slopes[part.modifier * a.alibi_batch + head * a.alibi_head]} *
               std::abs(static_cast<double>(row + diagonal - j));
    }
    scores.push_back(score);
  }
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  if (a.sinks != nullptr) sum += std::exp(double{a.sinks[head * a.sinks_head]});

  const Index out =
      part.batch * a.out.batch + head * a.out.head + (part.first_row + row) * a.out.seq;
  for (Index d = 0; d < a.dim_v; ++d) {
    double total = 0;
    for (Index j = part.key_begin; j < part.key_end; ++j) {
      const double weight = std::exp(scores[static_cast<std::size_t>(j - part.key_begin)]);
      const Index v = part.batch * a.value.batch + key_head * a.value.head +
                      (part.first_key + j) * a.value.seq + d;
      if (weight > 0) total += weight / sum * load(a.value.data, dtype, v);
    }
    store(a.out.data, dtype, out + d, row < part.query_end ? total : 0);
  }
  if (a.lse.data != nullptr) {
    const Index at =
        part.batch * a.lse.batch + head * a.lse.head + (part.first_row + row) * a.lse.seq;
    a.lse.data[at] = static_cast<float>(row < part.query_end ? std::log(sum) : kHidden);
  }
}

}  // namespace

std::string_view name() noexcept { return "fake"; }
std::string_view toolkit() noexcept { return "plain loops"; }
std::string_view head_dims() noexcept { return "512"; }
int device_count() { return fake_backend().devices; }
DeviceInfo device_info(int device) {
  return {.name = "fake " + std::to_string(device), .isa = "any", .space = "host"};
}

void* allocate(std::size_t bytes, int) {
  if (bytes > fake_backend().memory) throw DeviceError("the fake device has not that much memory");
  return ::operator new(bytes, kAlignment);
}
void release(void* data, int) noexcept { ::operator delete(data, kAlignment); }

void copy(void* destination, const void* source, std::size_t bytes, const Stream&) {
  if (recording) ++fake_backend().copied;
  if (bytes > 0) std::memcpy(destination, source, bytes);
}

void synchronize(const Stream&) {
  if (recording) ++fake_backend().synchronized;
  if (!fake_backend().fails_to_synchronize.empty())
    throw DeviceError(fake_backend().fails_to_synchronize);
}

bool capturing(const Stream&) { return fake_backend().capturing; }

bool host_reads_device_memory() noexcept { return fake_backend().host_reads_device_memory; }

std::vector<Candidate> candidates(const Problem& problem) {
  FakeBackend& fake = fake_backend();
  if (recording) ++fake.planned;
  std::vector<Candidate> all(2);
  const std::string_view names[][2] = {{"forward.fake.small", "forward.generic"},
                                       {"backward.fake.small", "backward.generic"},
                                       {"decode.fake.small", "decode.generic"}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    Candidate& c = all[i];
    c.kernel = names[static_cast<std::size_t>(problem.operation)][i];
    c.tile_q = 1;
    c.tile_k = problem.key.extent.seq;
    c.head_dim = c.head_dim_v = 512;
    c.workspace = fake.workspace;
    c.rejected = fake.rejects_everything;
    if (problem.query.dtype == DType::fp16) c.rejected = "fp16 is not computed: fp32 and bf16 work";
    c.id = static_cast<int>(i);
  }
  if (all[0].rejected.empty() && problem.query.extent.dim > 256) {
    all[0].rejected =
        "query.extent.dim is " + std::to_string(problem.query.extent.dim) + ": at most 256 works";
  }
  all[1].why = "computes what the small one does not";
  return all;
}

void launch(const Candidate& candidate, const Problem& problem, const ForwardArguments& arguments,
            void* workspace, const Stream& stream) {
  FakeBackend& fake = fake_backend();
  if (recording) {
    ++fake.launched;
    fake.launched_kernel = candidate.kernel;
    fake.arguments = arguments;
    fake.workspace_given = workspace;
    fake.stream = stream;
  }
  for (Index b = 0; b < arguments.batch; ++b) {
    const Part part = part_of(arguments, b);
    for (Index h = 0; h < arguments.head_q; ++h) {
      for (Index row = 0; row < part.rows; ++row) compute_row(problem, arguments, part, h, row);
    }
  }
}

void launch(const Candidate& candidate, const Problem&, const kernel::BackwardArguments& arguments,
            void* workspace, const Stream& stream) {
  FakeBackend& fake = fake_backend();
  if (!recording) return;
  ++fake.launched;
  fake.launched_kernel = candidate.kernel;
  fake.backward = arguments;
  fake.workspace_given = workspace;
  fake.stream = stream;
}

}  // namespace tessera::backend
