#pragma once
/// How the command ends, and how it says why.

#include <stdexcept>

namespace tessera::tools {

enum class Status : int {
  Fine = 0,
  CheckFailed = 1,
  BadInput = 2,    ///< wrong usage, a wrong file, wrong arguments
  CannotDoIt = 3,  ///< Unsupported, a device failure, no memory
};

/// The input or the usage is wrong: one line that names what, how it is wrong, and what is allowed.
/// Exit status 2.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tessera::tools
