"""Splitting a text into chunks: nothing lost, none too long, nothing cut that belongs together, and never slow."""

from __future__ import annotations

import time
from unicodedata import combining

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.domain.chunks.splitting import MAX_TOKENS, MIN_TOKENS, Piece, paragraphs, sentences, split
from beetle.domain.chunks.tokens import count_tokens

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1f5\U0001f1f9"
PARTS = [
    "word", "Sentence one.", " Next one! ", "decided to", "usually", "e.g. this", "Dr. Smith", "\n", "\n\n", "\r\n",
    "\r", "\r\n\r\n", "   ", "\t", "```", "```py\n", "~~~~\n", "````\n", "| a | b |\n", "|---|\n", "- item\n",
    "1. item\n",
    "  - nested\n", "> quoted\n", "漢字かな。", "e\u0301", FAMILY, FLAG, "\u1100\u1161\u11a8", "각", "क्षि",
    "x" * 30, "?!...",
]  # fmt: skip
texts = st.lists(st.sampled_from(PARTS), max_size=80).map("".join)
limits = st.sampled_from([(1, 1), (2, 5), (5, 12), (10, 40), (100, 800)])


def check(text: str, pieces: list[Piece], most: int) -> None:
    """What holds of every text and every limit."""
    at = 0
    for piece in pieces:
        assert not text[at : piece.start].strip(), "only white space is left out"
        assert piece.content == text[piece.start : piece.end] and piece.content.strip()
        assert piece.tokens == count_tokens(piece.content) <= most
        at = piece.end
    assert not text[at:].strip()


@settings(max_examples=250, derandomize=True, deadline=None)
@given(texts, limits)
def test_nothing_is_lost_and_no_chunk_is_over_the_limit(text: str, limit: tuple[int, int]) -> None:
    check(text, split(text, min_tokens=limit[0], max_tokens=limit[1]), limit[1])


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None)
@given(st.one_of(texts, st.text(max_size=2_000)), limits)
def test_nothing_is_lost_at_full_size(text: str, limit: tuple[int, int]) -> None:
    check(text, split(text, min_tokens=limit[0], max_tokens=limit[1]), limit[1])


@pytest.mark.parametrize(
    "cluster", ["e\u0301", FAMILY, FLAG, "\u1100\u1161\u11a8", "क्षि", "\U0001f44d\U0001f3fd", "\r\n", "각"]
)
@pytest.mark.parametrize("lead", ["", "x", "xy", "xyz"])
def test_what_a_reader_sees_as_one_character_is_never_cut(cluster: str, lead: str) -> None:
    text = lead + cluster * 60 + "."
    inside = {len(lead) + place for place in range(60 * len(cluster)) if place % len(cluster)}
    pieces = split(text, min_tokens=3, max_tokens=17)
    check(text, pieces, 17)
    assert not {cut for piece in pieces for cut in (piece.start, piece.end)} & inside


def test_a_cluster_longer_than_a_chunk_keeps_the_limit() -> None:
    text = "e" + "\u0301" * 10_000
    pieces = split(text)
    check(text, pieces, MAX_TOKENS)
    assert len(pieces) > 1 and combining(pieces[1].content[0])


def test_short_paragraphs_of_one_type_are_joined() -> None:
    pieces = split("A.\n\nB.\n\nC.")
    assert [piece.content for piece in pieces] == ["A.\n\nB.\n\nC."]
    by_type = split("Fact: Python is a language.\n\nDecision: We chose to use it.\n\nPreference: I like it.")
    assert [(piece.kind, piece.tokens < MIN_TOKENS) for piece in by_type] == [
        ("fact", True),
        ("decision", True),
        ("preference", True),
    ]


def test_a_short_last_paragraph_joins_the_one_before() -> None:
    long = "Words of a long paragraph. " * 30
    assert len(split(f"{long}\n\nEnd.")) == 1
    assert len(split(f"{long}\n\nWe decided it.")) == 2


def test_long_prose_is_cut_between_sentences_within_the_bounds() -> None:
    text = " ".join(f"This is sentence number {each}, said by Dr. Smith." for each in range(400))
    pieces = split(text)
    assert len(pieces) > 2
    assert all(MIN_TOKENS <= piece.tokens <= MAX_TOKENS for piece in pieces)
    assert all(piece.content.startswith("This is sentence") and piece.content.endswith("Smith.") for piece in pieces)


@pytest.mark.parametrize("tokens", [801, 850, 899, 900, 1601, 1699])
def test_what_is_a_little_too_long_leaves_no_splinter(tokens: int) -> None:
    pieces = split("word " * (tokens - 1) + "word")
    assert sum(piece.tokens for piece in pieces) == tokens
    assert all(MIN_TOKENS <= piece.tokens <= MAX_TOKENS for piece in pieces)


