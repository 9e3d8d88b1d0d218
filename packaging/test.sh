#!/bin/sh
# Passes the tests on a fresh machine: makes .venv with what they need, checks style and types, runs the tests.
# Arguments go to pytest, e.g.  sh packaging/test.sh -m slow
set -eu
cd "$(dirname "$0")/.."
. packaging/environment.sh
make_environment dev
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --quiet --check .
.venv/bin/pyright --warnings
exec .venv/bin/python -m pytest -n auto "$@"
