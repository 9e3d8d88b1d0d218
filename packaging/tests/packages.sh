#!/bin/sh
# The packages of dist/release/ where they are used: the Debian package is checked by lintian, installed, upgraded over, gone
# back from, removed and purged in a root of Debian, under a real systemd where one can be booted; the wheel and the sdist are
# installed into environments; checksums and signatures are checked with tools that are not ours.
#   sh packaging/tests/packages.sh [SYSTEM]     SYSTEM is a root with systemd, to be copied; without it one is made
# Needs root, debootstrap, unshare and openssl, and the package index. Takes some minutes.
set -eu
cd "$(dirname "$0")/../.."
for tool in debootstrap unshare openssl dpkg-deb; do
    command -v $tool >/dev/null 2>&1 || { echo "packages.sh needs $tool; on Debian: apt-get install $tool" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "packages.sh needs root: it makes a root to change into" >&2; exit 2; }
[ -s dist/release/SHA256SUMS ] || { echo "there are no packages: sh packaging/packages.sh" >&2; exit 2; }
if [ -z "${PACKAGES_INSIDE:-}" ]; then
    PACKAGES_INSIDE=yes exec unshare --mount --pid --fork --kill-child --mount-proc sh packaging/tests/packages.sh "$@"
fi
fail() {
    echo "FAILED: $1" >&2
    exit 1
}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-packages.XXXXXX")
mount -t tmpfs -o size=2g,mode=755 tmpfs "$work"
. packaging/tests/booted.sh
trap 'stop_system; cd /; umount -R --lazy "$work"; rmdir "$work"' EXIT INT TERM

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
if [ -n "${1:-}" ]; then
    cp -a "$1" "$root"
else
    make_system "$root"
fi
deb=$(ls dist/release/*_"$(dpkg --print-architecture)".deb)
cp "$deb" "$root/root/beetle.deb"
# The same as an earlier version: what is upgraded from, and what somebody goes back to.
dpkg-deb -R "$deb" "$work/earlier"
sed -i 's/^Version: .*/Version: 0.0.9/' "$work/earlier/DEBIAN/control"
dpkg-deb --root-owner-group -Znone -b "$work/earlier" "$root/root/earlier.deb" >/dev/null
rm -rf "$work/earlier"
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning --allow-root "$deb" || fail "lintian"
else
    echo "lintian is not here"
fi
if boot_system "$root"; then
    in_root() {
        inside "$@"
    }
    runs() {
        wait_until is ActiveState active || { inside journalctl -u beetle --no-pager -n 30 >&2 && fail "the service does not run"; }
    }
    stops() {
        inside systemctl stop beetle
    }
else
    echo "without systemd: $why"
    mount -t proc proc "$root/proc"
    in_root() {
        chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
    }
    runs() {
        in_root beetle --config /etc/beetle/beetle.toml start
    }
    stops() {
        in_root beetle stop
    }
fi
in_root dpkg -i /root/earlier.deb
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
runs
in_root beetle remember "Ana drinks tea without sugar." --said "I drink tea without sugar." --speaker Ana
printf '\n[principals.hall]\nuid = 1234\ncapabilities = ["recall"]\n' >>"$root/etc/beetle/beetle.toml"

echo "--- an upgrade"
in_root dpkg -i /root/beetle.deb
[ -n "$leader" ] || stops
runs
in_root beetle recall "does Ana take sugar" --limit 1 | grep -q tea || fail "what was written before the upgrade is not recalled"
grep -q principals.hall "$root/etc/beetle/beetle.toml" || fail "an upgrade lost the configuration"

echo "--- a store of an older version, and one of a newer"
stops
store=$root/var/lib/beetle/beetle.db
mv "$store" "$work/own.db"
rm -f "$store"-wal "$store"-shm
cp tests/data/schema_0004.db "$store"
chown --reference="$root/var/lib/beetle" "$store"
chmod 600 "$store"
in_root dpkg -i /root/beetle.deb
runs
in_root beetle verify
kept=$(ls "$store".before-m-*)
stops
python3 - "$store" <<'SQL'
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
assert connection.execute("SELECT max(number) FROM schema_migration").fetchone()[0] > 4
connection.execute("INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')")
connection.commit()
SQL
in_root dpkg -i /root/earlier.deb
# Which the service manager starts again and again.
[ -z "$leader" ] || inside systemctl stop beetle
code=0
in_root runuser -u beetle -- beetle --store /var/lib/beetle/beetle.db --socket /tmp/none.sock serve >"$work/said" 2>&1 || code=$?
cat "$work/said"
[ "$code" = 9 ] && grep -q schema_mismatch "$work/said" || fail "an earlier version took the newer store: exit code $code"
way_back=$(sed -n 's/.*\(cd .* && mv .*before-m-[0-9]*  *[^ ]*\).*/\1/p' "$work/said" | head -1)
[ -n "$way_back" ] || fail "the refusal names no way back"
echo "$ $way_back"
in_root sh -c "$way_back"
[ ! -e "$kept" ] || fail "the copy was not put in the store's place"
[ -z "$leader" ] || inside systemctl reset-failed beetle
[ -z "$leader" ] || inside systemctl start beetle
runs
in_root beetle verify
stops
rm -f "$store"*
mv "$work/own.db" "$store"
in_root dpkg -i /root/beetle.deb

echo "--- a changed file, removal, purge"
echo x >>"$root/opt/beetle/current/_internal/LICENSE"
code=0
in_root beetle doctor >"$work/said" || code=$?
[ $code = 9 ] || fail "doctor ended with $code for a changed file"
grep -q "_internal/LICENSE has" "$work/said" || fail "doctor does not name the changed file"
in_root dpkg -r beetle-memory
[ -z "$leader" ] || [ "$(property ActiveState)" != active ] || fail "the service outlived the program"
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
