#!/bin/sh
# Makes everything that a release publishes, from dist/ as packaging/build.sh left it, into dist/release/: the one file, the
# Debian package, wheel and sdist, the bill of materials, SHA256SUMS, and with $BEETLE_RELEASE_KEY its signature. What
# packaging/build_aarch64.sh has built of the same sources is a part of it.
#   sh packaging/packages.sh
# It needs dpkg-deb, and the package index once, for build/release-venv. The same commit and key give the same bytes.
set -eu
umask 022
cd "$(dirname "$0")/.."
file=$(sed -n '1s/.*  //p' dist/SHA256SUMS 2>/dev/null) || true
[ -n "$file" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
if [ -n "${BEETLE_RELEASE_KEY:-}" ] && [ ! -s dist/tree/MANIFEST.sig ]; then
    echo "dist/ was built without BEETLE_RELEASE_KEY: build again with it" >&2
    exit 2
fi
if [ -n "${BEETLE_RELEASE_KEY:-}" ] && [ -d dist/aarch64 ] && [ ! -s dist/aarch64/tree/MANIFEST.sig ]; then
    echo "dist/aarch64 was built without BEETLE_RELEASE_KEY: build again with it" >&2
    exit 2
fi
export SOURCE_DATE_EPOCH=315532800 TZ=UTC LC_ALL=C.UTF-8
out=dist/release
rm -rf "$out"
mkdir -p "$out"

want="$(cksum <packaging/release-requirements.txt) $(cksum <build/venv/beetle-environment)"
stamp=build/release-venv/beetle-environment
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
    rm -rf build/release-venv
    build/venv/bin/python -m venv build/release-venv
    build/release-venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        -r packaging/release-requirements.txt
    echo "$want" >"$stamp"
fi

cp "dist/$file" "$out/"
sh packaging/deb.sh "$out" >/dev/null
build/release-venv/bin/python -m hatchling build -t sdist -t wheel -d "$PWD/$out" >/dev/null
build/venv/bin/python packaging/sbom.py dist/tree "$out/$file.cdx.json"
build/release-venv/bin/python packaging/check_sbom.py "$out/$file.cdx.json"
cp dist/tree/MANIFEST "$out/$file.MANIFEST"
if [ ! -e dist/aarch64 ]; then
    echo "without aarch64: sh packaging/build_aarch64.sh builds it" >&2
elif cmp -s dist/SOURCES dist/aarch64/SOURCES; then
    cp dist/aarch64/release/* "$out/"
else
    echo "dist/aarch64 is a build of other sources: sh packaging/build_aarch64.sh" >&2
    exit 2
fi
(cd "$out" && LC_ALL=C sha256sum -- *) >"$out.sums"
mv "$out.sums" "$out/SHA256SUMS"
if [ -n "${BEETLE_RELEASE_KEY:-}" ]; then
    build/venv/bin/python packaging/sign.py --key "$BEETLE_RELEASE_KEY" "$out/SHA256SUMS"
else
    echo "unsigned: BEETLE_RELEASE_KEY names no key" >&2
fi
build/venv/bin/python packaging/weight.py --artefacts "$out"
