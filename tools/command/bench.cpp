#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <tessera/tessera.hpp>

#include "bench/flops.hpp"
#include "bench/naive.hpp"
#include "reference/fill.hpp"
#include "reference/number.hpp"
#include "tools/command/failure.hpp"
#include "tools/command/memory.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/subcommands.hpp"
#include "tools/io/file.hpp"

namespace tessera::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Case {
  std::int64_t batch = 1;
  std::int64_t seq = 0;
};

std::vector<Case> cases_of(const BenchFlags& flags) {
  if (flags.seq.empty() && !flags.batch) return {{1, 512}, {1, 1024}, {1, 2048}, {4, 4096}};
  std::vector<std::int64_t> lengths = flags.seq;
  if (lengths.empty()) lengths = {512, 1024, 2048, 4096};
  std::vector<Case> cases;
  cases.reserve(lengths.size());
  for (const std::int64_t seq : lengths) cases.push_back({flags.batch.value_or(1), seq});
  return cases;
}

double flops_of(const Case& c, const BenchFlags& flags) noexcept {
  const auto seq = static_cast<double>(c.seq);
  const double keys = flags.mask == MaskKind::Causal ? bench::mean_causal_keys(c.seq, c.seq) : seq;
  const double rows = static_cast<double>(c.batch * flags.heads) * seq;
  return bench::forward_flops(rows, keys, flags.head_dim, flags.head_dim);
}

/// Milliseconds of repeated calls.
struct Times {
  double mean = 0, min = 0, max = 0, p95 = 0;
  std::size_t calls = 0;

  explicit Times(std::vector<double> samples) : calls(samples.size()) {
    std::ranges::sort(samples);
    mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(calls);
    min = samples.front();
    max = samples.back();
    p95 = samples[static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(calls))) -
                  1];  // nearest rank
  }
};

/// Milliseconds that a call takes.
template <class Call>
double timed(const Call& call) {
  const auto start = Clock::now();
  call();
  return 1e3 * seconds_since(start);
}

/// Calls until `seconds` have been spent, at least `least` times; calls that were timed before
/// count.
template <class Call>
Times measure(double seconds, std::size_t least, const Call& call,
              std::vector<double> samples = {}) {
  double spent = std::accumulate(samples.begin(), samples.end(), 0.0);
  while (samples.size() < least || spent < 1e3 * seconds) {
    samples.push_back(timed(call));
    spent += samples.back();
  }
  return Times(std::move(samples));
}

/// A case's tensors on the host and on the device. Layout bshd, standard normal.
class Data {
 public:
  Data(const Case& c, const BenchFlags& flags) : dtype_(flags.dtype) {
    const Extents q{.batch = c.batch, .head = flags.heads, .seq = c.seq, .dim = flags.head_dim};
    Extents k = q;
    k.head = flags.heads_k.value_or(flags.heads);
    options.mask =
        flags.mask == MaskKind::Causal ? Mask::causal(Alignment::BottomRight) : Mask::none();
    host.query = input(q, 1, device.query);
    host.key = input(k, 2, device.key);
    host.value = input(k, 3, device.value);
    const auto bytes = static_cast<std::size_t>(q.batch * q.head * q.seq * q.dim * size_of(dtype_));
    out_.resize(bytes);
    host.out = Tensor::bshd(out_.data(), dtype_, q);
    device.out = Tensor::bshd(buffers_.emplace_back(bytes).data(), dtype_, q);
    copy(device.out.data, out_.data(),
         bytes);  // touched now, so that it does not count as extra memory
    lse_.resize(static_cast<std::size_t>(q.batch * q.head * q.seq));
    host.lse = Tensor::lse(lse_.data(), q.batch, q.head, q.seq);
    const std::size_t lse_bytes = lse_.size() * sizeof(float);
    device.lse = Tensor::lse(static_cast<float*>(buffers_.emplace_back(lse_bytes).data()), q.batch,
                             q.head, q.seq);
    copy(device.lse.data, lse_.data(), lse_bytes);
    Stream{}.synchronize();
  }

