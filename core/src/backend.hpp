#pragma once
/// What a backend implements: free functions, resolved when the library is linked. The host core
/// calls them and nothing else of a backend; adding a backend is adding a folder that defines them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/info.hpp>
#include <tessera/problem.hpp>
#include <tessera/stream.hpp>

#include "core/kernel/arguments.hpp"

namespace tessera::backend {

/// One way to compute a problem: a kernel with its configuration. Made by `candidates`, kept in a
/// Plan, given to `launch`.
struct Candidate {
  std::string_view kernel{};    ///< dotted name, static storage: "forward.vector.avx512"
  std::string rejected{};       ///< empty if it can compute the problem, else why not, naming the
                                ///< nearest thing that works
  std::int64_t tile_q = 0;      ///< query rows that a task holds
  std::int64_t tile_k = 0;      ///< keys that a step of its loop takes
  std::int64_t head_dim = 0;    ///< bucket that holds query's head dimension
  std::int64_t head_dim_v = 0;  ///< bucket that holds value's head dimension
  std::int64_t splits = 1;      ///< parts into which a row's keys are split
  std::size_t workspace = 0;    ///< bytes, all threads together
  std::string why{};            ///< for people: why this configuration
  int id = 0;                   ///< the backend's own
  int forward_id = 0;           ///< likewise: backward, of what recomputes `out`
};

// Build and devices.
std::string_view name() noexcept;       ///< "kokkos"
std::string_view toolkit() noexcept;    ///< "Kokkos 5.2.2"
std::string_view head_dims() noexcept;  ///< buckets built, ascending: "64;128;192;256;512"
int device_count();
DeviceInfo device_info(int device);  ///< `device` is valid

// Memory and streams. Failures are DeviceError; device indices are valid.
void* allocate(std::size_t bytes, int device);  ///< aligned to 128; never null, also for 0 bytes
void release(void* data, int device) noexcept;
void copy(void* destination, const void* source, std::size_t bytes, const Stream& stream);
void synchronize(const Stream& stream);
bool capturing(const Stream& stream);      ///< into a graph: it cannot be waited for then
bool host_reads_device_memory() noexcept;  ///< if so, the host core validates values in device
                                           ///< memory

/// Every kernel that this build has for the operation, best first, those that cannot compute
/// `problem` with the reason. `problem` has been validated. Forward and decode without rows (batch,
/// head_q, seq_q or segments of 0) never come here or to `launch`; without keys (seq_k 0, key and
/// value possibly null) they do, as their rows must be filled: out 0, lse −∞ or the sink. Backward
/// comes whenever a gradient has elements: without rows, dk, dv and dbias are 0. Touches no device
/// memory.
std::vector<Candidate> candidates(const Problem& problem);

/// Queues the computation. `arguments` are validated; `workspace` holds at least
/// candidate.workspace bytes, aligned to 64, or is null: then the backend brings its own. Throws
/// DeviceError.
void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream);
void launch(const Candidate& candidate, const Problem& problem,
            const kernel::BackwardArguments& arguments, void* workspace, const Stream& stream);

}  // namespace tessera::backend
