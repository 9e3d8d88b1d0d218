#!/bin/sh
# Builds the commit and its packages again, and compares them with dist/: the same bytes, or which differ. The second build has
# another path, file times, umask, time zone, language, home and temporary folder, and, where namespaces can be made, another
# user and another name of the machine.
set -eu
cd "$(dirname "$0")/../.."
[ -f dist/SHA256SUMS ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-again.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
mkdir "$work/home" "$work/temporary"
(umask 077 && git clone --quiet . "$work/another place")
find "$work/another place" -path '*/.git' -prune -o -exec touch --no-dereference --date='2001-02-03 04:05:06' {} +

as_other=""
# Inside of it this user's files are that user's: the key of a release stays where it is.
if unshare --uts --user --map-user=4711 --map-group=4711 true 2>/dev/null; then
    as_other="unshare --user --map-user=4711 --map-group=4711"
fi
again() {
    name_it=""
    if [ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null; then
        name_it="unshare --uts"
    fi
    (
        umask 077
        export HOME="$work/home" TMPDIR="$work/temporary" TZ=Asia/Kathmandu LANG=tr_TR.UTF-8 LC_ALL=C USER=somebody LOGNAME=somebody
        unset PYTHONHASHSEED SOURCE_DATE_EPOCH
        # shellcheck disable=SC2016
        $name_it sh -c '[ -z "$1" ] || hostname elsewhere; shift; exec "$@"' sh "$name_it" $as_other sh "$@"
    )
}
again "$work/another place/packaging/build.sh"
[ ! -d dist/release ] || again "$work/another place/packaging/packages.sh"
again="$work/another place/dist"
if ! cmp -s dist/SOURCES "$again/SOURCES"; then
    echo "dist/ is not a build of the last commit: commit, and build again" >&2
    exit 2
fi
file=$(sed -n '1s/.*  //p' dist/SHA256SUMS)
if ! cmp -s "dist/$file" "$again/$file"; then
    echo "The second build differs:" >&2
    diff dist/tree/MANIFEST "$again/tree/MANIFEST" >&2 || true
    cmp -l "dist/$file" "$again/$file" | head -5 >&2
    exit 1
fi
# The second build is of this processor alone.
[ ! -d dist/release ] || grep -v -e -linux-aarch64 -e _arm64.deb dist/release/SHA256SUMS | diff - "$again/release/SHA256SUMS" >&2 ||
    { echo "The second build's packages differ." >&2 && exit 1; }
echo "The second build${as_other:+, as another user,} has the same bytes:"
cat "$again/$([ ! -d dist/release ] || echo release/)SHA256SUMS"
