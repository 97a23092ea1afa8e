#pragma once
// Everything that is checked before a kernel is chosen or launched. Each function throws
// InvalidArgument or Unsupported with the argument's name, what it was and what is allowed, or
// returns having built no string.

#include <tessera/args.hpp>
#include <tessera/problem.hpp>
#include <tessera/stream.hpp>

namespace tessera::detail {

// validate_problem.cpp: is the problem well-formed (InvalidArgument)? Does this version compute it
// (Unsupported)?
void validate(const Problem& problem);

// validate_args.cpp: what a Problem does not hold: null and misaligned pointers, scale and softcap,
// sizes of vectors.
void validate_pointers_and_values(const Args& args, Operation operation);
// The outputs and the workspace share no byte with one another or with what is read.
void validate_disjoint(const Args& args, Operation operation);
void validate_workspace(const Workspace& workspace, std::size_t needed);

// compare.cpp: do the arguments pose the problem that the plan was made for? Strides of axes with
// one element are free, pointers may be more aligned.
void validate_same(const Problem& planned, const Problem& posed, const Args& args);

// validate_indices.cpp: prefix sums and ranges in device memory, read directly or through copies on
// the stream.
void validate_indices(const Args& args, const Problem& problem, const Stream& stream);

}  // namespace tessera::detail
