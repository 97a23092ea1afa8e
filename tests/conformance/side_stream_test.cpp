// A slice of the covering cases on a stream that is not the default one: judged alike, with the
// same bits.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <tessera/info.hpp>

#include "tests/conformance/covering.hpp"
#include "tests/conformance/side_stream.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::size_t kEvery = 7;  // of each operation, others

TEST(SideStream, ComputesWhatTheDefaultStreamDoes) {
  if (build_info().toolkit == "without Kokkos") GTEST_SKIP() << "there is but the default stream";
  const std::vector<Row> rows = covering_rows();
  std::unique_ptr<SideStream> side;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kEvery > 2) continue;
    constexpr std::array kOperations{Operation::forward, Operation::backward, Operation::decode};
    Case c = covering_case(rows[i], i, kOperations[i % kEvery]);
    c.keep = Keep::both;
    if (std::max(c.dim, c.dim_v) > largest_head_dim()) continue;
    SCOPED_TRACE(name(c));
    Operands operands(c);
    const Answer right = answer(operands);
    on_each_kernel(operands, [&](const Kernel& kernel) {
      const std::vector<std::uint8_t> expected = operands.result_bits();
      if (!side) side = std::make_unique<SideStream>();
      ASSERT_NE(side->stream(), Stream());
      for (const Scratch scratch : {Scratch::none, Scratch::given}) {
        const Execution done = execute_on(kernel, operands, scratch, side->stream());
        ASSERT_EQ(done.status, Execution::Status::done) << done.text;
        EXPECT_EQ(operands.result_bits(), expected) << kernel.name;
      }
      ++tally().runs[kernel.name];
      if (c.operation == Operation::backward) return;  // of out and lse that forward just gave
      const auto verdict = judge(operands, right);
      EXPECT_TRUE(verdict.pass) << kernel.name << ": " << verdict.text;
    });
  }
  EXPECT_NE(side, nullptr) << "no case ran";
}

}  // namespace
}  // namespace tessera::testing
