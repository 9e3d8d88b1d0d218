#!/bin/sh
# Compiles the launcher of the one-file build into one static program. The same source and compiler give the same bytes.
# Usage: sh packaging/launcher/build.sh [--test | --sanitize] OUTPUT
#   --test      the same, and a warning is an error
#   --sanitize  for the tests: with the address and undefined-behaviour sanitizers, which cannot be linked statically
set -eu
kind=""
case ${1:-} in
--test | --sanitize)
    kind=$1
    shift
    ;;
esac
[ $# -eq 1 ] || { echo "usage: sh $0 [--test | --sanitize] OUTPUT" >&2 && exit 2; }
case $1 in
/*) output=$1 ;;
*) output=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
mkdir -p "$(dirname "$output")"

set -- -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wvla -Wformat=2 -fno-ident "-ffile-prefix-map=$PWD=."
[ -z "$kind" ] || set -- "$@" -Werror
if [ "$kind" = --sanitize ]; then
    set -- "$@" -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
    set -- "$@" -Os -ffunction-sections -fdata-sections -fstack-protector-strong \
        -static -s -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,relro
fi
# The names are given, not globbed: their order is the order in the program.
exec ${CC:-gcc} "$@" -o "$output" \
    launcher.c self.c places.c unpack.c verify.c tar.c prune.c folders.c stop.c problem.c blake2b.c -lzstd
