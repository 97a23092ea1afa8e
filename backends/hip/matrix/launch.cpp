// Which of the matrix kernels a problem gets, and its launch.

#include <algorithm>
#include <array>
#include <string>

#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"
#include "backends/hip/code_objects.hpp"
#include "backends/hip/common/launch.hpp"
#include "backends/hip/host.hpp"
#include "backends/hip/matrix/config.hpp"

namespace tessera::hip::matrix {
namespace {

constexpr std::string_view kForward = "forward.matrix", kDecode = "decode.matrix.rows";

// Ascending: the first that holds a problem is the cheapest.
constexpr std::array kChoices{make_choice<Shape64>("64"), make_choice<Shape128>("128"),
                              make_choice<Shape192x128>("192x128"), make_choice<Shape192>("192"),
                              make_choice<Shape256>("256")};

std::string instance_of(const Choice& choice, DType dtype, bool general) {
  return std::string("forward_") + (dtype == DType::bf16 ? "bf16_" : "fp16_") +
         std::string(choice.shape) + (general ? "_general" : "");
}

std::string reject(const Problem& p, const Device& device, int choice) {
  std::string reason = gpu::reject_dims(p);
  if (!reason.empty()) return reason;
  if (!gpu::is_16_bit(p.query.dtype)) return "it computes fp16 and bf16 only";
  if (choice < 0)
    return gpu::both_dims(p) + "it has no kernel for them in a build for " TESSERA_BUILD_HEAD_DIMS
                               ": both must be at most 256";
  return reject_target(device.isa, instance_of(kChoices[static_cast<std::size_t>(choice)],
                                               p.query.dtype, gpu::general(p)));
}

}  // namespace

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation == Operation::backward) return;
  const int choice = find_choice(kChoices, problem);
  backend::Candidate candidate;
  candidate.kernel = problem.operation == Operation::decode ? kDecode : kForward;
  candidate.id = choice;
  candidate.rejected = reject(problem, device, choice);
  if (candidate.rejected.empty()) {
    const Choice& c = kChoices[static_cast<std::size_t>(choice)];
    candidate.tile_q = c.rows;
    candidate.tile_k = c.keys;
    candidate.head_dim = c.dim;
    candidate.head_dim_v = c.dim_v;
    candidate.why = "matrix instructions of " + device.isa + ", " + std::to_string(c.rows) +
                    " rows x " + std::to_string(c.keys) + " keys a work-group of " +
                    std::to_string(kThreads) + " threads; " +
                    (gpu::general(problem) ? "general" : "plain") + " flavour";
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  const kernel::ForwardArguments& a = launch.arguments;
  const Problem& problem = launch.problem;
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  const ForwardParameters parameters =
      forward_parameters(launch, choice.rows, choice.keys, kThreads, 1, 8);
  if (parameters.tasks == 0) return;
  // The plain flavour multiplies by the scale after it has looked for the largest score.
  const bool general = a.general() || !(a.scale > 0);
  queue(launch, instance_of(choice, problem.query.dtype, general),
        {static_cast<unsigned>(parameters.groups), 1, 1}, kThreads, 0, &parameters,
        sizeof parameters);
}

}  // namespace tessera::hip::matrix
