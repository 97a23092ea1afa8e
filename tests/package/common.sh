# Sourced by the tests beside it. Environment, from CMakeLists.txt: SOURCE, BUILD, WORK, LIBRARY (where a
# test that builds the library does so), VERSION, BACKEND, COMPILER, GENERATOR, PYTHON, KOKKOS (its package folder, if it is installed
# somewhere), TOOLS (ON if the build has the tessera command), CCACHE (the program, where there is one).
set -euo pipefail
consumer=$SOURCE/tests/package/consumer
unset LD_LIBRARY_PATH # what is built here must load without help
# Projects outside are compiled through ccache too.
if [ -n "$CCACHE" ]; then export CMAKE_CXX_COMPILER_LAUNCHER=$CCACHE; fi

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# library_build ARGUMENT...: builds the library alone. The folder is kept for the next run.
library_build() {
  cmake -S "$SOURCE" -B "$LIBRARY" -G "$GENERATOR" -DCMAKE_CXX_COMPILER="$COMPILER" \
        -DBACKEND="$BACKEND" -DCMAKE_BUILD_TYPE=Release -DTESSERA_BUILD_TESTS=OFF \
        -DTESSERA_BUILD_BENCH=OFF -DTESSERA_BUILD_TOOLS=OFF -DTESSERA_BUILD_EXAMPLES=OFF "$@"
  cmake --build "$LIBRARY" --parallel 2
}

# install_and_move BUILD PREFIX: installs elsewhere first, because an installed tree can be moved.
install_and_move() {
  rm -rf "$2" "$2.first"
  cmake --install "$1" --prefix "$2.first" >/dev/null
  mv "$2.first" "$2"
}

# libraries PREFIX: the folder of an installed tree that holds libraries: lib, lib64, ...
libraries() {
  local description
  description=$(find "$1" -name tessera.pc)
  [ -n "$description" ] || fail "no tessera.pc is installed"
  dirname "$(dirname "$description")"
}

# consume PROJECT FOLDER CMAKE_ARGUMENT...: builds a project outside and runs its tests.
consume() {
  local project=$1 folder=$2
  shift 2
  rm -f "$folder/CMakeCache.txt"
  cmake -S "$project" -B "$folder" -G "$GENERATOR" -DCMAKE_CXX_COMPILER="$COMPILER" \
        -DCMAKE_BUILD_TYPE=Release "$@"
  cmake --build "$folder" --parallel 2
  ctest --test-dir "$folder" --output-on-failure --no-tests=error
}

# with_pkg_config PREFIX PROGRAM LINK_ARGUMENT...: builds the probe without CMake and runs it.
with_pkg_config() {
  local prefix=$1 program=$2 flags
  shift 2
  PKG_CONFIG_PATH=$(libraries "$prefix")/pkgconfig
  export PKG_CONFIG_PATH
  [ "$(pkg-config --modversion tessera)" = "$VERSION" ] || fail "pkg-config tells another version"
  flags=$(pkg-config --cflags --libs tessera)
  # shellcheck disable=SC2086 # flags are words
  "$COMPILER" -std=c++20 "$SOURCE/tests/package/consumer/probe.cpp" -o "$program" $flags "$@"
  "$program"
}
