#!/bin/sh
# Builds the commit and its packages again, in a clone at another place, and compares them with dist/: the same bytes, or
# which differ.
set -eu
cd "$(dirname "$0")/../.."
[ -f dist/SHA256SUMS ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-again.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
git clone --quiet . "$work/another place"
sh "$work/another place/packaging/build.sh"
[ ! -d dist/release ] || sh "$work/another place/packaging/packages.sh"
again="$work/another place/dist"
if ! cmp -s dist/SOURCES "$again/SOURCES"; then
    echo "dist/ is not a build of the last commit: commit, and build again" >&2
    exit 2
fi
file=$(sed -n '1s/.*  //p' dist/SHA256SUMS)
if cmp -s "dist/$file" "$again/$file"; then
    echo "The second build has the same bytes: $(cut -d' ' -f1 dist/SHA256SUMS | head -1)"
    [ ! -d dist/release ] || diff dist/release/SHA256SUMS "$again/release/SHA256SUMS" >&2 || exit 1
    exit 0
fi
echo "The second build differs:" >&2
diff dist/tree/MANIFEST "$again/tree/MANIFEST" >&2 || true
cmp -l "dist/$file" "$again/$file" | head -5 >&2
exit 1
