# Sourced by the scripts beside it, with bash: where things are.
#   $root    the repository
#   $cache   what outlives a build: Kokkos, downloads, the virtual environment, lint results
#   $venv    the virtual environment with the tools of ci/requirements.txt
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tessera
venv=$cache/venv-$(sha256sum <"$root/ci/requirements.txt" | cut -c1-12)
# Objects of one checkout serve another: paths below the root count relative to it.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
