#!/bin/sh
# Fuzzes the C code of the launcher with libFuzzer, and the sanitizers for addresses and undefined behaviour.
# Usage: sh tests/fuzz/native/run.sh TARGET SECONDS [OPTION...]    TARGET: tar or payload; options are libFuzzer's
# Needs clang with its libFuzzer, and libzstd; on Debian: apt-get install clang libclang-rt-14-dev libzstd-dev
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 tar|payload SECONDS [OPTION...]" >&2 && exit 2; }
target=$1 seconds=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
launcher=$here/../../../packaging/launcher
work=${FUZZ_WORK:-$here/../../../build/fuzz}/launcher-$target
mkdir -p "$work/corpus" "$work/finds"
case $target in
tar) sources="tar.c folders.c" ;;
payload) sources="tar.c folders.c problem.c blake2b.c stop.c places.c prune.c verify.c" ;;
*) echo "there is no target $target" >&2 && exit 2 ;;
esac
cd "$launcher"
# shellcheck disable=SC2086
clang -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -g -O1 -fno-omit-frame-pointer -I. \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o "$work/program" "$here/$target.c" $sources -lzstd
python3 "$here/seeds.py" "$target" "$work/corpus"
exec "$work/program" -max_total_time="$seconds" -max_len=16384 -timeout=60 -rss_limit_mb=1024 \
    -artifact_prefix="$work/finds/" -print_final_stats=1 "$@" "$work/corpus"
