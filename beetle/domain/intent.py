"""What kind of answer a query asks for, by its words. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

from beetle.contracts.routing import Intent
from beetle.domain.lexical import parse_query
from beetle.domain.time_words import asks_for_all, window_of, without
from beetle.named_tuple import NamedTuple

WORDS: Mapping[Intent, str] = {
    "locate": (
        r"\b(?:where (?:is|are|was|were|did|do) (?:the|it|we|i|that)|which (?:file|line|message|conversation|session)|"
        r"find the|locate|exact(?:ly)?|verbatim|quote|word for word|snippet|the (?:line|message|place) where)\b"
    ),
    "explore": (
        r"\b(?:overview|summar(?:y|ize|ise)|themes?|topics?|patterns?|recap|trends?|everything|explore|"
        r"what (?:have|were|are) we|tell me about|in general|history of|evolution of)\b"
    ),
    "answer": r"\b(?:why|how|who|whom|when|did|does|is|are|was|were|what|which|should|can)\b",
}
"""The words that tell an intent; the first intent of which one stands in a query is taken."""
QUOTED = r"\"[^\"]{3,}\"|`[^`]{3,}`|\u201c[^\u201c\u201d]{3,}\u201d"
SURE, LIKELY, GUESSED = 0.9, 0.7, 0.5
MOST_WORDS = 16


class Classified(NamedTuple):
    """An intent, how sure that is, why, by which words, and since how long ago in milliseconds."""

    intent: Intent
    confidence: float
    reason: str
    words: tuple[str, ...]
    lookback_ms: int | None


def classify(query: str, asked_at: int, timeout_ms: int | None) -> Classified:
    """The intent of a query; `asked_at` in microseconds."""
    window = window_of(query, asked_at)
    lookback = None if window is None else max(0, (asked_at - window.since) // 1000)
    named = () if window is None else (window.words.lower(),)
    if timeout_ms is not None:
        return Classified("time_boxed", 1.0, f"the answer may take {timeout_ms} ms", named, lookback)
    if (quoted := re.findall(QUOTED, query)) != []:
        return Classified("locate", SURE, "it quotes what is looked for", _shown(quoted), lookback)
    if window is not None:
        left = without(query, window.words)
        if left is None or asks_for_all(parse_query(left).terms):
            return Classified("explore", SURE, "it asks for all of a time", named, lookback)
    for intent, pattern in WORDS.items():
        found = [each.group().lower() for each in re.finditer(pattern, query, re.IGNORECASE)]
        if found:
            sure = LIKELY if intent == "answer" or len(set(found)) == 1 else SURE
            return Classified(intent, sure, "by its words", (*_shown(found), *named), lookback)
    return Classified("answer", GUESSED, "no word of it tells another", named, lookback)


def _shown(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))[:MOST_WORDS]
