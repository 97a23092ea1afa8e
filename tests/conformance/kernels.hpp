#pragma once
/// The kernels that a build offers for each operation, each made to run in turn; or somebody else's
/// implementation in their place.

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/problem.hpp>

namespace tessera::bench {
class Adapter;
}

namespace tessera::testing {

/// A kernel by its dotted name. Which there are is read from the answer to a name that there is
/// not.
struct Kernel {
  Operation operation = Operation::forward;
  std::string name{};           ///< "forward.vector.avx512"
  std::string selector{};       ///< what TESSERA_KERNEL must be for it alone: "vector.avx512"
  bool runs = false;            ///< on this machine, for the plainest of problems
  std::string why_not{};        ///< the library's own words
  std::vector<DType> dtypes{};  ///< of what it computes; empty if it does not run
  const bench::Adapter* adapter =
      nullptr;  ///< is called instead of planning; what it computes it says call by call

  bool computes(DType dtype) const;
};

/// Does any kernel compute the operation here?
bool computes(Operation operation);

/// What the kernel is known not to compute of this problem, though it computes its dtype; empty:
/// nothing. Another kernel of the build does.
std::string gap_of(const Kernel& kernel, const Problem& problem);
const std::vector<Kernel>& kernels(Operation operation = Operation::forward);

/// Leaves out kernels whose names do not hold `word`. Before the first call of kernels().
void choose_kernels(std::string word);
bool all_kernels();  ///< none is left out

/// Puts an adapter in the place of our kernels: the only one, `forward.adapter.NAME`, of each
/// operation that it has a function for. Before the first call of kernels(). It must live on.
void choose_adapter(const bench::Adapter& adapter);
/// Null: our own kernels run.
const bench::Adapter* chosen_adapter();

/// "forward"
std::string to_string(Operation operation);

/// Restricts planning to one kernel while it lives.
class OnlyKernel {
 public:
  explicit OnlyKernel(const std::string& selector);
  ~OnlyKernel();
  OnlyKernel(const OnlyKernel&) = delete;
  OnlyKernel& operator=(const OnlyKernel&) = delete;

 private:
  std::string before_;
  bool was_set_;
};

/// Largest head dimension that this build was made for.
std::int64_t largest_head_dim();

/// A problem that every kernel of the dtype can compute: one head, 16 by 16, head dimension 64.
Problem plainest_problem(Operation operation = Operation::forward, DType dtype = DType::fp32);

}  // namespace tessera::testing
