#pragma once
// What the two halves of this family share on the host: launch.cu and decode_launch.cu.

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/host.hpp"

namespace tessera::cuda::mma {

// Why the problem is none for this family on that device; empty if it is.
std::string reject(const Problem& problem, const Device& device);

// Queues a kernel. Raises the shared memory that it may ask for if it must.
void queue(const void* kernel, std::int64_t blocks, unsigned threads, std::size_t shared,
           void* parameters, const Launch& launch, const char* what);

void append_decode(const Problem& problem, const Device& device,
                   std::vector<backend::Candidate>& all);
// The candidate is one of append_decode's.
bool is_decode(const backend::Candidate& candidate);
void launch_decode(const Launch& launch);

}  // namespace tessera::cuda::mma
