#!/bin/sh
# Compiles the starter, the program of a tree: a few pages without a C library. The same source and compiler give
# the same bytes.
# Usage: sh packaging/starter/build.sh OUTPUT
set -eu
[ $# -eq 1 ] || { echo "usage: sh $0 OUTPUT" >&2 && exit 2; }
case $1 in
/*) output=$1 ;;
*) output=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
mkdir -p "$(dirname "$output")"
# The address is far from that of any program that is not position independent, which the interpreter is not.
exec ${CC:-gcc} -std=c11 -Os -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror \
    -ffreestanding -fno-stack-protector -fno-tree-loop-distribute-patterns -fno-asynchronous-unwind-tables -fno-ident \
    -fno-pie -fcf-protection=none "-ffile-prefix-map=$PWD=." -nostdlib -static -no-pie -s \
    -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -Wl,-Ttext-segment=0x10000000 -o "$output" starter.c
