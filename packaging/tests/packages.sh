#!/bin/sh
# The packages of dist/release/ where they are used: the Debian package is installed, upgraded over, removed and purged in a
# root of this release; the wheel and the sdist are installed into environments; checksums and signatures are checked with
# tools that are not ours. Needs root, debootstrap, unshare and openssl, and the package index. Takes about two minutes.
set -eu
cd "$(dirname "$0")/../.."
for tool in debootstrap unshare openssl dpkg-deb; do
    command -v $tool >/dev/null 2>&1 || { echo "packages.sh needs $tool; on Debian: apt-get install $tool" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "packages.sh needs root: it makes a root to change into" >&2; exit 2; }
[ -s dist/release/SHA256SUMS ] || { echo "there are no packages: sh packaging/packages.sh" >&2; exit 2; }
if [ -z "${PACKAGES_INSIDE:-}" ]; then
    PACKAGES_INSIDE=yes exec unshare --mount --pid --fork --kill-child sh packaging/tests/packages.sh "$@"
fi
fail() {
    echo "FAILED: $1" >&2
    exit 1
}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-packages.XXXXXX")
mount -t tmpfs -o size=2g,mode=755 tmpfs "$work"
trap 'cd /; umount -R --lazy "$work"; rmdir "$work"' EXIT INT TERM

echo "--- checksums and signature"
(cd dist/release && sha256sum --quiet --check SHA256SUMS)
for each in dist/release/*; do
    case $each in
    */SHA256SUMS | */SHA256SUMS.sig) ;;
    *) grep -q "  ${each##*/}\$" dist/release/SHA256SUMS || fail "$each is not in SHA256SUMS" ;;
    esac
done
if [ -s dist/release/SHA256SUMS.sig ]; then
    public=${BEETLE_RELEASE_KEY:?}.pub
    openssl pkeyutl -verify -pubin -inkey "$public" -rawin -in dist/release/SHA256SUMS -sigfile dist/release/SHA256SUMS.sig
    cp dist/release/SHA256SUMS "$work/changed"
    echo >>"$work/changed"
    ! openssl pkeyutl -verify -pubin -inkey "$public" -rawin -in "$work/changed" -sigfile dist/release/SHA256SUMS.sig ||
        fail "a changed list passes"
fi

echo "--- the Debian package"
root=$work/root
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase "$release" "$root" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail "debootstrap"; }
mount -t proc proc "$root/proc"
in_root() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
deb=$(ls dist/release/*.deb)
cp "$deb" "$root/root/beetle.deb"
in_root dpkg -i /root/beetle.deb
in_root getent passwd beetle
in_root dpkg --verify beetle-memory
in_root dpkg-query -W -f '${Conffiles}\n' beetle-memory | grep -q ' /etc/beetle/beetle.toml ' || fail "the configuration is no conffile"
in_root beetle --version
if [ -s dist/release/SHA256SUMS.sig ]; then
    cp "$BEETLE_RELEASE_KEY.pub" "$root/root/release.pub"
    in_root beetle doctor --release-key /root/release.pub | tee "$work/said"
    grep -q "signed with the release key" "$work/said" || fail "doctor does not find the signature"
else
    in_root beetle doctor | tee "$work/said"
fi
grep -q "files as they were built" "$work/said" || fail "doctor does not check the tree"
in_root beetle --config /etc/beetle/beetle.toml start
in_root beetle remember "Ana drinks tea without sugar." --said "I drink tea without sugar." --speaker Ana
in_root beetle recall "does Ana take sugar" --limit 1 | grep -q tea || fail "what was written is not recalled"
in_root beetle stop
printf '\n[principals.hall]\nuid = 1234\n' >>"$root/etc/beetle/beetle.toml"
in_root dpkg -i /root/beetle.deb
grep -q principals.hall "$root/etc/beetle/beetle.toml" || fail "an upgrade lost the configuration"
echo x >>"$root/opt/beetle/current/_internal/LICENSE"
code=0
in_root beetle doctor >"$work/said" || code=$?
[ $code = 9 ] || fail "doctor ended with $code for a changed file"
grep -q "_internal/LICENSE has" "$work/said" || fail "doctor does not name the changed file"
in_root dpkg -r beetle-memory
[ ! -e "$root/usr/bin/beetle" ] && [ ! -e "$root/opt/beetle/current" ] || fail "something of the program is left"
[ -e "$root/etc/beetle/beetle.toml" ] || fail "removed, not purged, and the configuration is gone"
in_root dpkg -P beetle-memory
[ ! -e "$root/etc/beetle/beetle.toml" ] || fail "purged, and the configuration is there"
[ -s "$root/var/lib/beetle/beetle.db" ] || fail "purge deleted the memory"
in_root dpkg -i /root/beetle.deb >/dev/null
touch "$root/var/lib/beetle/remove-on-purge"
in_root dpkg -P beetle-memory
[ ! -e "$root/var/lib/beetle" ] || fail "purge was told to delete the memory, and kept it"

echo "--- wheel and sdist"
for package in dist/release/*.whl dist/release/*.tar.gz; do
    rm -rf "$work/env"
    python3 -m venv "$work/env"
    "$work/env/bin/pip" install --quiet --disable-pip-version-check "$package"
    "$work/env/bin/beetle" --store "$work/b.db" --profile compact remember "Ana drinks tea." --said "I drink tea." --speaker Ana
    "$work/env/bin/beetle" --store "$work/b.db" --profile compact recall tea --limit 1 | grep -q tea || fail "$package"
    rm -f "$work"/b.db*
done
echo "All packages do."
