#!/usr/bin/env bash
# BUILD_SHARED_LIBS=OFF makes a static library that can be installed and used, and
# TESSERA_HEAD_DIMS=64 one without larger head dimensions.
source "$(dirname "$0")/common.sh"
prefix=$WORK/prefix
library_build -DBUILD_SHARED_LIBS=OFF -DTESSERA_HEAD_DIMS=64
install_and_move "$LIBRARY" "$prefix"
[ -e "$(libraries "$prefix")/libtessera.a" ] || fail "no static library"
if find "$prefix" -name 'libtessera.so*' | grep .; then fail "there is a shared library too"; fi

consume "$consumer" "$WORK/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DLARGEST=64
consume "$SOURCE/examples" "$WORK/examples" -DCMAKE_PREFIX_PATH="$prefix"
with_pkg_config "$prefix" "$WORK/probe"
