#!/bin/sh
# What a release is checked by beside .ci/run: the build with its fallback, the same bytes from a second build, and the
# tests at full size.
set -eu
cd "$(dirname "$0")/.."
sh packaging/build.sh --stock
sh packaging/tests/reproducible.sh
"dist/$(sed -n '1s/.*  //p' dist/SHA256SUMS)-stock" --version
sh packaging/test.sh -m slow
