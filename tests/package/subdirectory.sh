#!/usr/bin/env bash
# Tessera as a part of another project, by add_subdirectory.
source "$(dirname "$0")/common.sh"
consume "$consumer" "$WORK/consumer" -DTESSERA_SOURCE="$SOURCE" -DTESSERA_HEAD_DIMS=64 \
        -DLARGEST=64 -DBACKEND="$BACKEND" -DTESSERA_CCACHE=ON
cd "$WORK/consumer"
if ! find . -name 'libtessera.so*' | grep -q .; then fail "no library was built"; fi
