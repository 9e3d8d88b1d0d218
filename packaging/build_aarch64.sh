#!/bin/sh
# Builds for aarch64 on a machine of another processor what packaging/build.sh and packages.sh build for its own: in
# dist/aarch64/ the one file, tree/, SHA256SUMS and SOURCES, and in its release/ what packages.sh adds to a release.
#   sh packaging/build_aarch64.sh [--draft]     (docs/build.md tells what it needs, and how long it takes)
# The build is packaging/build.sh itself, in a root of Debian for arm64 whose programs run by emulation, with the Python, the
# compiler and the C library of that root: nothing is compiled by another compiler than on a device of that processor. That
# root has no network. Only what does not depend on the processor is done by this machine: it fetches, packs and compresses.
# $BEETLE_RELEASE_KEY is used as packaging/build.sh does.
set -eu
umask 022
cd "$(dirname "$0")/.."
. packaging/emulation.sh

draft=""
case "$#,${1:-}" in
0,) ;;
1,--draft) draft=--draft ;;
*) echo "usage: sh packaging/build_aarch64.sh [--draft]" >&2 && exit 2 ;;
esac
for tool in mmdebstrap dpkg-deb; do
    command -v $tool >/dev/null 2>&1 || { echo "$0 needs $tool; on Debian: apt-get install $tool" >&2 && exit 2; }
done
if [ ! -s build/venv/beetle-environment ] || [ ! -s dist/SOURCES ]; then
    echo "sh packaging/build.sh first: its environment packs, and a release is both" >&2
    exit 2
fi
work=$PWD/build/aarch64
wheels=$work/wheels

# What the environment of the build in that root is made of: the same pinned versions, each file by its hash.
fetch_wheels() {
    want=$(cksum <packaging/build-requirements.txt)
    [ ! -s "$wheels/complete" ] || [ "$(cat "$wheels/complete")" != "$want" ] || return 0
    rm -rf "$wheels"
    mkdir -p "$wheels"
    # Pip takes the platforms that it is told, not those below them. Debian 12 has glibc 2.36.
    set --
    for each in manylinux2014 $(seq -f 'manylinux_2_%g' 17 36); do
        set -- "$@" --platform "${each}_aarch64"
    done
    build/venv/bin/pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none "$@" \
        --dest "$wheels" -r packaging/build-requirements.txt
    echo "$want" >"$wheels/complete"
}

# The programs of the root, from Debian by its signatures; BusyBox and musl are for packaging/tests/aarch64.sh.
PACKAGES=python3,python3-venv,libpython3-dev,gcc,libc6-dev,binutils,libzstd-dev,busybox-static,musl
make_root() {
    want="bookworm $PACKAGES"
    [ ! -s "$work/root/complete" ] || [ "$(cat "$work/root/complete")" != "$want" ] || return 0
    echo "making a root of Debian for arm64 in build/aarch64/root ..." >&2
    rm -rf "$work/root"
    mkdir -p "$work/root"
    TMPDIR=$work mmdebstrap --quiet --mode=root --architectures=arm64 --variant=minbase --include="$PACKAGES" bookworm "$work/root" \
        "deb http://deb.debian.org/debian bookworm main" "deb http://deb.debian.org/debian bookworm-updates main" \
        "deb http://deb.debian.org/debian-security bookworm-security main" >"$work/root.log" 2>&1 ||
        { tail -20 "$work/root.log" >&2 && exit 1; }
    echo "$want" >"$work/root/complete"
}

in_root() {
    chroot "$work/root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        BEETLE_BUILD_PYTHON=/usr/bin/python3.11 BEETLE_RELEASE_KEY="$key" PIP_NO_INDEX=1 PIP_FIND_LINKS=/srv/wheels \
        SOURCE_DATE_EPOCH=315532800 /bin/sh -c 'cd /srv/beetle && "$@"' sh "$@"
}

mkdir -p "$work"
[ -n "${EMULATION:-}" ] || fetch_wheels
emulate_aarch64 packaging/build_aarch64.sh "$@"
make_root
root=$work/root
mkdir -p "$root/dev"
mount -t proc proc "$root/proc"
for each in null zero urandom; do
    [ -e "$root/dev/$each" ] || : >"$root/dev/$each"
    mount --bind "/dev/$each" "$root/dev/$each"
done
mkdir -p "$root/srv/wheels" "$root/srv/beetle"
mount --bind "$wheels" "$root/srv/wheels"
key=""
if [ -n "${BEETLE_RELEASE_KEY:-}" ]; then
    # Seen in the root while this runs, never copied.
    key=/run/release.pem
    : >"$root$key"
    mount --bind "$BEETLE_RELEASE_KEY" "$root$key"
fi
# The checkout as it stands; what was built there before stays, its environment above all.
find "$root/srv/beetle" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
tar -c --exclude=./build --exclude=./dist --exclude=./.venv --exclude=./.git . | tar -x --no-same-owner -C "$root/srv/beetle"

in_root sh packaging/build.sh --tree
file=$(in_root build/venv/bin/python packaging/tree.py --file)
case $file in *-linux-aarch64) ;; *) echo "$file is not for aarch64" >&2 && exit 1 ;; esac
out=dist/aarch64
rm -rf "$out"
cp -a "$root/srv/beetle/dist" "$out"
build/venv/bin/python packaging/onefile.py $draft "$out/tree" "$root/srv/beetle/build/launcher.bin" "$out/$file"
(cd "$out" && sha256sum "$file" tree/MANIFEST >SHA256SUMS)
build/venv/bin/python packaging/weight.py --check $draft "$out/tree" >"$work/weight" ||
    { cat "$work/weight" && exit 1; }
# What packaging/packages.sh adds to a release; packaging/budgets.toml says how large each may be.
mkdir "$out/release"
cp "$out/$file" "$out/release/"
cp "$out/tree/MANIFEST" "$out/release/$file.MANIFEST"
in_root build/venv/bin/python packaging/sbom.py dist/tree "dist/$file.cdx.json"
cp "$root/srv/beetle/dist/$file.cdx.json" "$out/release/"
sh packaging/deb.sh "$out/release" "$out" >/dev/null
echo "$out/$file: $(wc -c <"$out/$file") bytes${draft:+ as a draft}" >&2
