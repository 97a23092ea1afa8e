#pragma once
/// The one source of Tessera's version: the build files read these lines.

#include <string>

#include <tessera/export.hpp>

#define TESSERA_VERSION_MAJOR 0
#define TESSERA_VERSION_MINOR 1
#define TESSERA_VERSION_PATCH 0

namespace tessera {

/// A semantic version. Before 1.0 the SONAME changes with every minor.
struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  friend constexpr bool operator==(const Version&, const Version&) = default;
};

/// The version of the headers that the caller was compiled with.
inline constexpr Version kHeaderVersion{TESSERA_VERSION_MAJOR, TESSERA_VERSION_MINOR,
                                        TESSERA_VERSION_PATCH};

/// The version of the library that the program is linked with. Never throws.
TESSERA_API Version library_version() noexcept;

/// "0.1.0"
TESSERA_API std::string to_string(const Version& version);

}  // namespace tessera
