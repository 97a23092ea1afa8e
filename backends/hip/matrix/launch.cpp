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

Blocking blocking_of(const Choice& choice, const Device& device, bool general) {
  const bool rdna =
      device.generation == Generation::Rdna3 || device.generation == Generation::Rdna4;
  return blocking(!rdna, static_cast<int>(choice.dim), static_cast<int>(choice.dim_v), general);
}

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
    const Blocking b = blocking_of(c, device, gpu::general(problem));
    candidate.tile_q = b.rows;
    candidate.tile_k = b.keys;
    candidate.head_dim = c.dim;
    candidate.head_dim_v = c.dim_v;
    candidate.why = "matrix instructions of " + device.isa + ", " + std::to_string(b.rows) +
                    " rows x " + std::to_string(b.keys) + " keys a work-group of " +
                    std::to_string(b.threads) + " threads; " +
                    (gpu::general(problem) ? "general" : "plain") + " flavour";
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  const kernel::ForwardArguments& a = launch.arguments;
  const Problem& problem = launch.problem;
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  // The plain flavour multiplies by the scale after it has looked for the largest score.
  const bool general = a.general() || !(a.scale > 0);
  const Blocking b = blocking_of(choice, launch.device, general);
  const auto threads = static_cast<unsigned>(b.threads);
  const ForwardParameters parameters = forward_parameters(launch, b.rows, b.keys, threads, 1, 8);
  if (parameters.tasks == 0) return;
  queue(launch, instance_of(choice, problem.query.dtype, general),
        {static_cast<unsigned>(parameters.groups), 1, 1}, threads, 0, &parameters,
        sizeof parameters);
}

}  // namespace tessera::hip::matrix
