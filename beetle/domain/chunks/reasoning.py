"""What a set of chunks says together: their synthesis, a comparison, patterns, gaps, and where they contradict.

Without a model, by words alone: what is told is told of the chunks that were handed in, and quotes them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Literal

from beetle.named_tuple import NamedTuple

Analysis = Literal["synthesis", "comparison", "pattern", "gap"]
Look = Callable[[], None]
"""Called between two steps of the work; ends it by what it raises."""
ContradictionType = Literal["potential_preference_conflict", "negation_conflict", "explicit"]

COMPARISON_CONFIDENCE: Final = 0.7
PATTERN_CONFIDENCE: Final = 0.75
GAP_CONFIDENCE: Final = 0.6
LOW_CONFIDENCE: Final = 0.6
QUOTED: Final = 7
"""How many chunks a synthesis quotes; it tells the number of the others."""
MOST_INSIGHTS: Final = 5
MOST_TAGS: Final = 5
MOST_CONTRADICTIONS: Final = 100
"""So many are told; among hundreds of chunks under one tag there are tens of thousands."""
_INSIGHT: Final = 100
"""Characters of a chunk that an insight quotes."""

_WORD = re.compile(r"[\w']+")
_PREFERS = frozenset("prefer prefers preferred preferring".split())  # noqa: SIM905
_LIKES = frozenset("like likes liked liking love loves loved loving enjoy enjoys enjoyed enjoying".split())  # noqa: SIM905
_NEGATIONS = frozenset(
    """
    not never no cannot dislike dislikes disliked disliking hate hates hated hating avoid avoids avoided avoiding
    stop stops stopped stopping
    """.split()  # noqa: SIM905
)
_DIFFERENT_WORDS: Final = 2
_REASONS: Final[Mapping[str, str]] = {
    "potential_preference_conflict": "Divergent preferences detected",
    "negation_conflict": "Opposing sentiments detected",
}


class Evidence(NamedTuple):
    """What reasoning sees of a chunk."""

    chunk_id: str
    content: str
    confidence: float
    created_ms: int
    day: str
    """The day it was created, as its reader's calendar names it."""
    kind: str
    tags: tuple[str, ...]
    linked: bool
    """Whether it has a link other than to its conversation."""
    contradicts: tuple[str, ...] = ()


class Contradiction(NamedTuple):
    """Two chunks that may not both hold; `topic` is the tag that they share, empty for a link by hand."""

    type: ContradictionType
    topic: str
    first: str
    second: str
    reason: str


class Reasoning(NamedTuple):
    """The result of an analysis; `confidence` is from 0 to 1."""

    synthesis: str
    insights: list[str]
    contradictions: list[Contradiction]
    confidence: float
    sources: list[str]


def reason(query: str, evidence: Sequence[Evidence], analysis: Analysis, look: Look) -> Reasoning:
    """Analyse chunks, which come in the order of their relevance."""
    if not evidence:
        return Reasoning("No relevant evidence found for analysis", [], [], 0.0, [])
    found = _ANALYSES[analysis](query, evidence, look)
    if found.contradictions:
        found.insights.append(f"Identified {len(found.contradictions)} potential conflicts in memory")
    return found


def contradictions(evidence: Sequence[Evidence], look: Look) -> list[Contradiction]:
    """Where chunks may contradict each other, each pair once: links by hand, then what their words say of a tag.

    At most `MOST_CONTRADICTIONS` of them.
    """
    found: dict[tuple[str, str], Contradiction] = {}
    for each in chain(_linked_contradictions(evidence), _worded_contradictions(evidence, look)):
        pair = (min(each.first, each.second), max(each.first, each.second))
        found.setdefault(pair, each)
        if len(found) == MOST_CONTRADICTIONS:
            break
    return list(found.values())


def _linked_contradictions(evidence: Sequence[Evidence]) -> Iterator[Contradiction]:
    for chunk in evidence:
        for target in chunk.contradicts:
            yield Contradiction("explicit", "", chunk.chunk_id, target, "Explicit contradiction link")


class _Said(NamedTuple):
    chunk: Evidence
    words: array[int]
    """Hashes of its words where it prefers something: they take a tenth of the memory of the words."""
    prefers: bool
    denies: bool


def _worded_contradictions(evidence: Sequence[Evidence], look: Look) -> Iterator[Contradiction]:
    by_tag: dict[str, list[int]] = {}
    said: list[_Said] = []
    for place, chunk in enumerate(evidence):
        look()
        words = frozenset(_WORD.findall(chunk.content.lower().replace("\u2019", "'")))
        prefers = not words.isdisjoint(_PREFERS)
        hashes = array("q", map(hash, words) if prefers else ())
        said.append(_Said(chunk, hashes, prefers, _denies(words)))
        for tag in dict.fromkeys(chunk.tags):
            by_tag.setdefault(tag, []).append(place)
    judged: set[tuple[int, int]] = set()
    for tag, group in by_tag.items():
        for place, first in enumerate(group):
            look()
            # Of two that share several tags, the first one is told.
            for second in (each for each in group[place + 1 :] if (first, each) not in judged):
                judged.add((first, second))
                if (kind := _opposed(said[first], said[second])) is not None:
                    reason = f"{_REASONS[kind]} for topic '{tag}'"
                    yield Contradiction(kind, tag, said[first].chunk.chunk_id, said[second].chunk.chunk_id, reason)


