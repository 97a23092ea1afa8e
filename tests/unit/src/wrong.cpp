#include "tests/unit/src/wrong.hpp"

#include <gtest/gtest.h>

namespace tessera::testing {

void expect_refused(Call (*make)(), const Wrong& wrong, Within within) {
  const Call sound = make();
  const Plan plan = tessera::plan(sound.problem());

  Call call = make();
  wrong.spoil(call);
  const Thrown thrown = thrown_by([&] { call.run(); });
  EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument) << thrown.text;
  EXPECT_TRUE(matches(thrown.text, wrong.text))
      << "text:     " << thrown.text << "\nexpected: " << wrong.text;
  EXPECT_TRUE(thrown.text.starts_with(thrown.argument + " "))
      << thrown.argument << " in " << thrown.text;
  EXPECT_FALSE(thrown.argument.empty());

  const Support support = supports(call.problem());  // throws for nothing
  if (within == Within::Problem) {
    EXPECT_EQ(support.status, Support::Status::InvalidArgument) << support.reason;
    EXPECT_TRUE(matches(support.reason, wrong.text)) << support.reason;
    EXPECT_EQ(thrown_by([&] { tessera::plan(call.problem()); }).text, support.reason);
  }

  if (call.options == sound.options) {  // else the plan of the sound call fits
    const Thrown executing = thrown_by([&] { execute(plan, call.args); });
    EXPECT_EQ(executing.kind, Thrown::Kind::InvalidArgument) << executing.text;
  }
  EXPECT_TRUE(call.outputs_are_untouched());
}

}  // namespace tessera::testing
