"""Unified diffs, which lead from the one text to the other."""

from __future__ import annotations

import random
import re

import pytest

from beetle.domain.line_diff import line_diff

LINES = [f"line {number}" for number in range(1500)]
CASES = {
    "a line in the middle": [*LINES[:700], "changed", *LINES[701:]],
    "both ends": ["first", *LINES[1:-1], "last"],
    "one line more at the end": [*LINES, "more"],
    "one line less at the beginning": LINES[1:],
    "lines repeated": [*LINES[:800], *LINES[700:]],
    "all": [f"other {number}" for number in range(1500)],
}


@pytest.mark.parametrize("after", CASES.values(), ids=CASES)
def test_the_diff_of_two_long_texts_leads_from_the_one_to_the_other(after: list[str]) -> None:
    _, names, hunk, *lines = line_diff("\n".join(LINES), "\n".join(after), "a", "b").split("\n")
    numbers = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", hunk)
    assert names == "+++ b" and numbers is not None
    first, count, _, made = map(int, numbers.groups())
    kept = [line[1:] for line in lines if line[0] in " -"]
    put = [line[1:] for line in lines if line[0] in " +"]
    assert (len(kept), len(put)) == (count, made) and kept == LINES[first - 1 : first - 1 + count]
    assert [*LINES[: first - 1], *put, *LINES[first - 1 + count :]] == after


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\f"])
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    assert line_diff(f"one{end}two\n", "one\ntwo\n", "a", "b").split("\n")[3:] == [f"-one{end}two", "+one", "+two"]
    assert line_diff("one\r\ntwo", "one\ntwo\n", "a", "b") == "" == line_diff("", "", "a", "b")


def test_a_short_text_has_a_change_for_each_place_and_what_is_equal_has_none() -> None:
    after = ["first", *LINES[1:400], "last"]
    assert line_diff("\n".join(LINES[:401]), "\n".join(after), "a", "b").count("@@ -") == 2
    assert not line_diff("\n".join(LINES), "\n".join(LINES), "a", "b")


def test_lines_that_stand_there_a_hundred_times_are_not_compared_pair_by_pair() -> None:
    draw = random.Random(1)
    one, other = ("\n".join(f"{draw.randrange(1200)}" for _ in range(100_000)) for _ in range(2))
    # difflib makes eight million pairs of them, and looks through them again for each of thousands of blocks.
    assert line_diff(one, other, "a", "b").count("\n") == 200_002