def _opposed(one: _Said, other: _Said) -> ContradictionType | None:
    if one.prefers and other.prefers and len(set(one.words).symmetric_difference(other.words)) >= _DIFFERENT_WORDS:
        return "potential_preference_conflict"
    return "negation_conflict" if one.denies != other.denies else None


def _denies(words: frozenset[str]) -> bool:
    return not words.isdisjoint(_NEGATIONS) or any(word.endswith("n't") for word in words)


def _synthesize(query: str, evidence: Sequence[Evidence], look: Look) -> Reasoning:
    by_content: dict[str, Evidence] = {}
    for chunk in sorted(evidence, key=lambda each: (-each.confidence, -each.created_ms, each.chunk_id)):
        by_content.setdefault(" ".join(chunk.content.lower().split()), chunk)
    chunks = list(by_content.values())
    lines = [
        f'Synthesized analysis for: "{query}"',
        "",
        f"Based on {len(chunks)} unique sources (ranked by relevance):",
    ]
    lines += [f" {place}. {_one_line(chunk.content)}" for place, chunk in enumerate(chunks[:QUOTED], 1)]
    if len(chunks) > QUOTED:
        lines.append(f" ... and {len(chunks) - QUOTED} other supporting memories.")
    return Reasoning(
        "\n".join(lines),
        list(dict.fromkeys(insight for chunk in chunks for insight in _insights(chunk.content)))[:MOST_INSIGHTS],
        contradictions(chunks, look),
        sum(chunk.confidence for chunk in chunks) / len(chunks),
        [chunk.chunk_id for chunk in chunks],
    )


def _insights(content: str) -> Iterator[str]:
    words = frozenset(_WORD.findall(content.lower()))
    if words & _PREFERS:
        yield f"Preference identified: {_shortened(content)}"
    if words & _LIKES:
        yield f"Positive sentiment: {_shortened(content)}"


def _compare(query: str, evidence: Sequence[Evidence], look: Look) -> Reasoning:
    if len(evidence) < 2:
        return Reasoning("Need at least 2 items to compare", [], [], 0.0, [])
    lines = [f'Comparison Analysis: "{query}"', ""]
    lines += [f" Option {place}: {_one_line(chunk.content)}" for place, chunk in enumerate(evidence, 1)]
    insight = f"Comparing {len(evidence)} distinct sources"
    return _synthesized("\n".join(lines), [insight], evidence, COMPARISON_CONFIDENCE, look)


def _find_patterns(query: str, evidence: Sequence[Evidence], look: Look) -> Reasoning:
    counted: dict[str, int] = {}
    for chunk in evidence:
        for tag in dict.fromkeys(chunk.tags):
            counted[tag] = counted.get(tag, 0) + 1
    insights: list[str] = []
    if counted:
        themes = sorted(counted, key=lambda tag: (-counted[tag], tag))[:MOST_TAGS]
        insights.append(f"Common themes: {', '.join(themes)}")
    insights.append(f"Source types: {', '.join(sorted({chunk.kind for chunk in evidence}))}")
    insights.append(f"Evidence spans {len({chunk.day for chunk in evidence})} unique days")
    told = f"Found {len(insights)} patterns across {len(evidence)} memories"
    return _synthesized(told, insights, evidence, PATTERN_CONFIDENCE, look)


def _identify_gaps(query: str, evidence: Sequence[Evidence], look: Look) -> Reasoning:
    unsure = sum(chunk.confidence < LOW_CONFIDENCE for chunk in evidence)
    alone = sum(not chunk.linked for chunk in evidence)
    gaps: list[str] = []
    if unsure:
        gaps.append(f"{unsure} sources have low confidence scores")
    if alone:
        gaps.append(f"{alone} items are isolated (no graph links)")
    if not gaps:
        gaps.append("No significant structural gaps identified in the available evidence")
    return _synthesized(f"Knowledge Gap Analysis: {'; '.join(gaps)}", gaps, evidence, GAP_CONFIDENCE, look)


_ANALYSES: Final = {
    "synthesis": _synthesize,
    "comparison": _compare,
    "pattern": _find_patterns,
    "gap": _identify_gaps,
}


def _synthesized(
    synthesis: str, insights: list[str], evidence: Sequence[Evidence], confidence: float, look: Look
) -> Reasoning:
    sources = [each.chunk_id for each in evidence]
    return Reasoning(synthesis, insights, contradictions(evidence, look), confidence, sources)


def _one_line(content: str) -> str:
    return " ".join(content.split())


def _shortened(content: str) -> str:
    line = _one_line(content)
    return line if len(line) <= _INSIGHT else f"{line[:_INSIGHT].rstrip()}..."
