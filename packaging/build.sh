#!/bin/sh
# Builds what a device gets: the one file (dist/beetle-VERSION-linux-PROCESSOR), dist/tree/ (the same, unpacked) and
# dist/SHA256SUMS, whose first line names the one file. With --stock also the same name with -stock, PyInstaller's own
# one-file format, from the same build.spec: the fallback. With --gateway it builds the file of a server instead, which
# serves gRPC too, and puts all of it into dist/gateway/. With --draft it packs fast, for tests: a tenth larger, and no release.
# With --tree it ends before it packs, for packaging/build_aarch64.sh: dist/tree/ and build/launcher.bin are what is packed.
# $BEETLE_RELEASE_KEY names the private key of a release, which signs the list of the tree's files.
# $BEETLE_BUILD_PYTHON names the Python to freeze; its static library is what runs, its shared one is what PyInstaller looks at.
set -eu
umask 022
cd "$(dirname "$0")/.."

stock="" kind="" out=dist draft="" packs=yes
for word in "$@"; do
    case $word in
    --stock) stock=yes ;;
    --draft) draft=--draft ;;
    --tree) packs="" ;;
    --gateway) kind=--gateway out=dist/gateway ;;
    *) echo "usage: sh packaging/build.sh [--draft | --tree] [--stock] [--gateway]" >&2 && exit 2 ;;
    esac
done

missing=""
need() {
    echo "$1 is missing: $2" >&2
    missing=yes
}
compiler=${CC:-gcc}
if ! command -v "$compiler" >/dev/null 2>&1; then
    need "$compiler" "a C compiler; on Debian: apt-get install gcc libc6-dev"
elif ! echo '#include <zstd.h>
int main(void) { return ZSTD_versionNumber() == 0; }' | "$compiler" -static -x c -o /dev/null - -lzstd 2>/dev/null; then
    need "libzstd" "its header and static library, with a static C library; on Debian: apt-get install libzstd-dev libc6-dev"
fi
for tool in ld strip objdump; do
    command -v $tool >/dev/null 2>&1 || need "$tool" "it is part of binutils; on Debian: apt-get install binutils"
done

. packaging/python.sh
# Not quoted: the variable may name several.
python=$(find_python '
    sysconfig.get_config_var("Py_ENABLE_SHARED")
    and __import__("os.path").path.exists(sysconfig.get_config_var("LIBPL") + "/" + sysconfig.get_config_var("LIBRARY"))
' ${BEETLE_BUILD_PYTHON:-}) || python=""
if [ -z "$python" ]; then
    need "Python" "3.11 or newer with venv, a shared and a static library; on Debian: apt-get install python3-venv libpython3-dev"
elif [ -z "$missing" ] && ! sh packaging/interpreter/build.sh "$python" build/interpreter.bin; then
    need "Python" "the static library of $python cannot be linked (above); name another one in BEETLE_BUILD_PYTHON"
fi
[ -z "$missing" ] || exit 1

want="$(cksum <packaging/build-requirements.txt) $("$python" -c 'import sys; print(sys.executable, sys.version)')"
stamp=build/venv/beetle-environment
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
    echo "making the build's environment in build/venv with $("$python" --version) ..." >&2
    rm -rf build/venv
    "$python" -m venv build/venv
    build/venv/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary :all: --require-hashes \
        -r packaging/build-requirements.txt
    echo "$want" >"$stamp"
fi

# A release that cannot be signed is not built.
[ -z "${BEETLE_RELEASE_KEY:-}" ] || build/venv/bin/python packaging/sign.py --key "$BEETLE_RELEASE_KEY"

# The same commit gives the same bytes: no time, no order of a hash table, nothing of this user's settings.
export SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 TZ=UTC LC_ALL=C.UTF-8
export PYINSTALLER_CONFIG_DIR="$PWD/build/pyinstaller"
unset PYTHONPATH PYTHONOPTIMIZE

freeze() {
    log="build/$1.log"
    shift
    if ! build/venv/bin/pyinstaller --noconfirm --clean --distpath "$out" --workpath "build/frozen" "$@" >"$log" 2>&1; then
        tail -40 "$log" >&2
        exit 1
    fi
}

rm -rf "$out" build/frozen
mkdir -p "$out"
sources=$(build/venv/bin/python packaging/tree.py --sources)
# The tree's modules are stored plain: zstd packs the whole better than zlib its parts, and a start inflates nothing.
PYINSTALLER_ZLIB_COMPRESSION_LEVEL=0 freeze tree build.spec -- $kind
sh packaging/starter/build.sh build/starter.bin
build/venv/bin/python packaging/complete.py "$out/tree" build/starter.bin build/interpreter.bin
build/venv/bin/python packaging/notices.py "$out/tree"
name=$(build/venv/bin/python packaging/tree.py "$out/tree")
file=$(build/venv/bin/python packaging/tree.py --file $kind)
# A release's: what is signed is the list of the tree's files, which everybody's build of this commit has.
[ -z "${BEETLE_RELEASE_KEY:-}" ] || build/venv/bin/python packaging/sign.py --key "$BEETLE_RELEASE_KEY" "$out/tree/MANIFEST"
sh packaging/launcher/build.sh build/launcher.bin
[ -z "$packs" ] || build/venv/bin/python packaging/onefile.py $draft "$out/tree" build/launcher.bin "$out/$file"
if [ -n "$stock" ]; then
    freeze stock build.spec -- --stock $kind
    mv "$out/beetle-stock" "$out/$file-stock"
fi
# Of which state of the checkout this is: a file changed while the build ran makes it of none.
[ "$sources" = "$(build/venv/bin/python packaging/tree.py --sources)" ] && echo "$sources" >"$out/SOURCES"
[ -n "$packs" ] || exit 0
(cd "$out" && sha256sum "$file" tree/MANIFEST >SHA256SUMS)
echo "$out/$file: $name, $(wc -c <"$out/$file") bytes${draft:+ as a draft}" >&2
