#!/bin/sh
# The build for aarch64 (packaging/build_aarch64.sh) on a machine of another processor, by emulation: the bare roots with
# BusyBox and musl of that processor, the life of a device with its replica and its restore, the Debian package in a root of
# Debian for arm64, and how long starts take. None of it says how fast a real processor is.
#   sh packaging/tests/aarch64.sh [bare_root | device | deb | measure]...     all of them without a word
# Needs what packaging/build_aarch64.sh and packaging/tests/bare_root.sh need. Not emulated is the kernel: it is this machine's.
set -eu
cd "$(dirname "$0")/../.."
. packaging/emulation.sh
. packaging/tests/roots.sh

arm=$PWD/build/aarch64/root
export BEETLE_DIST=dist/aarch64 BEETLE_BUSYBOX="$arm/bin/busybox" BEETLE_MUSL="$arm/lib/ld-musl-aarch64.so.1"
dist=$BEETLE_DIST
file=$(sed -n '1s/.*  //p' "$dist/SHA256SUMS" 2>/dev/null) || true
[ -n "$file" ] || { echo "nothing is built: sh packaging/build_aarch64.sh" >&2; exit 2; }
need_roots tmux nsenter "$BEETLE_MUSL"
emulate_aarch64 packaging/tests/aarch64.sh "$@"

# The package's own way, in a copy of the root that ends with this script.
deb() {
    root=$work/debian
    mkdir -p "$root"
    # Not an overlay: in a user namespace those cannot rename a folder of the lower root, which dpkg does.
    tar -C "$arm" -c --exclude=./srv --exclude=./dev . | tar -C "$root" -x
    mkdir "$root/dev"
    mount -t proc proc "$root/proc"
    for name in null zero urandom; do
        : >"$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    cp "$dist"/release/*_arm64.deb "$root/root/beetle.deb"
    in_debian() {
        "$chroot" "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
    }
    in_debian dpkg -i /root/beetle.deb
    in_debian dpkg --verify beetle-memory
    in_debian beetle doctor | tee "$work/said"
    grep -q "files as they were built" "$work/said" || fail "doctor does not check the tree"
    in_debian beetle --config /etc/beetle/beetle.toml start
    in_debian beetle remember "Ana drinks tea without sugar." --said "I drink tea without sugar." --speaker Ana
    in_debian beetle recall "does Ana take sugar" --limit 1 | grep -q tea || fail "what was written is not recalled"
    in_debian beetle stop
    in_debian dpkg -P beetle-memory
    [ -s "$root/var/lib/beetle/beetle.db" ] || fail "purge deleted the memory"
}

# Sets `spent`, milliseconds of the processor that the ended commands of this shell have taken. A subshell has none.
look() {
    times >"$work/spent"
    spent=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int(($1 * 60 + $2 + $3 * 60 + $4) * 1000) }' "$work/spent")
}

# Prints what a command takes of the processor: the least of three, since other work on this machine adds to it.
took() {
    least=""
    for _ in 1 2 3; do
        look
        before=$spent
        as_root_of "$root" "$@" >/dev/null
        look
        ms=$((spent - before))
        [ -n "$least" ] && [ "$least" -le "$ms" ] || least=$ms
    done
    shift
    echo "emulated: beetle $* takes $least ms of a core"
}

measure() {
    root=$work/measured
    make_root "$root"
    look
    before=$spent
    as_root_of "$root" "/home/robot/$file" install --profile standalone >/dev/null
    look
    echo "emulated: install, the first start included, takes $((spent - before)) ms of a core"
    took beetle --version
    took beetle --help
    begun=$(date +%s%N)
    as_root_of "$root" beetle --config /etc/beetle/beetle.toml start >/dev/null
    echo "emulated: beetle start takes $((($(date +%s%N) - begun) / 1000000)) ms by the clock until the daemon answers"
    took beetle status
    took beetle recall tea
    as_root_of "$root" beetle stop >/dev/null
}

[ $# -gt 0 ] || set -- bare_root device deb measure
make_work
trap remove_work EXIT INT TERM
for part in "$@"; do
    echo "=== $part"
    case $part in
    bare_root | device) sh "packaging/tests/$part.sh" ;;
    deb | measure) "$part" ;;
    *) fail "there is no part $part" ;;
    esac
done
echo "The build for aarch64 works, emulated."
