"""The token counter: how long a text is for a language model, the same on every machine.

The tokenizers of models need vocabulary files of megabytes, differ from model to model, and some fetch theirs from a
network. All of them first cut a text in the same manner, at words, numbers and signs. `PATTERN` is that cut, with upper
lengths that pieces of a vocabulary usually have: on English prose and on code it comes near to what a model counts, and
on scripts without spaces much nearer than characters divided by four. It is one regular expression without character
classes that differ between versions of Unicode, so any language can count the same.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right

NAME = "beetle-pieces-1"
"""The counter's name in the docs. Another way of counting gets another name."""

PATTERN = (
    r" ?(?:[A-Z]?[a-z]{1,8}|[A-Z]{1,4}|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,4}|[\x80-\u2e7f]{1,3}|[^ \t\r\n])"
    r"|[ \t]{1,16}|[\r\n]{1,8}"
)
"""Each match is one token. Matches stand one behind the other and leave no character out."""

_TOKEN = re.compile(PATTERN)


def count_tokens(text: str) -> int:
    """How many tokens a text has; an empty one has none. Two texts joined never have more than both together."""
    return len(_TOKEN.findall(text))


class TokenRuler:
    """Where the tokens of a text end, to measure slices of it without counting again."""

    def __init__(self, text: str) -> None:
        self._ends = array("L", (match.end() for match in _TOKEN.finditer(text)))

    def count(self, start: int, end: int) -> int:
        """How many tokens lie in a slice, in whole or in part: at least as many as `count_tokens` finds in it."""
        if end <= start:
            return 0
        return bisect_left(self._ends, end) - bisect_right(self._ends, start) + 1

    def after(self, start: int, tokens: int) -> int:
        """Where a slice that begins at `start` ends when it holds so many tokens, which is at least 1."""
        return self._ends[min(bisect_right(self._ends, start) + tokens, len(self._ends)) - 1]
