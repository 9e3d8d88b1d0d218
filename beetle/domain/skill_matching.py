"""How well a query fits the summaries of mounted Agent Skills, which are in no index. No clock, no I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import log

from beetle.domain.lexical import STOP_WORDS, all_words, stem_of

K1, B = 1.2, 0.75
"""As in the recall index."""
NAME_WEIGHT = 2
"""A word of the name counts as if the summary held it so often: who asks by name means it."""


class SkillWords:
    """The words of some summaries, to be asked again and again."""

    def __init__(self, summaries: Iterable[tuple[str, str]]) -> None:
        """Takes (name, description) of each."""
        held: dict[str, dict[int, int]] = {}
        lengths: list[int] = []
        for place, (name, description) in enumerate(summaries):
            counts = dict.fromkeys(all_words(description), 1)
            for word in all_words(name):
                counts[word] = counts.get(word, 0) + NAME_WEIGHT
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                held.setdefault(word, {})[place] = count
        self._held = held
        self._vocabulary = sorted(held)
        self._lengths = lengths
        self._average = sum(lengths) / len(lengths) if lengths else 1.0

    def match(self, query: str) -> list[tuple[int, float]]:
        """(place, relevance) of each summary that shares a word with the query, in their order.

        Relevance is the summary's BM25 as a share of what one of average length would have that held every word of
        the query once, at most 1. A word meets those that begin as its stem does.
        """
        words = all_words(query)
        terms = [word for word in words if word not in STOP_WORDS] or list(words)
        scores: dict[int, float] = {}
        whole = 0.0
        for term in terms:
            counts = self._counts(term)
            rarity = log(1 + (len(self._lengths) - len(counts) + 0.5) / (len(counts) + 0.5))
            whole += rarity
            for place, count in counts.items():
                longer = 1 - B + B * self._lengths[place] / self._average
                scores[place] = scores.get(place, 0.0) + rarity * count * (K1 + 1) / (count + K1 * longer)
        return [(place, min(1.0, scores[place] / whole)) for place in sorted(scores)]

    def _counts(self, term: str) -> dict[int, int]:
        """How often each summary holds a word like the term."""
        start = stem_of(term)
        found: dict[int, int] = {}
        for word in _beginning(self._vocabulary, start):
            for place, count in self._held[word].items():
                found[place] = found.get(place, 0) + count
        return found


def _beginning(vocabulary: Sequence[str], start: str) -> Iterable[str]:
    """The words of a sorted vocabulary that begin so."""
    at = bisect_left(vocabulary, start)
    while at < len(vocabulary) and vocabulary[at].startswith(start):
        yield vocabulary[at]
        at += 1