  /// The largest difference between the naive out, which lies on the host, and the device's.
  double difference() const {
    std::vector<std::byte> ours(out_.size());
    copy(ours.data(), device.out.data, ours.size());
    Stream{}.synchronize();
    const auto count = static_cast<std::int64_t>(ours.size()) / size_of(dtype_);
    double largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double d = std::abs(reference::load(dtype_, ours.data(), i) -
                                reference::load(dtype_, out_.data(), i));
      largest = d <= largest ? largest : d;  // takes NaN
    }
    return largest;
  }

  Args host, device;
  Options options;

 private:
  ConstTensor input(const Extents& extent, std::uint64_t seed, ConstTensor& on_device) {
    const auto bytes = static_cast<std::size_t>(extent.batch * extent.head * extent.seq *
                                                extent.dim * size_of(dtype_));
    std::vector<std::byte>& array = inputs_.emplace_back(bytes);
    const Tensor tensor = Tensor::bshd(array.data(), dtype_, extent);
    reference::fill_gaussian(tensor, seed);
    on_device = ConstTensor::bshd(buffers_.emplace_back(bytes).data(), dtype_, extent);
    copy(const_cast<void*>(on_device.data), array.data(), bytes);
    return tensor;
  }

  DType dtype_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::byte> out_;
  std::vector<float> lse_;
  std::vector<Buffer> buffers_;
};

/// Shapes that cannot be are refused before anything is allocated, in terms of the flags.
void validate(const Case& c, const BenchFlags& flags, int threads) {
  if (flags.heads_k && flags.heads % *flags.heads_k != 0) {
    throw BadInput(
        fmt::format("--heads-k: is {}; must divide --heads ({})", *flags.heads_k, flags.heads));
  }
  const Extents q{.batch = c.batch, .head = flags.heads, .seq = c.seq, .dim = flags.head_dim};
  Extents k = q;
  k.head = flags.heads_k.value_or(flags.heads);
  Args args;
  args.query = ConstTensor::bshd(nullptr, flags.dtype, q);
  args.key = args.value = ConstTensor::bshd(nullptr, flags.dtype, k);
  args.out = Tensor::bshd(nullptr, flags.dtype, q);
  const auto rows = static_cast<double>(q.batch) * static_cast<double>(q.seq);
  const double row_bytes = static_cast<double>(2 * (q.head + k.head)) *
                           static_cast<double>(q.dim * size_of(flags.dtype));
  // A matrix of scores a thread, as far as there are heads.
  const double matrices = std::min(static_cast<double>(threads),
                                   static_cast<double>(q.batch) * static_cast<double>(q.head));
  const double scores =
      flags.naive ? matrices * static_cast<double>(q.seq) * static_cast<double>(q.seq) * 4 : 0;
  // Inputs and outputs lie on the host and on the device.
  require_memory(fmt::format("--seq {} --batch {} --heads {} --head-dim {}{}", q.seq, q.batch,
                             q.head, q.dim, flags.naive ? " without --no-naive" : ""),
                 2 * rows * row_bytes + scores);
  try {
    tessera::plan(describe(args));
  } catch (const Unsupported& error) {
    const std::string_view text = error.what();
    if (!text.starts_with("query.extent.dim")) throw;
    throw Unsupported(fmt::format("--head-dim: {}", text));
  }
}

/// Memory that grows while `call` runs, beyond what is there already.
template <class Call>
std::optional<std::int64_t> growth_during(const Call& call) {
  release_free_memory();
  const std::optional<std::int64_t> before = resident_bytes();
  const bool reset = reset_peak();
  call();
  const std::optional<std::int64_t> peak = peak_resident_bytes();
  if (!reset || !before || !peak) return std::nullopt;
  return std::max<std::int64_t>(0, *peak - *before);
}

Json optional_json(const std::optional<std::int64_t>& x) { return x ? Json(*x) : Json(nullptr); }

/// Measures one case. `arena` is the memory that earlier cases made the library keep: it is this
/// case's too.
Json measure_case(const Case& c, const BenchFlags& flags, int threads, std::int64_t& arena) {
  Data data(c, flags);
  const Plan plan = tessera::plan(describe(data.device, data.options));
  const auto ours = [&] {
    execute(plan, data.device);
    Stream{}.synchronize();
  };
  std::optional<std::int64_t> extra = growth_during(ours);
  if (extra) extra = arena += *extra;
  const Times times = measure(flags.seconds, 5, ours);

  const double flops = flops_of(c, flags);
  Json json = {{"batch", c.batch},
               {"heads", flags.heads},
               {"heads_k", flags.heads_k.value_or(flags.heads)},
               {"seq", c.seq},
               {"head_dim", flags.head_dim},
               {"dtype", to_string(flags.dtype)},
               {"mask", to_string(flags.mask)},
               {"kernel", plan.kernel()},
               {"threads", threads},
               {"calls", times.calls},
               {"mean_ms", times.mean},
               {"min_ms", times.min},
               {"max_ms", times.max},
               {"p95_ms", times.p95},
               {"flops", flops},
               {"gflops_per_second", flops / times.mean * 1e-6},
               {"workspace_bytes", plan.workspace_size()},
               {"extra_memory_bytes", optional_json(extra)}};
  if (!flags.naive) return json;

  const auto naive = [&] { bench::naive_forward(data.host, data.options, threads); };
  // The first call counts: it allocates as every call does, and at 4096 keys a second one would
  // take seconds more.
  std::vector<double> first;
  const std::optional<std::int64_t> naive_extra =
      growth_during([&] { first.push_back(timed(naive)); });
  const Times naive_times = measure(std::min(flags.seconds, 0.5), 1, naive, std::move(first));
  json["naive_ms"] = naive_times.mean;
  json["naive_extra_memory_bytes"] = optional_json(naive_extra);
  json["speed_up"] = naive_times.mean / times.mean;
  json["max_abs_difference"] = data.difference();
  return json;
}

