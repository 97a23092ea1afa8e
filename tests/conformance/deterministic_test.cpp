// Same bits: for any number of threads, and hundreds of times under load.

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tessera/plan.hpp>
#include <tessera/stream.hpp>

#include "tests/conformance/digest.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

std::vector<Case> assorted(Operation operation) {
  const bool decode = operation == Operation::decode;
  std::vector<Case> cases{{.label = "grouped",
                           .dtype = DType::fp32,
                           .head_q = 6,
                           .head_k = 2,
                           .seq_q = decode ? 2 : 200,
                           .seq_k = decode ? 2100 : 150,
                           .dim = 40,
                           .dim_v = 40,
                           .mask = Mask::causal(Alignment::BottomRight)},
                          {.label = "one_head",
                           .dtype = DType::bf16,
                           .seq_q = decode ? 1 : 700,
                           .seq_k = decode ? 4099 : 333,
                           .dim = 16,
                           .dim_v = 16},
                          {.label = "window",
                           .dtype = DType::bf16,
                           .head_q = 2,
                           .seq_q = decode ? 3 : 1500,
                           .seq_k = 1500,
                           .dim = 64,
                           .dim_v = 64,
                           .mask = Mask::window(100, 0, Alignment::BottomRight)},
                          {.label = "general",
                           .dtype = DType::fp16,
                           .batch = 2,
                           .head_q = 4,
                           .head_k = 2,
                           .seq_q = decode ? 3 : 130,
                           .seq_k = decode ? 1500 : 130,
                           .dim = 24,
                           .dim_v = 16,
                           .softcap = 5,
                           .bias = Bias::fp32,
                           .bias_broadcast = kOverBatch | kOverHead | kOverRow,
                           .sinks = true,
                           .dropout = 0.25,
                           .seed = 3},
                          {.label = "packed",
                           .dtype = DType::bf16,
                           .head_q = 4,
                           .head_k = 1,
                           .dim = 32,
                           .dim_v = 32,
                           .layout = Layout::bshd,
                           .packed = true,
                           .lengths_q = {3, 165, 0, 70},
                           .lengths_k = {9, 165, 4, 130}}};
  for (Case& c : cases) {
    c.operation = operation;
    c.keep = c.label == "one_head" ? Keep::nothing : c.label == "packed" ? Keep::lse : Keep::both;
    c.dlse = c.dbias = c.dsink = true;
  }
  return cases;
}

Operands operands_of(const Case& c) {
  Operands operands(c);
  operands.options.deterministic = true;
  return operands;
}

// Runs in processes of their own, each with another number of threads; see below.
TEST(Deterministic, BitsOfThisProcess) {
  for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
    for (const Case& c : assorted(operation)) {
      Operands operands = operands_of(c);
      on_each_kernel(operands, [&](const Kernel& kernel) {
        if (kernel.operation != operation) return;
        const std::vector<std::uint8_t> bits = operands.result_bits();
        Digest digest;
        digest.add(bits.data(), bits.size());
        std::printf("bits %s %s %s\n", kernel.name.c_str(), c.label.c_str(), digest.text().c_str());
      });
    }
  }
}

// Lines "bits …" of this program with so many threads, whatever shard this process is.
std::string bits_with_threads(int threads) {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return {};
  const std::string command =
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX OMP_PROC_BIND=false OMP_NUM_THREADS=" +
      std::to_string(threads) + " '" + path.data() +
      "' --gtest_filter=Deterministic.BitsOfThisProcess 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string bits, line;
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe.get())) != EOF;) {
    line += static_cast<char>(c);
    if (c != '\n') continue;
    if (line.starts_with("bits ")) bits += line;
    line.clear();
  }
  return bits;
}

TEST(Deterministic, AnyNumberOfThreadsGivesTheSameBits) {
  const std::string one = bits_with_threads(1);
  for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
    EXPECT_EQ(one.find("bits " + to_string(operation) + ".") != std::string::npos,
              computes(operation))
        << one;
  }
  for (const int threads : {2, 3, 7}) EXPECT_EQ(bits_with_threads(threads), one) << threads;
}

// Matrix instructions of GPUs have the rows of a warp decide together when to rescale: there a
// row's bits may tell what task it is of.
bool rows_decide_together(const Kernel& kernel) {
  return kernel.name.ends_with(".hopper") || kernel.name.ends_with(".mma") ||
         kernel.name.ends_with(".matrix");
}

// The last rows alone, as a problem of their own, begin other tasks than among all rows: a row's
// bits must not tell.
TEST(Deterministic, RowsDoNotTellWhatTaskTheyAreOf) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    Case c{.label = "tasks",
           .dtype = dtype,
           .head_q = 2,
           .head_k = 2,
           .seq_q = 1500,
           .seq_k = 1500,
           .mask = Mask::window(100, 0, Alignment::BottomRight)};
    Operands whole(c);
    std::map<std::string, std::map<std::vector<std::int64_t>, double>> expected;
    on_each_kernel(whole, [&](const Kernel& kernel) {
      if (kernel.operation != Operation::forward) return;  // decode splits keys by the shape
      auto& numbers = expected[kernel.name];
      whole.out.each(
          [&](auto b, auto h, auto s, auto d) { numbers[{h, s, d}] = whole.out.get(b, h, s, d); });
    });
    for (const std::int64_t rows : {700, 333, 20}) {
      c.seq_q = rows;
      Operands last(c);
      for (const auto& slot : {&Operands::query, &Operands::key, &Operands::value}) {
        const std::int64_t before = slot == &Operands::query ? 1500 - rows : 0;
        set_each(last.*slot, [&](auto b, auto h, auto s, auto d) {
          return (whole.*slot).get(b, h, before + s, d);
        });
      }
      on_each_kernel(last, [&](const Kernel& kernel) {
        if (kernel.operation != Operation::forward || rows_decide_together(kernel)) return;
        const auto& numbers = expected.at(kernel.name);
        last.out.each([&](auto b, auto h, auto s, auto d) {
          ASSERT_EQ(last.out.get(b, h, s, d), numbers.at({h, 1500 - rows + s, d}))
              << kernel.name << ", " << rows << " rows, row " << s;
        });
      });
    }
  }
}

// Threads that do nothing but take time.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        while (!stop_) {
        }
      });
    }
  }
  ~Load() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_{};
};

#if defined(__SANITIZE_ADDRESS__)
constexpr int kTimes = 20;  // each takes many times as long
#else
constexpr int kTimes = 500;
#endif

TEST(Deterministic, FiveHundredTimesUnderLoad) {
  const Case c{.label = "again",
               .dtype = DType::bf16,
               .batch = 2,
               .head_q = 6,
               .head_k = 2,
               .seq_q = 65,
               .seq_k = 50,
               .dim = 16,
               .dim_v = 16,
               .mask = Mask::causal(Alignment::BottomRight),
               .sinks = true,
               .operation = Operation::backward,
               .dsink = true};
  Operands operands = operands_of(c);
  const Load load(2);
  on_each_kernel(operands, [&](const Kernel& kernel) {
    const OnlyKernel only(kernel.selector);
    const std::vector<std::uint8_t> bits = operands.result_bits();
    const Args args = operands.args(Side::device);
    const Plan made = plan(describe(args, operands.options, Operation::backward));
    for (int i = 0; i < kTimes; ++i) {
      operands.poison_outputs();
      execute(made, args);
      Stream().synchronize();
      operands.download_outputs();
      ASSERT_EQ(operands.result_bits(), bits) << kernel.name << " time " << i;
    }
  });
}

}  // namespace
}  // namespace tessera::testing
