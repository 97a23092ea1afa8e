// stack/fp32/d64/<full|causal>/s2048/<both|lse|nothing>: forward and backward of 12 attention
// calls, one after another as in a network of 12 layers, for each choice of what backward is given:
// out and lse, lse alone, or nothing. kept_bytes is what lies between forward and backward beyond
// every layer's q, k and v.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

constexpr int kLayers = 12;

enum class Kept : std::uint8_t { Both, Lse, Nothing };

class Stack {
 public:
  Stack(const Case& c, Kept kept) : kept_(kept) {
    Case one = c;
    one.operation = Operation::backward;
    layers_.reserve(kLayers);
    for (int i = 0; i < kLayers; ++i) layers_.emplace_back(one);
    const Args& first = layers_.front().args();
    const Extents& e = first.out.extent;
    out_bytes_ = static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim * size_of(c.dtype));
    lse_bytes_ = static_cast<std::size_t>(e.batch * e.head * e.seq) * sizeof(float);
    for (int i = 0; i < kLayers; ++i) {
      if (kept == Kept::Both) outs_.emplace_back(out_bytes_);
      if (kept != Kept::Nothing) lses_.emplace_back(lse_bytes_);
    }
    if (kept != Kept::Both) passing_ = Buffer(out_bytes_);  // every layer's out, for a moment
    forward_.emplace(plan(describe(forward_args(0), options())));
    backward_.emplace(plan(describe(backward_args(0), options(), Operation::backward)));
    workspace_ = Buffer(std::max(forward_->workspace_size(), backward_->workspace_size()));
  }

  void run() {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      execute(*forward_, with_workspace(forward_args(i)));
    for (std::size_t i = layers_.size(); i-- > 0;)
      execute(*backward_, with_workspace(backward_args(i)));
    Stream{}.synchronize();
  }

  std::size_t kept_bytes() const {
    std::size_t bytes = 0;
    for (const auto* buffers : {&outs_, &lses_})
      for (const Buffer& buffer : *buffers) bytes += buffer.size();
    return bytes;
  }

 private:
  const Options& options() const { return layers_.front().options(); }

  Args with_workspace(Args args) {
    args.workspace = {.data = workspace_.data(), .size = workspace_.size()};
    return args;
  }

  Args forward_args(std::size_t i) {
    Args args = layers_[i].args();
    args.dout = args.dlse = {};
    args.dq = args.dk = args.dv = {};
    args.out.data = kept_ == Kept::Both ? outs_[i].data() : passing_.data();
    if (kept_ == Kept::Nothing) {
      args.lse = {};
    } else {
      args.lse.data = lses_[i].data();
    }
    return args;
  }

  Args backward_args(std::size_t i) {
    Args args = layers_[i].args();
    if (kept_ == Kept::Both) {
      args.out.data = outs_[i].data();
    } else {
      args.out = {};
    }
    if (kept_ == Kept::Nothing) {
      args.lse = {};
    } else {
      args.lse.data = lses_[i].data();
    }
    return args;
  }

  Kept kept_;
  std::size_t out_bytes_ = 0, lse_bytes_ = 0;
  std::vector<Workload> layers_;
  std::vector<Buffer> outs_, lses_;
  Buffer passing_, workspace_;
  std::optional<Plan> forward_, backward_;
};

template <Kept kept>
void run_stack(benchmark::State& state, const Case& c) {
  Stack stack(c, kept);
  stack.run();
  while (state.KeepRunning()) stack.run();
  state.counters["flops"] = kLayers * 3.5 * flops_of(c);
  state.counters["kept_bytes"] = static_cast<double>(stack.kept_bytes());
}

}  // namespace

void register_stack() {
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    Case c{.head_dim = 64, .visible = visible, .seq = 2048};
    const auto add_one = [&](auto function, std::string_view name) {
      c.note = name;
      add("stack", function, c, benchmark::kMillisecond);
    };
    add_one(run_stack<Kept::Both>, "both");
    add_one(run_stack<Kept::Lse>, "lse");
    add_one(run_stack<Kept::Nothing>, "nothing");
  }
}

}  // namespace tessera::bench