std::string mebibytes(const Json& bytes) {
  return bytes.is_number() ? fmt::format("{:.1f}", bytes.get<double>() / (1 << 20)) : "?";
}

void add_table(const BenchFlags& flags, Report& report) {
  const char* head = "{:>5} {:>5} | {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}";
  report.text += fmt::format(fmt::runtime(head), "batch", "seq", "mean", "min", "max", "p95",
                             "GFLOP/s", "extra MiB");
  if (flags.naive)
    report.text += fmt::format(" | {:>9} {:>9} {:>8}", "naive", "extra MiB", "speed-up");
  report.text += "\n";
  for (const Json& r : report.json["results"]) {
    const auto ms = [&](const char* name) { return fmt::format("{:.3f}", r[name].get<double>()); };
    report.text +=
        fmt::format(fmt::runtime(head), r["batch"].get<std::int64_t>(),
                    r["seq"].get<std::int64_t>(), ms("mean_ms"), ms("min_ms"), ms("max_ms"),
                    ms("p95_ms"), fmt::format("{:.1f}", r["gflops_per_second"].get<double>()),
                    mebibytes(r["extra_memory_bytes"]));
    if (flags.naive) {
      report.text += fmt::format(" | {:>9} {:>9} {:>8}", ms("naive_ms"),
                                 mebibytes(r["naive_extra_memory_bytes"]),
                                 fmt::format("{:.1f}x", r["speed_up"].get<double>()));
    }
    report.text += "\n";
  }
}

/// What can be known to fail is refused before the work; a file of another kind is not replaced.
void check_destination(const std::filesystem::path& output) {
  if (output.extension() != ".json")
    throw BadInput(fmt::format("--output: is '{}'; must end in .json", output.string()));
  io::check_writable(output);
}

}  // namespace

Report bench(const BenchFlags& flags, const std::optional<std::string>& output) {
  if (output) check_destination(*output);
  const std::vector<Case> cases = cases_of(flags);
  const DeviceInfo device = device_info();
  for (const Case& c : cases) validate(c, flags, device.threads);
  Report report;
  report.json = {{"command", "bench"},        {"backend", build_info().backend},
                 {"device", device.name},     {"isa", device.isa},
                 {"threads", device.threads}, {"commit", build_info().commit},
                 {"results", Json::array()}};
  double total = 0;
  for (const Case& c : cases) total += flops_of(c, flags);
  double done = 0;
  std::int64_t arena = 0;
  {
    Progress progress("bench");
    for (const Case& c : cases) {
      report.json["results"].push_back(measure_case(c, flags, device.threads, arena));
      done += flops_of(c, flags);
      progress.set(done / total);
    }
  }
  report.text +=
      fmt::format("{}, {}, {}; {}\n", device.name, device.isa, counted(device.threads, "thread"),
                  report.json["results"].front()["kernel"].get<std::string>());
  report.text += fmt::format("{} ({} of keys), head_dim {}, {}, mask {}; times in ms a call\n",
                             counted(flags.heads, "head"), flags.heads_k.value_or(flags.heads),
                             flags.head_dim, to_string(flags.dtype), to_string(flags.mask));
  add_table(flags, report);
  report.text += "extra MiB: the most memory beyond inputs and outputs, measured";
  report.text += flags.naive ? "; naive: scores as a matrix in memory, the same threads\n" : "\n";
  if (output) {
    const std::string text = to_text(report.json);
    io::AtomicFile file(*output);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  return report;
}

}  // namespace tessera::tools
