#!/bin/sh
# Passes the tests on a fresh machine: makes .venv with what they need, checks style and types, runs the tests.
# With --build first, it builds a draft meanwhile, and the tests of the build have to pass too; --beside SCRIPT after it runs
# a script on the build beside the tests, which has to pass as well.
# Other arguments go to pytest, e.g.  sh packaging/test.sh -m slow
set -eu
cd "$(dirname "$0")/.."
. packaging/environment.sh
. packaging/temporary.sh

build="" script=""
if [ "${1:-}" = --build ]; then
    shift
    if [ "${1:-}" = --beside ]; then
        script=$2
        shift 2
    fi
    mkdir -p build
    sh packaging/build.sh --draft >build/build.log 2>&1 &
    build=$!
    export BEETLE_REQUIRE_BUILD=1
fi
make_environment dev
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --quiet --check .
.venv/bin/pyright --warnings &
types=$!
# The tests start hundreds of processes: without this each would compile every module that it loads, whatever the
# environment says of writing bytecode, and half of a daemon's start is that.
unset PYTHONDONTWRITEBYTECODE
.venv/bin/python -m compileall -q beetle tui
if [ -n "$build" ]; then
    # Compiles the tests once while the build ends, where each worker would do it for itself. What is wrong with them is
    # told by the run.
    .venv/bin/python -m pytest --collect-only -q >/dev/null 2>&1 || :
fi
wait "$types" || exit 1
if [ -n "$build" ]; then
    wait "$build" || { cat build/build.log >&2; exit 1; }
    tail -1 build/build.log
fi
make_temporary 2048
# More workers than cores: a test of the console waits for its terminal most of the time. A file stays with one of them,
# so that what its tests share is made once; not at full size, where one file may take longer than all others.
workers=$(($(getconf _NPROCESSORS_ONLN) * 3 / 2))
dist="loadfile --no-loadscope-reorder"
case " $* " in *" -m "*) dist=worksteal ;; esac
# A short folder: the path of a socket has 107 bytes at most.
if [ -z "$script" ]; then
    .venv/bin/python -m pytest -n "$workers" --dist $dist --basetemp="$TMPDIR/p" "$@"
    exit
fi
sh "$script" >build/beside.log 2>&1 &
beside=$!
failed=0
.venv/bin/python -m pytest -n "$workers" --dist $dist --basetemp="$TMPDIR/p" "$@" || failed=$?
wait "$beside" || { echo "$script failed:" && failed=1; }
cat build/beside.log
exit "$failed"
