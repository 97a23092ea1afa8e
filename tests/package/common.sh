# Sourced by the tests beside it. Environment, from CMakeLists.txt: SOURCE, BUILD, WORK, VERSION,
# BACKEND, COMPILER, GENERATOR, PYTHON.
set -euo pipefail
unset LD_LIBRARY_PATH # what is built here must load without help

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# library_build FOLDER ARGUMENT...: builds the library alone. The folder is kept for the next run.
library_build() {
  local folder=$1
  shift
  cmake -S "$SOURCE" -B "$folder" -G "$GENERATOR" -DCMAKE_CXX_COMPILER="$COMPILER" \
        -DBACKEND="$BACKEND" -DCMAKE_BUILD_TYPE=Release -DTESSERA_BUILD_TESTS=OFF \
        -DTESSERA_BUILD_BENCH=OFF -DTESSERA_BUILD_TOOLS=OFF -DTESSERA_BUILD_EXAMPLES=OFF "$@"
  cmake --build "$folder" --parallel 2
}

# install_and_move BUILD PREFIX: installs elsewhere first, because an installed tree can be moved.
install_and_move() {
  rm -rf "$2" "$2.first"
  cmake --install "$1" --prefix "$2.first" >/dev/null
  mv "$2.first" "$2"
}

# consume FOLDER PROBE_ARGUMENT -- CMAKE_ARGUMENT...: builds the consumer and runs its programs.
consume() {
  local folder=$1 probe_argument=$2 program
  shift 3
  rm -f "$folder/CMakeCache.txt"
  cmake -S "$SOURCE/tests/package/consumer" -B "$folder" -G "$GENERATOR" \
        -DCMAKE_CXX_COMPILER="$COMPILER" -DCMAKE_BUILD_TYPE=Release \
        -DEXAMPLES="$SOURCE/examples" "$@"
  cmake --build "$folder" --parallel 2
  while read -r program; do
    echo "-- $(basename "$program")"
    case $program in
      */probe) "$program" ${probe_argument:+"$probe_argument"} ;;
      *) "$program" >/dev/null ;;
    esac
  done <"$folder/programs"
}

# with_pkg_config PREFIX PROGRAM LINK_ARGUMENT...: builds the probe without CMake and runs it.
with_pkg_config() {
  local prefix=$1 program=$2 flags
  shift 2
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  [ "$(pkg-config --modversion tessera)" = "$VERSION" ] || fail "pkg-config tells another version"
  flags=$(pkg-config --cflags --libs tessera)
  # shellcheck disable=SC2086 # flags are words
  "$COMPILER" -std=c++20 "$SOURCE/tests/package/consumer/probe.cpp" -o "$program" $flags "$@"
  "$program"
}
