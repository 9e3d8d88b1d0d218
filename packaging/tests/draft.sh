#!/bin/sh
# What a draft is held to beside the tests: its size, and the one file in bare roots.
set -eu
cd "$(dirname "$0")/../.."
build/venv/bin/python packaging/weight.py --check --draft dist/tree
if [ "$(id -u)" = 0 ] && command -v tmux >/dev/null && unshare --mount true 2>/dev/null; then
    # Where they mount a file system of their own. The tests have the other folder for themselves.
    TMPDIR="$PWD/build" sh packaging/tests/bare_root.sh
else
    echo "the bare roots are not tested here: they need root, tmux, and mounts of their own"
fi