def test_a_fence_that_fits_stays_whole_with_its_blank_lines_and_indentation() -> None:
    code = "```python\ndef f():\n\n    # a list\n\n" + "    return  1\n\n" * 60 + "```"
    prose = "Some words before the code. " * 40
    text = f"{prose}\n\n{code}\n{prose}"
    pieces = split(text)
    check(text, pieces, MAX_TOKENS)
    assert sum(code in piece.content for piece in pieces) == 1


@pytest.mark.parametrize(
    "code",
    [
        "````\n```\ninner\n\n```\n\nouter\n````",
        "~~~\n```\n\nnot a fence\n~~~",
        "```\r\nwindows\r\n\r\nlines\r\n```",
        "  - item\n    ```\n    in a list\n\n    ```",
        "> ```\n> quoted\n>\n> ```",
        "```\nnever closed\n\nto the end",
    ],
)
def test_a_fence_ends_where_it_ends(code: str) -> None:
    assert paragraphs(f"Before.\n\n{code}") == ["Before.", code.strip()]


def test_code_too_long_for_a_chunk_is_cut_between_lines() -> None:
    lines = [f"    call_{each}(first, second)" for each in range(300)]
    text = "\n".join(["```", *lines, "```"])
    pieces = split(text)
    check(text, pieces, MAX_TOKENS)
    assert [line for piece in pieces for line in piece.content.split("\n")] == text.split("\n")


@pytest.mark.parametrize(
    "shape", ["| row {} | of a table | with cells |", "- item {} of a list\n  which goes on below"]
)
def test_tables_and_lists_are_cut_between_rows_and_items(shape: str) -> None:
    small = "\n".join(shape.format(each) for each in range(20))
    assert [piece.content for piece in split(f"Before.\n\n{small}\n\nBehind.")] == [f"Before.\n\n{small}\n\nBehind."]
    rows = [shape.format(each) for each in range(400)]
    pieces = split("\n".join(rows))
    assert len(pieces) > 2
    assert all(piece.content.startswith(shape[:2]) for piece in pieces)
    assert "\n".join(piece.content for piece in pieces) == "\n".join(rows)


def test_line_ends_of_every_system_part_paragraphs() -> None:
    for end in ("\n", "\r\n", "\r"):
        assert paragraphs(f"One{end}still one{end}{end}Two{end} {end}{end}Three") == [
            f"One{end}still one",
            "Two",
            "Three",
        ]


def test_sentences() -> None:
    text = (
        'First, e.g. this one. "Second!" (Third?) J. Smith, of the U.S. army. v1.2 is out. 你好。再见。Oh?! And so on.'
    )
    assert sentences(text) == [
        "First, e.g. this one.",
        '"Second!"',
        "(Third?)",
        "J. Smith, of the U.S. army. v1.2 is out.",
        "你好。",
        "再见。",
        "Oh?!",
        "And so on.",
    ]


def test_limits_of_the_callers_own() -> None:
    for least, most in ((1, 1), (50, 10), (1, 3)):
        pieces = split("one two three four. five", min_tokens=least, max_tokens=most)
        check("one two three four. five", pieces, most)
    assert split("") == split(" \r\n\t\n") == []


HOSTILE = {
    "prose": "The pump usually fails at night. It is a problem, e.g. in Porto!  \n\n",
    "one long line": "a",
    "one long line of words": "word ",
    "newlines": "\n",
    "blank lines": "a\n\n",
    "indented blank lines": "\n" + " " * 50,
    "spaces": " ",
    "fences": "```\n",
    "nested fences": "````\n```\n~~~\n",
    "fences that never close": "```x`\n~~~~~~~~~ \n\n",
    "stops": ".",
    "stops and spaces": ". ",
    "exclamations": "?!\"')]",
    "table": "|" * 20 + "\n",
    "list": "- a\n",
    "flags": "\U0001f1f5",
    "marks": "\u0301",
    "joiners": "\u200d",
    "cues": "works there is \t",
    "hangul": "\u1100",
    "quotes": ">" * 30 + "\n",
    "ideographs": "漢",
}


def sized(name: str, size: int) -> str:
    pattern = HOSTILE[name]
    return (pattern * (size // len(pattern.encode()) + 1)).encode()[:size].decode(errors="ignore")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_cut_as_any_other(name: str) -> None:
    """Of a size at which work that grows with the square of the text would take the folder's whole budget."""
    text = sized(name, 60_000)
    check(text, split(text), MAX_TOKENS)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_takes_well_under_a_second(name: str) -> None:
    text = sized(name, 2**20)
    begun = time.process_time()
    pieces = split(text)
    # What is made to be slow, such as 350,000 paragraphs of one letter, may take some times as long as prose.
    assert time.process_time() - begun < (1 if name == "prose" else 4)
    check(text, pieces, MAX_TOKENS)
