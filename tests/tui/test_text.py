"""Text from elsewhere on the screen."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from beetle.transports.cli import text as command_line
from tui.text import count, fold, neutral, padded, size


def test_what_drives_a_terminal_is_what_the_command_line_says() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        assert neutral(character) == command_line.neutral(character), hex(code)


@given(st.text().map(neutral), st.integers(1, 40))
def test_folding_loses_nothing_but_blanks_and_fits(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= max(width, 2) for line in lines)


@given(st.text().map(neutral), st.integers(0, 40))
def test_padding_gives_exactly_the_width(text: str, width: int) -> None:
    assert cell_len(padded(text, width)) == width


@given(st.integers(0, 10**16))
def test_sizes_and_counts_read_as_on_the_command_line(number: int) -> None:
    assert size(number) == command_line.size(number)
    assert count(number, "turn") == command_line.count(number, "turn")
    assert count(number, "entry", "entries") == command_line.count(number, "entry", "entries")
