#!/bin/sh
# Makes the Debian package of dist/tree: sh packaging/deb.sh OUTPUT_FOLDER
# Its files lie where `beetle install` puts them, by that very command, but for what Debian has places of its own for: the
# unit, the user's description, the link in the path. Needs dpkg-deb. The same tree gives the same bytes.
set -eu
umask 022
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo "usage: sh packaging/deb.sh OUTPUT_FOLDER" >&2; exit 2; }
command -v dpkg-deb >/dev/null || { echo "deb.sh needs dpkg-deb; it is Debian's" >&2; exit 2; }
tree=$PWD/dist/tree
[ -x "$tree/beetle" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
export SOURCE_DATE_EPOCH
version=$(sed -n '1s/^beetle-tree 1 \(.*\)-[0-9a-f]*$/\1/p' "$tree/MANIFEST")
name=$(sed -n '1s/^beetle-tree 1 //p' "$tree/MANIFEST")
machine=$(sed -n '1s/.*-linux-//p' dist/SHA256SUMS)
case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) echo "Debian has no name here for $machine" >&2 && exit 2 ;;
esac

work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
root=$work/root
env -i HOME="$work" PATH=/usr/bin:/bin "$tree/beetle" install --root "$root" --bin /usr/bin --profile auto >"$work/said" ||
    { cat "$work/said" >&2; exit 1; }
mkdir -p "$root/usr/lib/systemd/system" "$root/usr/lib/sysusers.d" "$root/usr/share/doc/beetle-memory" "$root/DEBIAN"
mv "$root/etc/systemd/system/beetle.service" "$root/usr/lib/systemd/system/"
mv "$root/etc/sysusers.d/beetle.conf" "$root/usr/lib/sysusers.d/beetle-memory.conf"
rmdir "$root/etc/systemd/system" "$root/etc/systemd" "$root/etc/sysusers.d"
cp packaging/deb/copyright "$root/usr/share/doc/beetle-memory/"
gzip -9nc CHANGELOG.md >"$root/usr/share/doc/beetle-memory/changelog.gz"
for each in postinst prerm postrm; do
    cp "packaging/deb/$each" "$root/DEBIAN/"
    chmod 755 "$root/DEBIAN/$each"
done
echo /etc/beetle/beetle.toml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: beetle-memory
Version: $version
Architecture: $architecture
Maintainer: Beetle maintainers <maintainers@beetle.invalid>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
Section: database
Priority: optional
Description: governed long-term memory for agents on a device
 One daemon owns one SQLite store; every agent on the machine talks to it over
 a Unix socket, MCP or the command line. The package holds its own Python,
 SQLite, C library and litestream, and depends on nothing.
 .
 The tree is $name.
END
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$1"
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$1/beetle-memory_${version}_$architecture.deb" >/dev/null
echo "$1/beetle-memory_${version}_$architecture.deb"
