"""Extractive summaries: the sentences that say most of a segment, and its words, each as a place in an event.

Nothing is copied: a bullet or a keyword is the text between two places of an event's content, so what is masked or
erased there is gone from every summary at once. Sentences are chosen by their distance to the segment's centroid with
regard to what was chosen already (Radev et al., 2004; Carbonell and Goldstein, 1998). All of it is deterministic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import log
from unicodedata import category

from beetle.domain.lexical import MONTHS, STOP_WORDS, WEEKDAYS
from beetle.named_tuple import NamedTuple

READ_CHARS = 20_000
"""Of one event so many characters are read."""
BULLET_CHARS = 200
LEAST_CHARS = 12
SENTENCES_READ = 400
SEGMENT_BULLETS = 4
PERIOD_BULLETS = 5
KEYWORDS = 7
CANDIDATES = 32
"""Words that a node hands up to the period above it."""
CHILDREN_READ = 200
CONTEXT_WEIGHT = 0.5
FULL_WORDS = 5
"""A sentence of fewer words that name something says less than its words are worth."""
SAME = 0.5
"""Sentences that share more of their words say the same."""

WORD = r"[^\W\d_](?:[\w'\u2019-]{0,62}\w)?"
SENTENCE_END = (
    r"(?<![.!?\u2026\u3002\uff01\uff1f\u061f])[.!?\u2026\u3002\uff01\uff1f\u061f]++[\"'\u2019\u201d)\]]*+(?=\s|$)"
    r"|[\u3002\uff01\uff1f]|[\r\n\v\f\u2028\u2029\0]+"
)
COMMON = frozenset(
    """
    yeah yes okay ok hey hi hello thanks thank please sorry wow great good nice really well right like know think want
    going got get go went make made say said tell told see saw look one two lot much many thing things something
    anything time day today sure maybe let way back still even now new always never ever take need come came give first
    last sounds sound feel love glad happy hope awesome amazing cool haha lol thats dont its im ive been more some any
    all     bit kind keep kept try tried around about would could should youre were there here your our what will
    """.split()  # noqa: SIM905
) | frozenset((*MONTHS, *WEEKDAYS))
"""Words that name no subject. They stand beside the stop words of recall."""


class Text(NamedTuple):
    """The content of an event that may be shown; `weight` is what its words count."""

    message: int
    role: str
    content: str
    weight: float = 1.0


class Span(NamedTuple):
    """A place in an event's content, in characters."""

    message: int
    begin: int
    end: int


class Word(NamedTuple):
    """A word of a node: where it stands first, and how often it does."""

    place: Span
    times: float


class Sentence(NamedTuple):
    """A sentence and where it stands; `order` is its place among all."""

    place: Span
    text: str
    order: int


class Summary(NamedTuple):
    """What is kept of a segment."""

    bullets: tuple[Span, ...]
    words: tuple[Word, ...]


def summarize(texts: Sequence[Text], context: Sequence[Text] = ()) -> Summary:
    """The bullets of a segment in their order, and its words, the most frequent first. `context` is not quoted."""
    counts: Counter[str] = Counter()
    places: dict[str, Span] = {}
    for each in texts:
        for word, begin, end in words_of(each.content[:READ_CHARS]):
            counts[word] += 1
            places.setdefault(word, Span(each.message, begin, end))
    weights = {word: float(count) for word, count in counts.items()}
    for each in context:
        for word, _, _ in words_of(each.content[:READ_CHARS]):
            if word in weights:
                weights[word] += CONTEXT_WEIGHT
    sentences: list[Sentence] = []
    for each in texts:
        if each.role in ("system", "other"):
            continue
        for span in sentence_spans(each.content):
            if len(sentences) == SENTENCES_READ:
                break
            place = Span(each.message, *span)
            sentences.append(Sentence(place, each.content[place.begin : place.end], len(sentences)))
    chosen = choose(sentences, weights, SEGMENT_BULLETS)
    # Equally frequent words stand in the order of the texts: by nothing that a rebuild could change.
    first = {word: rank for rank, word in enumerate(places)}
    best = sorted(counts, key=lambda word: (-counts[word], first[word]))[:CANDIDATES]
    return Summary(
        tuple(each.place for each in chosen), tuple(Word(places[word], float(counts[word])) for word in best)
    )


