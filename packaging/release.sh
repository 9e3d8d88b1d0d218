#!/bin/sh
# What a release is checked by beside .ci/run: the build with its fallback, the same bytes from a second build, and the
# tests at full size, the adapters with the real frameworks, and the README's five minutes; the last two need the package index.
set -eu
cd "$(dirname "$0")/.."
sh packaging/build.sh --stock
sh packaging/tests/reproducible.sh
"dist/$(sed -n '1s/.*  //p' dist/SHA256SUMS)-stock" --version
# A server's build, by itself: it has what a device's has, and gRPC.
sh packaging/build.sh --gateway
"dist/gateway/$(sed -n '1s/.*  //p' dist/gateway/SHA256SUMS)" doctor --self-test
sh packaging/try.sh
sh packaging/test.sh -m slow
sh packaging/tests/adapters.sh
python3 packaging/tests/five_minutes.py
