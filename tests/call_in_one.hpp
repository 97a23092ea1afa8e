#pragma once
/// The function of an operation.

#include <tessera/attention.hpp>

namespace tessera::testing {

/// Attention in one call: plans and executes.
inline void call_in_one(Operation operation, const Args& args, const Options& options) {
  switch (operation) {
    case Operation::forward:
      return forward(args, options);
    case Operation::backward:
      return backward(args, options);
    case Operation::decode:
      return decode(args, options);
  }
}

}  // namespace tessera::testing