def choose(sentences: Sequence[Sentence], weights: dict[str, float], most: int) -> list[Sentence]:
    """The sentences that say most, none of which says what another says; in their order."""
    bags = [frozenset(word for word, _, _ in words_of(each.text)) for each in sentences]
    top = max(weights.values(), default=1.0)
    scores = [_score(each, bag, weights, top) for each, bag in zip(sentences, bags, strict=True)]
    order = sorted(range(len(sentences)), key=lambda place: (-scores[place], place))
    chosen: list[int] = []
    for place in order:
        if len(chosen) == most or scores[place] <= 0:
            break
        if all(_likeness(bags[place], bags[other]) <= SAME for other in chosen):
            chosen.append(place)
    return [sentences[place] for place in sorted(chosen)]


def rank_words(nodes: Sequence[Sequence[tuple[str, float]]]) -> list[list[int]]:
    """For each of some siblings the places of its words, best first: tf-idf with the siblings as the background."""
    held = Counter(word for words in nodes for word in {word for word, _ in words})
    return [
        sorted(range(len(words)), key=lambda at: (-words[at][1] * log(1 + len(nodes) / held[words[at][0]]), at))
        for words in nodes
    ]


def words_of(text: str) -> Iterator[tuple[str, int, int]]:
    """The words that name something, in lower case, and where each stands."""
    for match in re.finditer(WORD, text):
        word = match.group().lower().replace("\u2019", "'")
        if len(word) > 2 and "'" not in word and word not in STOP_WORDS and word not in COMMON:
            yield word, match.start(), match.end()


def sentence_spans(content: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text stand, without the space around them, each at most 200 characters."""
    text = content[:READ_CHARS]
    begin = 0
    for end in [*(match.end() for match in re.finditer(SENTENCE_END, text)), len(text)]:
        while end < len(text) and _joined(text, end):
            end += 1
        if end <= begin:
            continue
        piece = text[begin:end]
        stripped = piece.strip(" \t\r\n\v\f\u2028\u2029\0\u3000\xa0")
        if stripped:
            start = begin + piece.index(stripped[0])
            yield start, start + shorten(stripped)
        begin = end


def shorten(text: str, most: int = BULLET_CHARS) -> int:
    """How many characters of a text to show, at most `most`: to the end of a word, else of what is drawn as one."""
    if len(text) <= most:
        return len(text)
    space = text.rfind(" ", most // 2, most + 1)
    if space > 0:
        return len(text[:space].rstrip())
    end = most
    while end > most // 2 and _joined(text, end):
        end -= 1
    return end


def title_from(keywords: Sequence[str]) -> str | None:
    """What a segment is about: its first three words."""
    text = ", ".join(keywords[:3])
    return text[:1].upper() + text[1:] if text else None


def _score(sentence: Sentence, bag: Collection[str], weights: dict[str, float], top: float) -> float:
    if len(sentence.text) < LEAST_CHARS or len(bag) < 2:
        # So little is only told where there is nothing else.
        return 0.001 * len(bag) if sentence.text else 0.0
    # In a fixed order: sums of floats depend on it.
    score = sum(log(1 + weights.get(word, 0.0)) for word in sorted(bag)) / (len(bag) ** 0.5 * log(1 + top))
    score *= min(1.0, len(bag) / FULL_WORDS)
    # A question says less than its answer.
    return score * (0.6 if sentence.text.endswith(("?", "\uff1f", "\u061f")) else 1.0)


def _likeness(one: Collection[str], other: Collection[str]) -> float:
    shared = sum(word in other for word in one)
    return shared / max(1, min(len(one), len(other)))


def _joined(text: str, at: int) -> bool:
    """Whether a cut there would part a letter from its marks, the letters of a flag, or a joined picture."""
    before, after = text[at - 1], text[at]
    if "\u200d" in (before, after) or category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    return "\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"
