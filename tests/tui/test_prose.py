"""Markdown, folded and styled: nothing of what a person wrote is lost or left to drive the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from beetle_tui.prose import MOST_SHOWN, paragraph, plain, prose


def shown(text: str, width: int = 40) -> list[str]:
    return [line.plain.rstrip() for block in prose(text) for line in block.lines(width)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Steps #", ["# Steps"]),
        ("one\ntwo\n\nthree", ["one two", "", "three"]),
        ("one  \ntwo", ["one", "two"]),
        ("- a\n  * b\n10. c", ["• a", "  • b", "10. c"]),
        ("- a\n  goes on\nfurther", ["• a goes on further"]),
        ("> said\n> twice", ["│ said", "│ twice"]),
        ("***\n- - -", ["────────", "────────"]),
        ("```sh\na  b\n# no head\n```\nafter", ["    a  b", "    # no head", "after"]),
        ("~~~\n```\n~~~", ["    ```"]),
        ("```\nnever closed", ["    never closed"]),
        ("    code\n\tmore", ["    code", "    more"]),
        ("| a | b |\n|---|---|", ["    | a | b |", "    |---|---|"]),
        ("**bold** *soft* `code`", ["bold soft `code`"]),
        ("[name](https://x.org/a)", ["name <https://x.org/a>"]),
        ("2 * 3 * 4 and a_b_c", ["2 * 3 * 4 and a_b_c"]),
        ("**never closed", ["**never closed"]),
        ("a\r\nb\x1b[2J", ["a b\\x1b[2J"]),
        ("", [""]),
    ],
)
def test_what_was_written_is_shown_as_it_is_meant(text: str, lines: list[str]) -> None:
    assert shown(text) == lines


def test_weight_and_colour_are_where_the_marks_were() -> None:
    made = paragraph("a **bold** and `code` and *soft*")
    assert made.plain == "a bold and `code` and soft"
    assert [(made.plain[each.start : each.end], each.style) for each in made.spans] == [
        ("bold", "bold"), ("`code`", "$accent"), ("soft", "italic")
    ]  # fmt: skip


@pytest.mark.parametrize("width", [8, 20, 79])
def test_every_line_fits_whatever_stands_in_it(width: int) -> None:
    text = f"{'漢字' * 500}\n\n1. {'x' * 10_000}\n> 👩‍🚀🪲 שלום {'word ' * 300}\n```\n{'y' * 500}\n```\n"
    lines = shown(text, width)
    assert max(cell_len(line) for line in lines) <= width
    assert sum(line.count("x") for line in lines) == 10_000


def test_an_item_goes_on_below_itself() -> None:
    assert shown("12. one two three", 12) == ["12. one two", "    three"]
    assert [line.plain for line in plain("one two three", "label ").lines(12)] == [
        "label one",
        "      two",
        "      three",
    ]


def test_of_a_very_long_text_the_rest_is_counted() -> None:
    lines = shown("x" * (MOST_SHOWN + 1234), 80)
    assert lines[-1] == "… 1,234 characters more are not shown here."


def test_marks_that_never_end_cost_no_more_than_the_text() -> None:
    assert len(shown("*a " * 30_000, 80)) > 100
    assert len(shown("[a" * 30_000, 80)) > 100
