"""Text from elsewhere on the screen."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from beetle.cli import text as command_line
from beetle_tui.text import JOINS, count, fold, harmless, neutral, size


def test_what_drives_a_terminal_is_what_the_command_line_says() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        assert harmless(character) == command_line.neutral(character), hex(code)
        assert neutral(character) == ("" if JOINS.match(character) else harmless(character)), hex(code)


def test_what_terminals_measure_otherwise_is_shown_in_its_parts() -> None:
    for text in (
        "👩\u200d👩\u200d👧\u200d👦",
        "👍\U0001f3fd",
        "❤\ufe0f",
        "🏳\ufe0f\u200d🌈",
        "1\ufe0f\u20e3",
        "क\u094d\u200dष",
    ):
        assert cell_len(neutral(text)) == sum(map(cell_len, neutral(text))), text
        assert harmless(text) == text


@given(st.text().map(neutral), st.integers(1, 40))
def test_folding_loses_nothing_but_blanks_and_fits(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= max(width, 2) for line in lines)


@given(st.integers(0, 10**16))
def test_sizes_and_counts_read_as_on_the_command_line(number: int) -> None:
    assert size(number) == command_line.size(number)
    assert count(number, "turn") == command_line.count(number, "turn")
    assert count(number, "entry", "entries") == command_line.count(number, "entry", "entries")
