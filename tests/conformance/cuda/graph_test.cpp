// Streams of CUDA: graphs that are replayed while what their buffers hold changes, streams at once,
// and hundreds of calls one behind another.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tessera/buffer.hpp>
#include <tessera/error.hpp>
#include <tessera/plan.hpp>

#include "tests/conformance/side_stream.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

using Bits = std::vector<std::uint8_t>;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

cudaStream_t native(const SideStream& side) {
  return static_cast<cudaStream_t>(side.stream().native());
}

// All kernels compute the first; the second has its keys split.
std::vector<Case> shapes() {
  std::vector<Case> all{{.label = "plain",
                         .dtype = DType::bf16,
                         .batch = 2,
                         .head_q = 4,
                         .head_k = 2,
                         .seq_q = 130,
                         .seq_k = 150,
                         .mask = Mask::causal(Alignment::BottomRight),
                         .layout = Layout::bshd,
                         .key_end = {150, 97}},
                        {.label = "long",
                         .dtype = DType::fp16,
                         .batch = 3,
                         .head_q = 8,
                         .head_k = 2,
                         .seq_q = 1,
                         .seq_k = 2100,
                         .dim = 128,
                         .dim_v = 128,
                         .key_end = {2100, 5, 1033}},
                        {.label = "fp32",
                         .dtype = DType::fp32,
                         .head_q = 3,
                         .head_k = 1,
                         .seq_q = 65,
                         .seq_k = 333,
                         .dim = 40,
                         .dim_v = 24},
                        {.label = "general",
                         .dtype = DType::fp16,
                         .batch = 2,
                         .head_q = 4,
                         .head_k = 2,
                         .seq_q = 70,
                         .seq_k = 200,
                         .mask = Mask::window(100, 0, Alignment::BottomRight),
                         .softcap = 5,
                         .bias = Bias::fp32,
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
  std::erase_if(all, [](const Case& c) { return std::max(c.dim, c.dim_v) > largest_head_dim(); });
  return all;
}

// Other numbers for the same problem: data, and which entry has which length.
Case refilled(Case c, std::uint64_t fill) {
  const auto rotate = [&](auto& lengths) {
    if (!lengths.empty())
      std::rotate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(fill % 3),
                  lengths.end());
  };
  c.fill = fill;
  rotate(c.key_end);
  rotate(c.lengths_q);
  rotate(c.lengths_k);
  return c;
}

// Inputs of `from`, in the memory of `to`.
void refill(Operands& to, const Operands& from) {
  const auto take = [](const auto& a, const auto& b) {
    if (a.block != nullptr) std::memcpy(a.block->host(), b.block->host(), a.block->size());
  };
  for (const auto slot :
       {&Operands::query, &Operands::key, &Operands::value, &Operands::bias, &Operands::sinks}) {
    take(to.*slot, from.*slot);
  }
  for (const auto numbers : {&Operands::key_end, &Operands::cu_seqlens_q, &Operands::cu_seqlens_k})
    take(to.*numbers, from.*numbers);
  to.upload();
}

// Those of ours that compute this here. An adapter makes no promise about streams.
std::vector<Kernel> kernels_of(const Operands& operands) {
  std::vector<Kernel> all = kernels_for(Operation::forward);
  std::erase_if(all, [&](const Kernel& kernel) {
    return kernel.adapter != nullptr || !kernel.computes(operands.query.dtype) ||
           leaves_out(kernel,
                      describe(operands.args(Side::device), operands.options, kernel.operation));
  });
  return all;
}

Plan plan_of(const Kernel& kernel, const Operands& operands) {
  const OnlyKernel only(kernel.selector);
  return plan(describe(operands.args(Side::device), operands.options, kernel.operation));
}

// A call of one kernel, with a workspace of its own and the operands' outputs.
class Call {
 public:
  Call(const Kernel& kernel, Operands& operands)
      : kernel_(kernel),
        operands_(operands),
        plan_(plan_of(kernel, operands)),
        memory_(std::max<std::size_t>(plan_.workspace_size(), 1)) {
    EXPECT_EQ(plan_.kernel(), kernel.name);
  }

  const Kernel& kernel() const { return kernel_; }
  const Plan& plan() const { return plan_; }

  Args args(Scratch scratch = Scratch::given) const {
    Args args = operands_.args(Side::device);
    if (scratch == Scratch::given) args.workspace = {memory_.data(), memory_.size()};
    return args;
  }

  void queue(const SideStream& side, Scratch scratch = Scratch::given) const {
    execute(plan_, args(scratch), side.stream());
  }

  void poison() { operands_.poison_outputs(); }

  // What the outputs hold now. Counts it as an execution that was looked at.
  Bits bits() {
    operands_.download_outputs();
    EXPECT_EQ(operands_.damage(), "") << kernel_.name;
    ++tally().runs[kernel_.name];
    return operands_.result_bits();
  }

  // What the kernel makes of the same operands on the default stream.
  Bits expected() {
    const Execution done = execute_on(kernel_, operands_);
    if (done.status != Execution::Status::done) throw std::runtime_error(done.text);
    return operands_.result_bits();
  }

 private:
  Kernel kernel_;
  Operands& operands_;
  Plan plan_;
  mutable Buffer memory_;
};

// What `body` queues on a stream.
class Graph {
 public:
  template <class Body>
  Graph(const SideStream& side, Body body) : stream_(native(side)) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    try {
      body();
    } catch (...) {  // nothing can be allocated before it ends
      cudaStreamEndCapture(stream_, &graph_);
      cudaGraphDestroy(graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph_));
    check(cudaGraphInstantiate(&instance_, graph_, 0));
  }
  ~Graph() {
    cudaGraphExecDestroy(instance_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const {
    check(cudaGraphLaunch(instance_, stream_));
    check(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t instance_ = nullptr;
};

// Calls `body(call, operands, side)` for a case on every kernel that computes it.
template <class Body>
void on_each(const Case& c, Body body) {
  SCOPED_TRACE(name(c));
  Operands operands(c);
  operands.upload();
  for (const Kernel& kernel : kernels_of(operands)) {
    SCOPED_TRACE(kernel.name);
    Call call(kernel, operands);
    const SideStream side;
    body(call, operands, side);
  }
}

// The same for all shapes; no kernel that runs is left out of all of them.
template <class Body>
void on_each_shape(Body body) {
  std::set<std::string> reached;
  for (const Case& c : shapes()) {
    on_each(c, [&](Call& call, Operands& operands, const SideStream& side) {
      reached.insert(call.kernel().name);
      body(call, operands, side);
    });
  }
  for (const Kernel& kernel : kernels_for(Operation::forward)) {
    if (kernel.runs && kernel.adapter == nullptr) {
      EXPECT_TRUE(reached.contains(kernel.name)) << kernel.name;
    }
  }
}

TEST(Graph, ReplaysComputeWhatTheBuffersHoldNow) {
  for (const Case& c : shapes()) {
    std::vector<std::pair<Operands, Answer>> contents;
    for (const std::uint64_t fill : {1, 2, 3}) {
      Operands filled(refilled(c, fill));
      Answer right = answer(filled);
      contents.emplace_back(std::move(filled), std::move(right));
    }
    on_each(c, [&](Call& call, Operands& operands, const SideStream& side) {
      const Graph graph(side, [&] { call.queue(side); });
      for (const int which : {0, 1, 2, 0}) {
        const auto& [filled, right] = contents[static_cast<std::size_t>(which)];
        refill(operands, filled);
        call.poison();
        graph.replay();
        const Bits bits = call.bits();
        const auto verdict = judge(operands, right);
        EXPECT_TRUE(verdict.pass) << "contents " << which << ": " << verdict.text;
        EXPECT_EQ(bits, call.expected()) << "contents " << which;
      }
    });
  }
}

TEST(Graph, ReplaysDrawDropoutByTheNumbersOnTheDevice) {
  const Case c{.label = "dropout",
               .dtype = DType::bf16,
               .head_q = 2,
               .head_k = 2,
               .seq_q = 70,
               .seq_k = 100,
               .dropout = 0.25,
               .seed_on_device = true};
  on_each(c, [](Call& call, Operands& operands, const SideStream& side) {
    const Graph graph(side, [&] { call.queue(side); });
    std::vector<Bits> before;
    for (const auto& [seed, offset] :
         {std::pair<std::uint64_t, std::uint64_t>{1, 0}, {1, 8}, {0x9e3779b97f4a7c15u, 8}}) {
      Block& numbers = *operands.seed_and_offset.block;
      std::memcpy(numbers.host(), &seed, sizeof seed);
      std::memcpy(numbers.host() + sizeof seed, &offset, sizeof offset);
      numbers.upload();
      call.poison();
      graph.replay();
      const Bits replayed = call.bits();

      Args args = call.args();
      args.seed_device = args.offset_device = nullptr;
      args.seed = seed;
      args.offset = offset;
      call.poison();
      execute(call.plan(), args);
      Stream().synchronize();
      EXPECT_EQ(replayed, call.bits()) << "seed " << seed << ", offset " << offset;
      for (const Bits& other : before) EXPECT_NE(replayed, other) << "the same dropout";
      before.push_back(replayed);
    }
  });
}

TEST(Graph, WithoutAWorkspaceTheCaptureGoesOn) {
  bool needed = false, ours = false;
  on_each_shape([&](Call& call, Operands&, const SideStream& side) {
    ours = true;
    const bool needs = call.plan().workspace_size() > 0;
    needed |= needs;
    const Graph graph(side, [&] {
      try {
        call.queue(side, Scratch::none);
        EXPECT_FALSE(needs) << "it took a workspace";
      } catch (const Unsupported& error) {
        EXPECT_TRUE(needs);
        EXPECT_NE(std::string(error.what()).find("Args::workspace"), std::string::npos)
            << error.what();
      }
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      check(cudaStreamIsCapturing(native(side), &status));
      EXPECT_EQ(status, cudaStreamCaptureStatusActive);
      call.queue(side);
    });
    call.poison();
    graph.replay();
    const Bits bits = call.bits();
    EXPECT_EQ(bits, call.expected());
  });
  if (ours && all_kernels()) {
    EXPECT_TRUE(needed) << "no plan needs a workspace";
  }
}

// Every kernel's calls of all shapes.
struct Calls {
  std::deque<Operands> operands{};
  std::deque<Call> calls{};

  Calls() {
    for (const Case& c : shapes()) {
      Operands& each = operands.emplace_back(c);
      each.upload();
      for (const Kernel& kernel : kernels_of(each)) calls.emplace_back(kernel, each);
    }
  }
};

TEST(Streams, TwoAtOnceComputeWhatEachDoesAlone) {
  constexpr int kTimes = 10;
  Calls first, second;
  std::vector<Bits> alone;
  for (Call& call : first.calls) alone.push_back(call.expected());
  const std::size_t count = first.calls.size();
  if (count == 0) return;
  const SideStream one, other;
  for (std::size_t i = 0; i < count; ++i) {
    // The same call; the next, of another kernel or problem; and one of another problem.
    for (const std::size_t j : {i, (i + 1) % count, (i + count / 2) % count}) {
      Call &a = first.calls[i], &b = second.calls[j];
      a.poison();
      b.poison();
      for (int time = 0; time < kTimes; ++time) {
        a.queue(one);
        b.queue(other, Scratch::none);
      }
      one.stream().synchronize();
      other.stream().synchronize();
      EXPECT_EQ(a.bits(), alone[i]) << a.kernel().name << " beside " << b.kernel().name;
      EXPECT_EQ(b.bits(), alone[j]) << b.kernel().name << " beside " << a.kernel().name;
    }
  }
}

// Each call's outputs, set aside on the stream before the next call begins.
TEST(Streams, FiveHundredTimesTheSameBits) {
  constexpr std::size_t kTimes = 500;
  on_each_shape([&](Call& call, Operands& operands, const SideStream& side) {
    const Bits bits = call.expected();
    std::deque<std::pair<const Slot*, Buffer>> aside;
    for (const Slot* slot : operands.outputs())
      aside.emplace_back(slot, Buffer(kTimes * slot->block->size()));
    for (std::size_t time = 0; time < kTimes; ++time) {
      for (auto& [slot, all] : aside) {
        check(cudaMemsetAsync(slot->block->data(Side::device), kPoison, slot->block->size(),
                              native(side)));
      }
      call.queue(side);
      for (auto& [slot, all] : aside) {
        check(cudaMemcpyAsync(static_cast<std::byte*>(all.data()) + time * slot->block->size(),
                              slot->block->data(Side::device), slot->block->size(),
                              cudaMemcpyDeviceToDevice, native(side)));
      }
    }
    side.stream().synchronize();
    for (std::size_t time = 0; time < kTimes; ++time) {
      for (auto& [slot, all] : aside) {
        check(cudaMemcpy(slot->block->host(),
                         static_cast<std::byte*>(all.data()) + time * slot->block->size(),
                         slot->block->size(), cudaMemcpyDeviceToHost));
      }
      ASSERT_EQ(operands.damage(), "") << "time " << time;
      ASSERT_EQ(operands.result_bits(), bits) << "time " << time;
    }
    ++tally().runs[call.kernel().name];
  });
}

}  // namespace
}  // namespace tessera::testing
