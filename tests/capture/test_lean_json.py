"""A hook's JSON reads and writes what the library's does, and refuses what that refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.lean_json import dumps, loads

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from(["", " ", "\r\n\t"]))
def test_it_reads_and_writes_as_the_library_does(value: object, ascii_only: bool, space: str) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert dumps(value, ensure_ascii=ascii_only) == text
    assert loads(f"{space}{text}{space}".encode()) == value
    assert loads(b"\xef\xbb\xbf" + text.encode()) == value
    assert loads(text.encode("utf-16")) == value


@given(
    st.one_of(
        st.binary(max_size=40), st.text(alphabet='{}[],:"0123456789.eE-+truefalsn \\u', max_size=30).map(str.encode)
    )
)
def test_it_refuses_what_the_library_refuses(data: bytes) -> None:
    try:
        expected = json.loads(data)
    except ValueError:
        with pytest.raises(ValueError):
            loads(data)
    else:
        assert repr(loads(data)) == repr(expected)


def test_what_json_does_not_have_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        dumps({"at": object()}, ensure_ascii=True)


def test_a_hook_loads_nothing_that_costs_more_than_the_interpreter_itself() -> None:
    program = "import sys; bare = set(sys.modules); import beetle.hook; print(*sorted(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "beetle.hook" in loaded
    assert not loaded & {"json", "re", "enum", "socket", "typing", "collections", "contextlib", "datetime", "msgspec"}


@pytest.mark.parametrize("text", ["{", '{"a" 1}', '"\\x"', "[1,"])
def test_what_is_no_json_is_told_where_the_standard_librarys_module_is_not_loaded(text: str) -> None:
    """CPython's scanner raises by a class of that module, and returns nothing at all without it."""
    program = (
        "import sys; from beetle.lean_json import loads; assert 'json' not in sys.modules\n"
        "try: loads(sys.argv[1].encode())\nexcept ValueError: sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", program, text], check=False).returncode == 3
