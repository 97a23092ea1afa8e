// What this version does not do is a table: each entry answers Unsupported, says what works, and
// writes nothing.

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <tessera/attention.hpp>
#include <tessera/error.hpp>
#include <tessera/info.hpp>
#include <tessera/plan.hpp>

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

struct Entry {
  std::string what;
  std::string says;  // a part of the text
  std::function<void(Problem&)> ask;
};

void set_dim(Problem& problem, std::int64_t dim) {
  for (TensorSpec* spec : {&problem.query, &problem.key}) {
    spec->extent.dim = dim;
    spec->stride = bhsd_strides(spec->extent);
  }
}

void set_dim_v(Problem& problem, std::int64_t dim) {
  for (TensorSpec* spec : {&problem.value, &*problem.out}) {
    spec->extent.dim = dim;
    spec->stride = bhsd_strides(spec->extent);
  }
}

void set_type(Problem& problem, DType dtype) {
  for (TensorSpec* spec : {&problem.query, &problem.key, &problem.value, &*problem.out}) {
    spec->dtype = dtype;
  }
}

std::vector<Entry> table() {
  std::vector<Entry> entries{
      {"paged keys and values", "paged", [](Problem& p) { p.paged = true; }},
      {"batch_invariant", "batch_invariant", [](Problem& p) { p.options.batch_invariant = true; }},
      {"rows beyond dropout's counter", "2^32",
       [](Problem& p) {
         p.options.dropout = 0.5;
         for (TensorSpec* spec : {&p.query, &*p.out}) {
           spec->extent.seq = std::int64_t{1} << 32;
           spec->stride = bhsd_strides(spec->extent);
         }
       }},
  };
  for (const std::int64_t dim : {1, 4, 7, 12, 63, 65, 100, 257, 264, 320, 504, 520, 576, 1024}) {
    entries.push_back(
        {"head dimension " + std::to_string(dim), " of 8 from 8 to ", [dim](Problem& p) {
           set_dim(p, dim);
           set_dim_v(p, dim);
         }});
    entries.push_back({"value's head dimension " + std::to_string(dim), " of 8 from 8 to ",
                       [dim](Problem& p) { set_dim_v(p, dim); }});
  }
  return entries;
}

TEST(Unsupported, TheTable) {
  for (const Entry& entry : table()) {
    for (const DType dtype : kTypes) {
      Problem problem = plainest_problem();
      set_type(problem, dtype);
      entry.ask(problem);
      SCOPED_TRACE(entry.what + " " + std::string(to_string(problem.query.dtype)));
      const Support support = supports(problem);
      EXPECT_EQ(support.status, Support::Status::Unsupported) << support.reason;
      EXPECT_FALSE(support);
      EXPECT_NE(support.reason.find(entry.says), std::string::npos) << support.reason;
      try {
        plan(problem);
        ADD_FAILURE() << "was planned";
      } catch (const tessera::Unsupported& error) {
        EXPECT_EQ(support.reason, error.what());
        ++tally().unsupported[entry.what];
      } catch (const std::exception& error) {
        ADD_FAILURE() << "not Unsupported: " << error.what();
      }
    }
  }
}

TEST(Unsupported, WritesNothing) {
  Case c{.label = "refused", .dtype = DType::fp16, .seq_q = 17, .seq_k = 33};
  const auto refuse = [&](const char* what, const std::function<void(Options&)>& ask) {
    Operands operands(c);
    ask(operands.options);
    operands.upload();
    operands.poison_outputs();
    EXPECT_THROW(forward(operands.args(Side::device), operands.options), tessera::Unsupported)
        << what;
    operands.download_outputs();
    for (const std::uint8_t byte : operands.result_bits()) ASSERT_EQ(byte, kPoison) << what;
    EXPECT_EQ(operands.damage(), "") << what;
  };
  refuse("batch_invariant", [](Options& options) { options.batch_invariant = true; });
  c.dim = 264;
  refuse("head dimension", [](Options&) {});
}

// The next head dimension that there is; behind 512, the next multiple of 8, which no build has.
std::int64_t head_dim_above(std::int64_t largest) {
  if (largest < 256 || largest >= 512) return largest + 8;
  return 512;
}

TEST(Unsupported, HeadDimensionAboveTheLargestBuilt) {
  const std::int64_t largest = largest_head_dim();
  const std::int64_t above = head_dim_above(largest);
  const auto expect_refused = [&](const Problem& problem, const std::string& what) {
    const Support support = supports(problem);
    EXPECT_EQ(support.status, Support::Status::Unsupported) << what;
    EXPECT_NE(support.reason.find(std::to_string(largest)), std::string::npos) << support.reason;
  };
  Problem both = plainest_problem();
  set_dim(both, above);
  set_dim_v(both, above);
  Problem of_value = plainest_problem();
  set_dim_v(of_value, above);
  expect_refused(both, "every kernel");
  for_each_kernel([&](const Kernel& kernel) {
    const OnlyKernel only(kernel.selector);
    expect_refused(both, kernel.name);
    expect_refused(of_value, kernel.name);
  });
}

TEST(Unsupported, KernelThatIsNotThere) {
  const OnlyKernel only("no_such_kernel");
  const Support support = supports(plainest_problem());
  EXPECT_EQ(support.status, Support::Status::Unsupported);
  EXPECT_NE(support.reason.find("no_such_kernel"), std::string::npos) << support.reason;
  for (const Kernel& kernel : kernels()) {
    EXPECT_NE(support.reason.find(kernel.name), std::string::npos) << support.reason;
  }
}

TEST(Kernels, TheOnesOfThisBackendAreThere) {
  if (!all_kernels()) GTEST_SKIP() << "--kernels leaves some out";
  constexpr std::array kTheOperations{Operation::forward, Operation::backward, Operation::decode};
  const std::string backend(build_info().backend);
  for (const Operation operation : kTheOperations) EXPECT_FALSE(kernels(operation).empty());
  if (backend != "kokkos") return;
  const auto has = [&](const std::string& what) {
    return std::all_of(kTheOperations.begin(), kTheOperations.end(), [&](Operation operation) {
      const std::vector<Kernel>& all = kernels(operation);
      return std::any_of(all.begin(), all.end(), [&](const Kernel& kernel) {
        return kernel.name == to_string(operation) + "." + what && kernel.runs &&
               kernel.dtypes == std::vector{DType::fp32, DType::fp16, DType::bf16};
      });
    });
  };
  if (build_info().toolkit != "without Kokkos") {
    EXPECT_TRUE(has("generic")) << "runs wherever Kokkos does";
  }
  if (host_memory_is_device_memory()) {
    EXPECT_TRUE(has("vector.portable")) << "runs on any host";
  }
#if defined(__x86_64__)
  if (host_memory_is_device_memory()) {
    // What the compiler may use in these kernels, by those features that all compilers can ask for.
    const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                      __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
    const bool avx512 =
        avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
        __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
        __builtin_cpu_supports("avx512vl") != 0;
    EXPECT_EQ(has("vector.avx2"), avx2);
    EXPECT_EQ(has("vector.avx512"), avx512);
    // Of forward alone, and of bf16: built for every x86-64, whatever this processor has.
    for (const std::string unit : {"vector.avx512_bf16", "vector.amx_bf16"}) {
      const std::vector<Kernel>& all = kernels();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Kernel& kernel) {
        return kernel.name.starts_with("forward." + unit) &&
               (!kernel.runs || kernel.dtypes == std::vector{DType::bf16});
      })) << unit;
    }
  }
#endif
}

}  // namespace
}  // namespace tessera::testing
