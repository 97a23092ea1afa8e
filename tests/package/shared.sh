#!/usr/bin/env bash
# The installed tree with a shared library: what is in it, and everybody can use it.
source "$(dirname "$0")/common.sh"
prefix=$WORK/prefix
install_and_move "$BUILD" "$prefix"
libraries=$(libraries "$prefix")
library=$libraries/libtessera.so

soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
case $VERSION in
  0.*) expected=libtessera.so.${VERSION%.*} ;;
  *) expected=libtessera.so.${VERSION%%.*} ;;
esac
[ "$soname" = "$expected" ] || fail "SONAME is $soname, not $expected"
[ -e "$libraries/$soname" ] || fail "$soname is not installed"

alien=$(nm -D --defined-only --demangle "$library" |
        sed -E 's/^[0-9a-f]* *[A-Za-z] //; s/^(typeinfo( name)?|vtable) for //' |
        grep -vE '^(tessera::|tessera_)' || true)
[ -z "$alien" ] || fail "the library exports what is not ours:"$'\n'"$alien"
if nm -D --defined-only --demangle "$library" | grep -E 'tessera::(detail|backend|kernel)::'; then
  fail "the library exports these internals"
fi

if readelf -d "$library" | grep -E 'R(UN)?PATH' | grep -F "$BUILD"; then
  fail "the installed library looks into the build folder"
fi
if ldd -r "$library" | grep -E 'not found|undefined symbol'; then fail "it does not load"; fi

find "$prefix/include" -name '*.hpp' | grep -q . || fail "no headers"
if find "$prefix/include" -mindepth 2 -maxdepth 2 ! -name '*.hpp' ! -name '*.h' | grep .; then
  fail "not a header"
fi

if [ "$TOOLS" = ON ]; then "$prefix/bin/tessera" info; fi
"$PYTHON" "$SOURCE/tests/package/load.py" "$library" "$VERSION"
consume "$consumer" "$WORK/consumer" -DCMAKE_PREFIX_PATH="$prefix"
# One example has Kokkos itself: the program's and the one that was installed must be one.
consume "$SOURCE/examples" "$WORK/examples" -DCMAKE_PREFIX_PATH="$prefix" \
        ${KOKKOS:+-DKokkos_DIR="$KOKKOS"}
with_pkg_config "$prefix" "$WORK/probe" -Wl,-rpath,"$libraries"
