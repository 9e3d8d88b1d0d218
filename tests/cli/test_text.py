"""Text for people: aligned, as wide as the screen, and harmless."""

from __future__ import annotations

import json

import pytest

from beetle.cli import render
from beetle.cli.text import clip, columns_of, duration, neutral, neutral_json, neutral_lines, size, table, when, wrap
from beetle.contracts.common import Report
from beetle.contracts.fields import Piece

from .conftest import CommandLine

HOSTILE = "red \x1b[31m title \x1b]0;owned\x07 c1 \x9b31m bidi \u202egnp\u2066 back\x08 end\x7f"
DANGEROUS = {"\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x08", "\x7f", "\r"}


def test_escape_sequences_are_shown_and_not_sent() -> None:
    shown = neutral(HOSTILE)
    assert not DANGEROUS & set(shown)
    assert "\\x1b[31m" in shown and "\\u202e" in shown and "\\x9b" in shown


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("plain", "naïve café", "日本語", "עברית", "😀 ok", "a\u200db"):
        assert neutral(text) == text


def test_lines_are_kept_and_carriage_returns_are_not() -> None:
    assert neutral_lines("a\r\nb\rc\td") == ["a", "b\\rc   d"]


def test_json_with_controls_means_the_same_and_drives_nothing() -> None:
    value = {"text": HOSTILE + "é日本"}
    text = render.as_json(value)
    assert json.loads(text) == value
    assert not DANGEROUS & set(text)
    assert neutral_json('{"a":"é"}') == '{"a":"é"}'


def test_stored_escape_sequences_reach_no_terminal_through_any_reading_command(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--speaker", "Bo\u202e", "--text", f"zebra {HOSTILE}")
    beetle.here("memory", "write-procedural", "--name", "z", "--topic", f"zebra {HOSTILE}", "--title", HOSTILE,
                "--summary", HOSTILE, "--content", HOSTILE, "--citations", HOSTILE)  # fmt: skip
    for words in (
        ("memory", "recall", "zebra"), ("memory", "project", "zebra"), ("memory", "inspect", "--query", "zebra"),
        ("transcript", "replay", "c"), ("transcript", "timeline", "c"), ("transcript", "search", "zebra"),
        ("transcript", "conversations"), ("skill", "list"), ("skill", "show", "z"),
        ("call", "memory.recall", '{"query": "zebra"}'), ("--json", "memory", "recall", "zebra"),
    ):  # fmt: skip
        said = beetle.here(*words)
        assert said.code == 0, said.err
        assert not DANGEROUS & set(said.out), words
        assert "zebra" in said.out or "c" in said.out


class Jar(Piece, frozen=True, kw_only=True):
    name: str
    open: bool
    labels: tuple[str, ...] = ()


class Shelf(Report, frozen=True, kw_only=True):
    """No renderer knows of it."""

    total: int
    keeper_name: str | None
    jars: tuple[Jar, ...]
    first: Jar
    empty: tuple[Jar, ...] = ()
    has_more: bool = False
    next_cursor: str | None = None


def test_a_report_without_a_renderer_is_shown_field_by_field() -> None:
    jars = (Jar(name=f"plum {HOSTILE}", open=True, labels=("a", "b")), Jar(name="fig", open=False))
    shelf = Shelf(total=2, keeper_name=None, jars=jars, first=jars[1], has_more=True, next_cursor="c7")
    shown = render.as_text(shelf, None)
    assert not DANGEROUS & set(shown)
    lines = shown.splitlines()
    first = 'first:       {"name":"fig","open":false,"labels":[]}'
    assert lines[:6] == ["total:       2", "keeper name: -", first, "empty:       -", "", "jars:"]
    assert lines[6].split() == ["NAME", "OPEN", "LABELS"]
    assert lines[7].startswith("plum") and lines[7].endswith("yes   a, b")
    assert lines[8].split() == ["fig", "no", "-"] and lines[9] == "More: --cursor c7"
    assert max(map(len, render.as_text(shelf, 40).splitlines()[6:9])) <= 40


def test_columns_count_wide_and_combining_characters() -> None:
    assert columns_of("日本") == 4
    assert columns_of("e\u0301") == 1
    assert clip("日本語です", 5) == "日本…"
    assert clip("short", 5) == "short"
    assert clip("as long as it is", None) == "as long as it is"


def test_a_table_is_aligned_and_as_wide_as_the_screen() -> None:
    text = table([("a", "1", "long words at the end"), ("bcd", "200", "x")], ("NAME", "N", "TEXT"), 24, numbers=(1,))
    assert text.splitlines() == ["NAME    N  TEXT", "a       1  long words a…", "bcd   200  x"]


def test_a_table_may_fold_its_last_column() -> None:
    text = table([("a", "one, two, three, four, five"), ("b", "x")], ("N", "TEXT"), 24, fold=True)
    assert text.splitlines() == ["N  TEXT", "a  one, two, three,", "   four, five", "b  x"]


def test_a_text_is_wrapped_at_words_and_never_wider_than_the_screen() -> None:
    lines = wrap("one two three\n" + "x" * 50, "  ", 24)
    assert lines[0] == "  one two three"
    assert all(len(line) <= 24 for line in lines)
    assert "".join(line.strip() for line in lines[1:]) == "x" * 50
    assert wrap("one two", "  ", None) == ["  one two"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (3600, "1h 0m 0s"), (8130, "2h 15m 30s"), (90_061, "1d 1h 1m 1s")]
)
def test_a_duration_reads_as_a_person_says_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(1, "1 byte"), (999, "999 bytes"), (45_200_000, "45.2 MB"), (999_960, "1.0 MB")]
)
def test_a_size_reads_as_a_person_says_it(amount: int, text: str) -> None:
    assert size(amount) == text


def test_a_time_is_shown_to_the_second() -> None:
    assert when("2026-01-02T03:04:05.678901Z") == "2026-01-02 03:04:05Z"
    assert when(None) == "-"
