#!/bin/sh
# Makes the Debian package of a build: sh packaging/deb.sh OUTPUT_FOLDER [BUILD]   (BUILD: its folder, or dist)
# Its files lie where `beetle install` puts them, by that very command, but for what Debian has places of its own for: the
# unit, the user's description, the link in the path. Needs dpkg-deb. The same tree gives the same bytes.
set -eu
umask 022
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: sh packaging/deb.sh OUTPUT_FOLDER [BUILD]" >&2; exit 2; }
build=$PWD/${2:-dist}
command -v dpkg-deb >/dev/null || { echo "deb.sh needs dpkg-deb; it is Debian's" >&2; exit 2; }
tree=$build/tree
[ -x "$tree/beetle" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
export SOURCE_DATE_EPOCH
version=$(sed -n '1s/^beetle-tree 1 \(.*\)-[0-9a-f]*$/\1/p' "$tree/MANIFEST")
name=$(sed -n '1s/^beetle-tree 1 //p' "$tree/MANIFEST")
machine=$(sed -n '1s/.*-linux-//p' "$build/SHA256SUMS")
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
rm "$root/opt/beetle/.lock"
doc=$root/usr/share/doc/beetle-memory
# Whatever modes the checkout has.
install -m 644 packaging/deb/copyright "$doc/"
gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
gzip -9nc >"$doc/changelog.gz" <<END
beetle-memory ($version) stable; urgency=medium

  * What has changed is told in CHANGELOG.md.gz, beside this file.

 -- Beetle maintainers <maintainers@beetle.invalid>  $(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" -R)
END
mkdir -p "$root/usr/share/man/man1" "$root/usr/share/lintian/overrides"
sed "s/VERSION/$version/" packaging/deb/beetle.1 | gzip -9nc >"$root/usr/share/man/man1/beetle.1.gz"
install -m 644 packaging/deb/lintian-overrides "$root/usr/share/lintian/overrides/beetle-memory"
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
