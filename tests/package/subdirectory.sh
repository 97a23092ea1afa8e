#!/usr/bin/env bash
# Tessera as a part of another project, by add_subdirectory.
source "$(dirname "$0")/common.sh"
# Warnings are errors so that the library is compiled as elsewhere: ccache has its objects then.
consume "$consumer" "$LIBRARY" -DTESSERA_SOURCE="$SOURCE" -DTESSERA_HEAD_DIMS=64 \
        -DLARGEST=64 -DBACKEND="$BACKEND" -DTESSERA_WARNINGS_AS_ERRORS=ON
cd "$LIBRARY"
if ! find . -name 'libtessera.so*' | grep -q .; then fail "no library was built"; fi
