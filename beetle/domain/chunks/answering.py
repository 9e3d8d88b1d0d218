"""Which chunks answer a query best, behind the one recall: tags count more, and misspelt words are put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_WORD = re.compile(r"\w+")
TAG_BONUS: Final = 0.5
"""A tag is what somebody calls the chunk's subject: a word of the query in one adds half of the score, two all."""
MOST_TAG_WORDS: Final = 2
SHORTEST: Final = 5
"""Letters of a word that may be misspelt; shorter ones are like too many others."""
LONGEST: Final = 32
"""Longer ones are no words but codes and addresses; and comparing two takes the square of their length."""
MOST_LONGER: Final = 2
"""By how many letters a misspelling may be longer or shorter."""
LEAST_ALIKE: Final = 0.85
MOST_RESPELT: Final = 64
"""Words of a query that are compared with those of the texts."""
AT_ONCE: Final = 256
"""So many comparisons are made between two looks."""


def words_of(text: str) -> list[str]:
    """The words of a text, without case."""
    return _WORD.findall(text.casefold())


def tag_factor(query: str, tags: Iterable[str]) -> float:
    """What the score of a chunk is multiplied with for the words that its tags share with the query: from 1 to 2."""
    asked = {_singular(word) for word in words_of(query)}
    shared = asked & {_singular(word) for tag in tags for word in words_of(tag)}
    return 1 + TAG_BONUS * min(MOST_TAG_WORDS, len(shared))


def respelt(query: str, texts: Iterable[str], look: Callable[[], None]) -> str | None:
    """The query with each word that no text has replaced by the most similar one that a text has; None if none is.

    A similar word begins with the same letter and is about as long.

    Args:
        look: is called between two steps of the work, and ends it by what it raises.
    """
    known: set[str] = set()
    for text in texts:
        look()
        known.update(word for word in words_of(text) if len(word) <= LONGEST + MOST_LONGER)
    by_letter: dict[str, list[str]] = {}
    for word in sorted(known):
        by_letter.setdefault(word[0], []).append(word)
    asked = words_of(query)
    unknown = [word for word in dict.fromkeys(asked) if SHORTEST <= len(word) <= LONGEST and word not in known]
    closest = {word: _closest(word, by_letter.get(word[0], ()), look) for word in unknown[:MOST_RESPELT]}
    spelt = [closest.get(word, word) for word in asked]
    return " ".join(spelt) if spelt != asked else None


def _closest(word: str, others: Iterable[str], look: Callable[[], None]) -> str:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word)
    best, found = LEAST_ALIKE, word
    for number, other in enumerate(others):
        if not number % AT_ONCE:
            look()
        if abs(len(other) - len(word)) > MOST_LONGER:
            continue
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best and (ratio := matcher.ratio()) >= best:
            best, found = ratio, other
    return found


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
