#include "tests/conformance/kernels.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <tessera/info.hpp>
#include <tessera/plan.hpp>

#include "bench/adapter.hpp"

namespace tessera::testing {
namespace {

constexpr const char* kVariable = "TESSERA_KERNEL";

std::string& chosen_word() {
  static std::string word;
  return word;
}

// All words of `text` that begin with the operation's name and a dot.
std::vector<std::string> names_in(const std::string& text, Operation operation) {
  const std::string prefix = to_string(operation) + ".";
  std::vector<std::string> names;
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    std::size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                 text[end] == '_' || text[end] == '.')) {
      ++end;
    }
    std::string name = text.substr(at, end - at);
    while (name.ends_with('.')) name.pop_back();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    at = end;
  }
  return names;
}

const bench::Adapter*& adapter_in_use() {
  static const bench::Adapter* adapter = nullptr;
  return adapter;
}

std::vector<Kernel> adapter_kernel(const bench::Adapter& adapter, Operation operation) {
  if (!adapter.has(operation)) return {};
  return {{.operation = operation,
           .name = to_string(operation) + ".adapter." + adapter.name(),
           .runs = true,
           .dtypes = {DType::fp32, DType::fp16, DType::bf16},
           .adapter = &adapter}};
}

std::vector<Kernel> find_kernels(Operation operation) {
  if (const bench::Adapter* adapter = chosen_adapter()) return adapter_kernel(*adapter, operation);
  std::vector<Kernel> found;
  std::string listing;
  {
    const OnlyKernel none("no_kernel_has_this_name");
    listing = supports(plainest_problem(operation)).reason;
  }
  for (const std::string& name : names_in(listing, operation)) {
    if (name.find(chosen_word()) == std::string::npos) continue;
    Kernel kernel{
        .operation = operation, .name = name, .selector = name.substr(name.find('.') + 1)};
    const OnlyKernel only(kernel.selector);
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
      const Support support = supports(plainest_problem(operation, dtype));
      if (support) kernel.dtypes.push_back(dtype);
      kernel.why_not = support.reason;  // the last: every kernel computes bf16, if it runs
    }
    kernel.runs = !kernel.dtypes.empty();
    found.push_back(std::move(kernel));
  }
  return found;
}

}  // namespace

bool computes(Operation operation) {
  const std::vector<Kernel>& all = kernels(operation);
  return std::any_of(all.begin(), all.end(), [](const Kernel& kernel) { return kernel.runs; });
}

namespace {

bool touches_scores(const Problem& p) {
  return p.softcap || p.alibi_slopes || p.bias || p.boolean_mask || p.sinks ||
         p.options.dropout > 0;
}

bool accumulates_in_fp16(const Problem& p) { return p.options.accumulate == Accumulate::fp16; }

bool is_long(const Problem& p) { return std::max(p.query.extent.dim, p.value.extent.dim) > 256; }

bool is_unaligned(const TensorSpec& t) {
  const auto apart = [&](std::int64_t extent, std::int64_t stride) {
    return extent > 1 && stride * static_cast<std::int64_t>(size_of(t.dtype)) % 16 != 0;
  };
  return t.alignment < 16 || apart(t.extent.batch, t.stride.batch) ||
         apart(t.extent.head, t.stride.head) || apart(t.extent.seq, t.stride.seq);
}

bool is_unaligned(const Problem& p) {
  return is_unaligned(p.query) || is_unaligned(p.key) || is_unaligned(p.value);
}

// What tensor maps cannot describe.
bool is_no_map(const TensorSpec& t) {
  const Extents& e = t.extent;
  if (e.batch == 0 || e.head == 0 || e.seq == 0) return false;
  return is_unaligned(t) || (e.seq > 1 && t.stride.seq == 0);
}

bool is_no_map(const Problem& p) {
  return is_no_map(p.query) || is_no_map(p.key) || is_no_map(p.value) ||
         (p.out && is_no_map(*p.out));
}

bool has_many_rows(const Problem& p) {
  return (p.options.max_seq_q > 0 ? p.options.max_seq_q : p.query.extent.seq) > 32;
}

struct Gap {
  const char* kernel;  // a word of its name
  const char* what;
  bool (*holds)(const Problem&);
};

// Kernels that leave something to others of their build.
constexpr std::array kGaps{
    Gap{".hopper", "Accumulate::fp16", accumulates_in_fp16},
    Gap{".hopper", "head dimensions above 256", is_long},
    Gap{".hopper", "rows that are not aligned to 16 bytes, or all the same", is_no_map},
    Gap{"decode.split", "more than 32 query rows", has_many_rows},
    Gap{"decode.split", "head dimensions above 256", is_long},
    Gap{".matrix", "head dimensions above 256", is_long},
    Gap{".mma", "Accumulate::fp16", accumulates_in_fp16},
    Gap{".mma.split", "what touches scores", touches_scores},
    Gap{".mma.split", "head dimensions above 256", is_long},
    Gap{".mma.split", "rows that are not aligned to 16 bytes", is_unaligned},
};

}  // namespace

std::string gap_of(const Kernel& kernel, const Problem& problem) {
  for (const Gap& gap : kGaps)
    if (kernel.name.find(gap.kernel) != std::string::npos && gap.holds(problem)) return gap.what;
  return {};
}

void choose_kernels(std::string word) { chosen_word() = std::move(word); }
bool all_kernels() { return chosen_word().empty(); }

void choose_adapter(const bench::Adapter& adapter) { adapter_in_use() = &adapter; }

const bench::Adapter* chosen_adapter() { return adapter_in_use(); }

bool Kernel::computes(DType dtype) const {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

OnlyKernel::OnlyKernel(const std::string& selector) {
  const char* value = std::getenv(kVariable);
  was_set_ = value != nullptr;
  if (was_set_) before_ = value;
  ::setenv(kVariable, selector.c_str(), 1);
}

OnlyKernel::~OnlyKernel() {
  if (was_set_) {
    ::setenv(kVariable, before_.c_str(), 1);
  } else {
    ::unsetenv(kVariable);
  }
}

const std::vector<Kernel>& kernels(Operation operation) {
  static const std::array all{find_kernels(Operation::forward), find_kernels(Operation::backward),
                              find_kernels(Operation::decode)};
  return all[static_cast<std::size_t>(operation)];
}

std::string to_string(Operation operation) {
  switch (operation) {
    case Operation::forward:
      return "forward";
    case Operation::backward:
      return "backward";
    case Operation::decode:
      return "decode";
  }
  return "unknown";
}

std::int64_t largest_head_dim() {
  const std::string dims(build_info().head_dims);
  return std::stoll(dims.substr(dims.rfind(';') + 1));
}

Problem plainest_problem(Operation operation, DType dtype) {
  const TensorSpec spec{.dtype = dtype,
                        .extent = {.batch = 1, .head = 1, .seq = 16, .dim = 64},
                        .stride = {.batch = 1024, .head = 1024, .seq = 64, .dim = 1}};
  Problem problem{.operation = operation, .query = spec, .key = spec, .value = spec, .out = spec};
  if (operation == Operation::backward) {
    problem.lse = spec;
    problem.lse->dtype = DType::fp32;
    problem.lse->extent.dim = 1;
    problem.lse->stride = bhsd_strides(problem.lse->extent);
    problem.dout = problem.dq = problem.dk = problem.dv = spec;
  }
  return problem;
}

}  // namespace tessera::testing
