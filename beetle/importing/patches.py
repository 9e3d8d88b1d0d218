"""Unified diffs, applied exactly. Pure."""

from __future__ import annotations

import re
from typing import Final

HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
NO_NEWLINE: Final = "\\"
HEADERS: Final = ("--- ", "+++ ")


class BadPatch(ValueError):
    """A patch that is none, or is not of this text."""


def patched(before: str, patch: str, most: int) -> str:
    """The text after the changes of a patch.

    Args:
        most: characters that the text may have.

    Raises:
        BadPatch: the patch is none, does not fit this text, or makes a longer one.
    """
    old, lines = _lines(before), _lines(patch)
    made: list[str] = []
    at, row, size = 0, 0, 0
    while row < len(lines) and lines[row].startswith(HEADERS):
        row += 1
    while row < len(lines):
        head = HUNK.match(lines[row])
        if head is None:
            raise BadPatch(f"line {row + 1} of the patch begins no hunk")
        taken = 1 if head[2] is None else int(head[2])
        start = int(head[1]) - 1 if taken else int(head[1])
        if not at <= start <= len(old):
            raise BadPatch(f"line {row + 1} of the patch is about a line that is not there")
        made += old[at:start]
        hunk_old, hunk_new, row = _hunk(lines, row + 1, taken, 1 if head[3] is None else int(head[3]))
        at = start + taken
        if old[start:at] != hunk_old:
            raise BadPatch(f"the hunk that ends before line {row + 1} of the patch is of another text")
        made += hunk_new
        size += sum(map(len, hunk_new))
        if size > most:
            break
    made += old[at:]
    if sum(map(len, made)) > most:
        raise BadPatch(f"it makes a text of more than {most:,} characters")
    return "".join(made)


def _hunk(lines: list[str], row: int, old: int, new: int) -> tuple[list[str], list[str], int]:
    """The lines before and after, and the row behind them."""
    before: list[str] = []
    after: list[str] = []
    while len(before) < old or len(after) < new or (row < len(lines) and lines[row].startswith(NO_NEWLINE)):
        if row == len(lines):
            raise BadPatch("the patch ends within a hunk")
        # Of an empty line that both texts have, some write the blank and some leave it out.
        mark, line = (" ", lines[row]) if lines[row] == "\n" else (lines[row][0], lines[row][1:])
        if mark == NO_NEWLINE:
            _without_newline(lines[row - 1][0], before, after)
        elif mark not in " +-":
            raise BadPatch(f"line {row + 1} of the patch begins neither with a blank nor with + or -")
        if mark in " -":
            before.append(line)
        if mark in " +":
            after.append(line)
        row += 1
    if (len(before), len(after)) != (old, new):
        raise BadPatch(f"the hunk that ends before line {row + 1} of the patch has other lines than it says")
    return before, after, row


def _without_newline(mark: str, before: list[str], after: list[str]) -> None:
    for of, lines in ((" -", before), (" +", after)):
        if mark in of and lines:
            lines[-1] = lines[-1].removesuffix("\n")


def _lines(text: str) -> list[str]:
    """With their newlines, which alone end a line."""
    parts = text.split("\n")
    return [f"{each}\n" for each in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
