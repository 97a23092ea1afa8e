#include "bench/layers.hpp"

#include <algorithm>

namespace tessera::bench {

Stack::Stack(const Case& c, Kept kept) : kept_(kept) {
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

void Stack::run() {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    execute(*forward_, with_workspace(forward_args(i)));
  for (std::size_t i = layers_.size(); i-- > 0;)
    execute(*backward_, with_workspace(backward_args(i)));
  Stream{}.synchronize();
}

std::size_t Stack::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto* buffers : {&outs_, &lses_})
    for (const Buffer& buffer : *buffers) bytes += buffer.size();
  return bytes;
}

Args Stack::with_workspace(Args args) {
  args.workspace = {.data = workspace_.data(), .size = workspace_.size()};
  return args;
}

Args Stack::forward_args(std::size_t i) {
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

Args Stack::backward_args(std::size_t i) {
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

}  // namespace tessera::bench
