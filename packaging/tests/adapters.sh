#!/bin/sh
# Tests each adapter of beetle/adapters with the real framework, in an environment of its own that holds that extra alone.
#   sh packaging/tests/adapters.sh [EXTRA...]      all of them when none is named
# $BEETLE_ADAPTER_ENVIRONMENTS is where the environments are made and kept; build/adapters by default.
set -eu
cd "$(dirname "$0")/../.."
. packaging/temporary.sh
environments=${BEETLE_ADAPTER_ENVIRONMENTS:-build/adapters}
make_temporary 256
[ $# -gt 0 ] || set -- langchain llamaindex openai-agents pydantic-ai smolagents
for extra in "$@"; do
    python=$environments/$extra/bin/python
    module=$(echo "$extra" | tr - _)
    # What the framework publishes to test classes like ours with.
    suite="" mode=""
    [ "$extra" != langchain ] || suite="langchain-tests" mode="-o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function"
    [ -x "$python" ] || python3 -m venv "$environments/$extra"
    "$python" -m pip install --quiet --disable-pip-version-check -e ".[$extra]" "pytest>=8" hypothesis $suite
    echo "$extra:"
    # The frameworks' own warnings are not ours to mend.
    BEETLE_REQUIRE_FRAMEWORK=1 "$python" -m pytest -q -o filterwarnings=default $mode -p no:cacheprovider \
        --basetemp="$TMPDIR/adapters" "tests/adapters/test_$module.py"
done
