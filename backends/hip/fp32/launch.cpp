// Which of the fp32 kernels a problem gets, and its launch.

#include <array>
#include <string>

#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"
#include "backends/hip/code_objects.hpp"
#include "backends/hip/common/launch.hpp"
#include "backends/hip/fp32/config.hpp"
#include "backends/hip/host.hpp"

namespace tessera::hip::fp32 {
namespace {

constexpr std::string_view kForward = "forward.fp32", kDecode = "decode.fp32.rows";

// Ascending: the first that holds a problem is the cheapest.
constexpr std::array kChoices{make_choice<Shape64>("64"), make_choice<Shape128>("128"),
                              make_choice<Shape192x128>("192x128"), make_choice<Shape192>("192"),
                              make_choice<Shape256>("256")};

std::string instance_of(const Choice& choice, bool general) {
  return "forward_fp32_" + std::string(choice.shape) + (general ? "_general" : "");
}

std::string reject(const Problem& p, const Device& device, int choice) {
  if (p.query.dtype != DType::fp32) return "it computes fp32 only";
  std::string reason = gpu::reject_dims(p);
  if (!reason.empty()) return reason;
  if (choice < 0)
    return gpu::both_dims(p) + "it has no kernel for them in a build for " TESSERA_BUILD_HEAD_DIMS
                               ": both must be at most 256";
  return reject_target(device.isa,
                       instance_of(kChoices[static_cast<std::size_t>(choice)], gpu::general(p)));
}

// Work-groups that share a block of rows.
Index tasks_of(const Choice& choice, const Device& device, bool general) {
  const int dim_v = static_cast<int>(choice.dim_v);
  return dim_v / columns_of(dim_v, device.wave, general);
}

std::string why(const Choice& c, const Device& device, bool general) {
  return std::string(device.wave == 64 ? "fp32 matrix instructions of "
                                       : "fp32 multiply-adds of ") +
         device.isa + ", " + std::to_string(c.rows) + " rows x " + std::to_string(c.keys) +
         " keys a work-group of " + std::to_string(kThreads) + " threads; " +
         (general ? "general" : "plain") + " flavour";
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
    candidate.why = why(c, device, gpu::general(problem));
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  const kernel::ForwardArguments& a = launch.arguments;
  // The plain flavour multiplies by the scale after it has looked for the largest score.
  const bool general = a.general() || !(a.scale > 0);
  const ForwardParameters parameters =
      forward_parameters(launch, choice.rows, choice.keys, kThreads,
                         tasks_of(choice, launch.device, general), kBytesAtOnce);
  if (parameters.tasks == 0) return;
  queue(launch, instance_of(choice, general), {static_cast<unsigned>(parameters.groups), 1, 1},
        kThreads, 0, &parameters, sizeof parameters);
}

}  // namespace tessera::hip::fp32
