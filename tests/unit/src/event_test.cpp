// The hook sees every plan and launch, whatever it throws.

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

struct Seen {
  Event::Kind kind;
  Problem problem;
  std::string kernel, error;
  std::int64_t nanoseconds;
};

// Installs a hook that records into `seen` for as long as it lives.
class Recorder {
 public:
  Recorder() {
    set_event_hook(
        [](const Event& e, void* user) {
          static_cast<Recorder*>(user)->seen.push_back(
              {e.kind, *e.problem, std::string(e.kernel), std::string(e.error), e.nanoseconds});
        },
        this);
  }
  ~Recorder() { set_event_hook(nullptr); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  std::vector<Seen> seen{};
};

TEST(EventHook, SeesPlanAndLaunch) {
  Call call = Call::dense();
  const Plan made = plan(call.problem());
  Recorder recorder;
  call.run();
  ASSERT_EQ(recorder.seen.size(), 2u);
  const Seen& planned = recorder.seen[0];
  const Seen& launched = recorder.seen[1];
  EXPECT_EQ(planned.kind, Event::Kind::Plan);
  EXPECT_EQ(launched.kind, Event::Kind::Launch);
  for (const Seen& seen : recorder.seen) {
    EXPECT_EQ(seen.problem, call.problem());
    EXPECT_EQ(seen.kernel, made.kernel());
    EXPECT_EQ(seen.error, "");
    EXPECT_GT(seen.nanoseconds, 0);
    EXPECT_LT(seen.nanoseconds, 60'000'000'000);
  }
}

TEST(EventHook, SeesFailures) {
  Call call = Call::dense();
  const Plan made = plan(call.problem());
  Recorder recorder;
  Problem problem = call.problem();
  problem.paged = true;
  const Thrown planning = thrown_by([&] { plan(problem); });
  call.args.softcap = -1;
  const Thrown executing = thrown_by([&] { execute(made, call.args); });
  ASSERT_EQ(recorder.seen.size(), 2u);
  EXPECT_EQ(recorder.seen[0].error, planning.text);
  EXPECT_EQ(recorder.seen[0].kernel, "");
  EXPECT_EQ(recorder.seen[1].error, executing.text);
  EXPECT_EQ(recorder.seen[1].kernel, made.kernel());
}

TEST(EventHook, SeesNoQuestions) {
  const Call call = Call::dense();
  Recorder recorder;
  EXPECT_TRUE(supports(call.problem()));
  EXPECT_TRUE(recorder.seen.empty());
}

TEST(EventHook, IsGoneWhenRemoved) {
  const Call call = Call::dense();
  Recorder recorder;
  set_event_hook(nullptr);
  call.run();
  EXPECT_TRUE(recorder.seen.empty());
}

TEST(EventHook, MayThrow) {
  const Call call = Call::dense();
  set_event_hook([](const Event&, void*) { throw std::runtime_error("of the hook"); });
  EXPECT_NO_THROW(call.run());
  Call wrong = Call::dense();
  wrong.args.softcap = -1;
  EXPECT_EQ(thrown_by([&] { wrong.run(); }).kind, Thrown::Kind::InvalidArgument);
  set_event_hook(nullptr);
  EXPECT_FALSE(call.outputs_are_untouched());
}

// Function and user pointer belong together, also while other threads install others.
TEST(EventHook, IsInstalledWhole) {
  struct Mine {
    EventHook hook;
    std::atomic<int> right{0}, wrong{0};
  };
  static Mine mine[2];
  mine[0].hook = [](const Event&, void* user) {
    ++(user == &mine[0] ? mine[0].right : mine[0].wrong);
  };
  mine[1].hook = [](const Event&, void* user) {
    ++(user == &mine[1] ? mine[1].right : mine[1].wrong);
  };
  std::atomic<bool> done{false};
  std::vector<std::thread> installers;
  for (Mine& m : mine) {
    installers.emplace_back([&m, &done] {
      while (!done) set_event_hook(m.hook, &m);
    });
  }
  const Problem problem = Call::dense().problem();
  while (mine[0].right + mine[1].right == 0) plan(problem);
  for (int i = 0; i < 500; ++i) plan(problem);
  done = true;
  for (std::thread& thread : installers) thread.join();
  set_event_hook(nullptr);
  EXPECT_EQ(mine[0].wrong + mine[1].wrong, 0);
  EXPECT_GE(mine[0].right + mine[1].right, 500);
}

}  // namespace
}  // namespace tessera::testing
