#!/bin/sh
# Makes a release, signed with the key that $BEETLE_RELEASE_KEY names, in dist/release/ (docs/release.md), and checks it
# beyond .ci/run: the build with its fallback, the same bytes from a second build, the packages where they are used, the
# tests at full size, the two measurements that have limits, the adapters with the real frameworks, and the README's five
# minutes; the last two need the package index. On an x86-64 machine it is a release for aarch64 too, built and tested by
# emulation. Run it as root on a machine with nothing else to do.
set -eu
cd "$(dirname "$0")/.."
sh packaging/build.sh --stock
build/venv/bin/python packaging/weight.py --check dist/tree
# One that is an aarch64 itself builds its own above.
[ "$(uname -m)" != x86_64 ] || sh packaging/build_aarch64.sh
sh packaging/packages.sh
sh packaging/tests/reproducible.sh
sh packaging/tests/packages.sh
sh packaging/tests/bare_root.sh
sh packaging/tests/device.sh
[ ! -d dist/aarch64 ] || sh packaging/tests/aarch64.sh
"dist/$(sed -n '1s/.*  //p' dist/SHA256SUMS)-stock" --version
# A server's build, by itself: it has what a device's has, and gRPC.
sh packaging/build.sh --gateway
"dist/gateway/$(sed -n '1s/.*  //p' dist/gateway/SHA256SUMS)" doctor --self-test
sh packaging/try.sh
sh packaging/test.sh -m slow
# Each exits with 1 beyond its limits: another's recall and commits while one principal does its worst, on the smallest
# profile and on a server's; the time that an erasure of 50,000 turns takes, and others' writes beside it.
for profile in profile-linux-device-compact-memory profile-server-linux-memory-gateway; do
    # What a device runs.
    .venv/bin/python -m tests.bench.hostile --profile "$profile" --command "$PWD/dist/tree/beetle"
done
for how in delete_raw forget; do
    .venv/bin/python -m tests.bench.forget --how "$how"
done
sh packaging/tests/adapters.sh
python3 packaging/tests/five_minutes.py
