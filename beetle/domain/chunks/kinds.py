"""What type of chunk a text is, by the words it uses: decision, pattern, preference, fact, else note.

The first type with a cue wins, in this order: "generally prefers" is a habit before it is a preference. A decision is
one that was taken, so "decided", "chose" and "opts for" are cues, and "decide" and "choose" are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from beetle.contracts.chunks import ChunkType
from beetle.named_tuple import NamedTuple

ORDER: Final[tuple[ChunkType, ...]] = ("decision", "pattern", "preference", "fact")
"""In the order in which they win; a text without a cue is a note."""

_WORDS: Final[dict[ChunkType, str]] = {
    "decision": "decided decides chose chosen chooses selected selects concluded concludes",
    "pattern": "usually often pattern patterns always typically generally frequently regularly whenever",
    "preference": (
        "prefer prefers preferred preferring like likes liked liking want wants wanted wanting rather dislike dislikes "
        "disliked disliking hate hates hated hating wish wishes wished wishing favorite favorites favourite favourites "
        "favor favors favored favoring favour favours favoured favouring"
    ),
    "fact": "",
}
_GAP: Final = r"(?:[ \t]{1,64}+(?:\r?\n[ \t]{0,64}+)?|\r?\n[ \t]{0,64}+)"
"""Between the words of a phrase: within a paragraph, over one line end at most."""

_PHRASES: Final[dict[ChunkType, tuple[str, ...]]] = {
    "decision": (
        "(?:goes|going|gone|went) with",
        "(?:opts|opting|opted) for",
        "(?:settles|settling|settled) on",
    ),
    "pattern": ("(?:tend|tends|tended|tending) to", "every time", "most of the time"),
    "preference": (),
    "fact": (
        "(?:is|are|was|were) an?",
        "(?:work|works|worked|working) (?:as|at|for)",
        "located in",
        "(?:live|lives|lived|living) in",
        "born in",
        "(?:study|studies|studied|studying) at",
        "(?:graduate|graduates|graduated|graduating) from",
        "(?:has|have|had) [0-9]+",
        "there (?:is|are|was|were)",
    ),
}


class _Phrase(NamedTuple):
    kind: ChunkType
    rest: re.Pattern[str]


def _phrases() -> dict[str, list[_Phrase]]:
    """By first word, which is looked up; the rest is matched behind it."""
    found: dict[str, list[_Phrase]] = {}
    for kind, phrases in _PHRASES.items():
        for phrase in phrases:
            first, _, rest = phrase.partition(" ")
            pattern = re.compile(_GAP + _GAP.join(rest.split(" ")) + r"\b", re.IGNORECASE)
            for word in first.removeprefix("(?:").removesuffix(")").split("|"):
                found.setdefault(word, []).append(_Phrase(kind, pattern))
    return found


_WORD = re.compile(r"\w+")
_OF_WORD: Final[dict[str, ChunkType]] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_OF_FIRST: Final = _phrases()
_LONGEST: Final = max(map(len, (*_OF_WORD, *_OF_FIRST)))


class Cue(NamedTuple):
    """A word or phrase that tells a type; `at` is where it begins."""

    at: int
    kind: ChunkType


def cues(text: str) -> Iterator[Cue]:
    """Every cue of a text, in order."""
    for match in _WORD.finditer(text):
        word = match.group()
        if len(word) > _LONGEST:
            continue
        word = word.lower()
        if kind := _OF_WORD.get(word):
            yield Cue(match.start(), kind)
        for phrase in _OF_FIRST.get(word, ()):
            if phrase.rest.match(text, match.end()):
                yield Cue(match.start(), phrase.kind)


def winner(kinds: set[ChunkType]) -> ChunkType:
    """The type of a text that has cues of these types."""
    found: list[ChunkType] = [each for each in ORDER if each in kinds]
    return found[0] if found else "note"


def detect_type(text: str) -> ChunkType:
    """The type of a text. Whole words count, in any case: "prefers" is a cue, "like_count" is none."""
    return winner({cue.kind for cue in cues(text)})
