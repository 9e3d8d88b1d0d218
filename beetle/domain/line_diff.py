"""What differs between two texts, line by line, in the unified format. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Final

MOST_PAIRS: Final = 1_000_000
"""Pairs of lines, one of each text, among which the changes are looked for: beyond that difflib takes minutes."""
CONTEXT: Final = 3


def line_diff(before: str, after: str, old: str, new: str) -> str:
    """The unified diff of two texts, which are called `old` and `new`; empty where no line differs.

    Of long texts all between the first and the last line that differ is one change.
    """
    one, other = _split(before), _split(after)
    if len(one) * len(other) <= MOST_PAIRS:
        return "\n".join(unified_diff(one, other, old, new, lineterm=""))
    return "\n".join(_as_one_change(one, other, old, new))


def _split(text: str) -> list[str]:
    """The lines; of a line's ends CR is left out too, and what else Unicode has for one is of the text."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def _as_one_change(one: Sequence[str], other: Sequence[str], old: str, new: str) -> Iterator[str]:
    shortest = min(len(one), len(other))
    begin = next((place for place in range(shortest) if one[place] != other[place]), shortest)
    rest = shortest - begin
    end = next((place for place in range(rest) if one[-1 - place] != other[-1 - place]), rest)
    if begin + end == len(one) == len(other):
        return
    first, behind = max(0, begin - CONTEXT), min(CONTEXT, end)
    yield f"--- {old}"
    yield f"+++ {new}"
    yield f"@@ -{_lines(first, len(one) - end + behind)} +{_lines(first, len(other) - end + behind)} @@"
    yield from (f" {line}" for line in one[first:begin])
    yield from (f"-{line}" for line in one[begin : len(one) - end])
    yield from (f"+{line}" for line in other[begin : len(other) - end])
    yield from (f" {line}" for line in one[len(one) - end : len(one) - end + behind])


def _lines(first: int, behind: int) -> str:
    """The first line of a hunk, counted from 1, and how many it has; of none the line before."""
    return f"{first + 1 if behind > first else first},{behind - first}"
