"""The order of recall: from index hits and their neighbouring turns to one ranked list.

A turn's score is BM25, plus what its neighbours lend it, times one plus the sum of its bonuses, times its dampings.
Bonuses multiply, so that nothing rises by date or speaker alone. The caller passes only what may be seen: a candidate
that is absent neither lends nor receives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import neg

from beetle.contracts.names import SignalName
from beetle.domain.lexical import FIRST_PERSON, MONTHS, WEEKDAYS, DatePart, ParsedQuery, name_words, stem_of, utc_time
from beetle.domain.surroundings import coverage, lent_by, session_shares, turns_of, windows_of
from beetle.named_tuple import NamedTuple

POOL = 112
"""Index hits to fetch. 100 and 300 measure the same within half a point; each hit costs about 20 µs.

Recall at 10 of the development half: .8218 with these two numbers, .8208 with 128 and 20, .8165 with 64 and 20."""

SEEDS = 8
"""Best hits whose neighbours are fetched when they did not match themselves. More change next to nothing."""

REREAD = 40
"""First results whose text is searched for time expressions and first person."""

READ_CHARS = 2000
"""Text features look at this many characters of a candidate."""

WORD_FLOOR = 0.05
"""What a matching word counts at the least. A word that half of all rows hold counts next to nothing, so that in a
store of a few rows no match would count; in a large one a match scores twenty times this and more."""

_BM25_K1 = 1.2

NO_PHRASES: Mapping[str, float] = {}


class Weights(NamedTuple):
    """Hand-set, coarse. Bonuses are shares of the score; `near`, `far`, `answer` are shares of the lender's BM25."""

    near: float = 0.5
    """Lent to the turn before and after: half of what is said about a thing stands beside the word for it."""
    far: float = 0.25
    """Lent two turns away: half of `near`."""
    answer: float = 0.75
    """Lent by a question to the turn after it, which is its answer."""
    length: float = 0.4
    """BM25's b. Turns are short, so length says less than the usual 0.75 assumes."""
    coverage: float = 1.0
    """All the query's words in the window of five turns, by rarity: one word five times is less than five words."""
    session: float = 0.25
    """The session with the best hits: a thing is talked over more than once in one sitting."""
    speaker: float = 0.25
    """Said by somebody the query names, or by the asker in a query about "me"."""
    first_person: float = 0.25
    """… and says I or my: people tell of themselves."""
    window: float = 1.0
    """In the time that the query names, counted from when it was asked: twice as good as the same words elsewhere."""
    when: float = 0.25
    """A question of time, and a turn with a time expression."""
    day: float = 0.5
    """The very day of a date in the query; half within a week after it, for things are told soon after they happen."""
    month: float = 0.25
    """The month of a date in the query."""
    question: float = 0.75
    """Factor for a turn that ends as a question: it asks for what is sought."""
    title: float = 0.5
    """A title that holds all words of the query."""
    current: float = 0.25
    """The conversation in progress: mild, never a filter."""
    archived: float = 0.5
    """Factor for what was put away."""
    importance: float = 0.5
    """A thought of the highest importance; one of the middle gets nothing, a lesser one loses as much."""
    confidence: float = 0.25
    """A thought that its agent was sure of; as importance."""
    referenced: float = 0.1
    """For each later thought that builds on it, up to three."""
    superseded: float = 0.5
    """Factor for a thought in whose place another stands."""
    alone: float = 2.0
    """Factor for a record of no conversation: about what neighbours and session add to the best turn of an answer."""


WEIGHTS = Weights()


class Candidate(NamedTuple):
    """One record to be ranked, already allowed to the caller.

    `bm25`: the sum of its words' inverse document frequencies; 0 for a fetched neighbour that did not match.
    `sequence` counts the rows of a conversation one by one, hidden ones too. `conversation` None: not a turn. What is
    not `dated` belongs to no day. `importance` and `confidence` are between 0 and 1, `references` later ones that
    build on it.
    """

    plane: str
    source_id: str
    text: str
    at_us: int
    bm25: float
    conversation: int | None = None
    sequence: int = 0
    speaker: str | None = None
    title: str = ""
    archived: bool = False
    dated: bool = True
    importance: float | None = None
    confidence: float | None = None
    references: int = 0
    superseded: bool = False


class Ranked(NamedTuple):
    """A candidate in its place. `score`: its share of the best one's, so above 0 to 1. `why`: the signals it had."""

    candidate: Candidate
    score: float
    why: tuple[SignalName, ...]


_QUESTION_MARKS = ("?", "\uff1f", "\u061f")

_TIME_EXPRESSION = (
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:last|next|this|past|other|few)\s+\w+|(?:19|20)\d\d|"
    + "|".join((*MONTHS, *WEEKDAYS))
    + r")\b"
)


def neighbours_wanted(candidates: Iterable[Candidate], top: int = SEEDS) -> list[tuple[int, int]]:
    """The (conversation, sequence) places within two turns of the `top` best hits that are not among the candidates.

    The caller fetches those it may show as candidates with bm25 0. A place may not exist.
    """
    hits = [(-hit.bm25, hit.conversation, hit.sequence) for hit in candidates if hit.conversation is not None]
    present = {(conversation, sequence) for _, conversation, sequence in hits}
    hits.sort()
    places = ((conversation, sequence + step) for _, conversation, sequence in hits[:top] for step in (-1, 1, -2, 2))
    return list(dict.fromkeys(place for place in places if place not in present))


def rank(
    parsed: ParsedQuery,
    candidates: Iterable[Candidate],
    *,
    phrases: Mapping[str, float] = NO_PHRASES,
    asker: Collection[str] = (),
    current_conversation: int | None = None,
    weights: Weights = WEIGHTS,
    matching: bool = False,
    limit: int | None = None,
) -> list[Ranked]:
    """The candidates that match or stand beside a match, best first; the order they came in does not matter.

    What all candidates need is computed for all at once; what only some have, for those alone.

    Args:
        phrases: what each phrase counts that the scores do not have yet.
        asker: the speaker names that "I" and "my" in the query mean.
        matching: leave out those that only stand beside a match.
        limit: return at most this many.
    """
    pool = _distinct(candidates)
    if not pool:
        return []
    columns = _Columns(*zip(*pool, strict=True))
    texts = [text[:READ_CHARS].lower() for text in columns.text]
    matched = _with_phrases(pool, texts, phrases) if phrases else columns.bm25
    own = _floored(_length_corrected(columns.text, matched, weights.length), parsed, texts)
    turns = turns_of(columns.conversation, columns.sequence, columns.at_us)
    windows = windows_of(turns, own)
    asks = [
        conversation is not None and text[-16:].rstrip().endswith(_QUESTION_MARKS)
        for conversation, text in zip(columns.conversation, columns.text, strict=True)
    ]
    lent = lent_by(own, asks, windows, weights.near, weights.far, weights.answer)
    scores = [
        score * weights.alone if conversation is None else score + gift
        for conversation, score, gift in zip(columns.conversation, own, lent, strict=True)
    ]
    sessions = session_shares(turns, scores)
    heard = _heard(parsed, columns, asker)
    speaker_words = name_words({speaker for speaker in set(columns.speaker) if speaker})
    covered = coverage([term for term in parsed.terms if term not in speaker_words], texts, windows)
    signals = _signals(parsed, pool, columns, heard, current_conversation, weights)
    bonuses = [
        1.0 + weights.session * session + weights.coverage * cover
        for session, cover in zip(sessions, covered, strict=True)
    ]
    for i, found in signals.items():
        for _, value in found:
            bonuses[i] += value
    for i in _damped(columns, asks):
        bonuses[i] *= _damping(pool[i], asks[i], weights)
    scores = [score * bonus for score, bonus in zip(scores, bonuses, strict=True)]
    reread: dict[int, list[SignalName]] = {}
    if heard or parsed.asks_when:
        for i in sorted(range(len(pool)), key=scores.__getitem__, reverse=True)[:REREAD]:
            for name, factor in _reread(parsed, pool[i], heard, weights):
                scores[i] *= factor
                reread.setdefault(i, []).append(name)
    order = [i for _, _, i in sorted(zip(map(neg, scores), map(neg, columns.at_us), range(len(pool)), strict=True))]
    best = scores[order[0]]
    shown = [i for i in order if scores[i] > 0 and (own[i] or not matching)][:limit]
    parts = _Parts(own, lent, sessions, signals, reread)
    return [Ranked(pool[i], scores[i] / best, _why(i, parsed, texts[i], parts)) for i in shown]


class _Parts(NamedTuple):
    """What the scores of the candidates were made of, by their indices."""

    own: Sequence[float]
    lent: Sequence[float]
    sessions: Sequence[float]
    signals: Mapping[int, Sequence[tuple[SignalName, float]]]
    reread: Mapping[int, Sequence[SignalName]]


def _why(i: int, parsed: ParsedQuery, text: str, parts: _Parts) -> tuple[SignalName, ...]:
    why: list[SignalName] = []
    if parts.own[i]:
        why.append("lexical")
    if parts.lent[i]:
        why.append("neighbour")
    if parts.sessions[i] >= 0.5:
        why.append("session")
    if any(phrase in text for phrase in parsed.phrases):
        why.append("phrase")
    why.extend(name for name, value in parts.signals.get(i, ()) if value > 0)
    return (*why, *parts.reread.get(i, ()))


class _Columns(NamedTuple):
    """The fields of all candidates, field by field, in the order of `Candidate`."""

    plane: tuple[str, ...]
    source_id: tuple[str, ...]
    text: tuple[str, ...]
    at_us: tuple[int, ...]
    bm25: tuple[float, ...]
    conversation: tuple[int | None, ...]
    sequence: tuple[int, ...]
    speaker: tuple[str | None, ...]
    title: tuple[str, ...]
    archived: tuple[bool, ...]
    dated: tuple[bool, ...]
    importance: tuple[float | None, ...]
    confidence: tuple[float | None, ...]
    references: tuple[int, ...]
    superseded: tuple[bool, ...]


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each record once, with its best match, in the order of their planes and ids."""
    pool = list(candidates)
    # By number where they are numbers: as texts, "9" and "10" would say how many rows are before them.
    keys = [(each.plane, len(each.source_id), each.source_id) for each in pool]
    if len(set(keys)) < len(keys):
        best: dict[tuple[str, int, str], Candidate] = {}
        for key, candidate in zip(keys, pool, strict=True):
            known = best.get(key)
            if known is None or candidate.bm25 > known.bm25:
                best[key] = candidate
        keys, pool = list(best), list(best.values())
    return [pool[i] for _, i in sorted(zip(keys, range(len(pool)), strict=True))]


def _with_phrases(pool: Sequence[Candidate], texts: Sequence[str], phrases: Mapping[str, float]) -> list[float]:
    """The scores of the pool, those of matches with the phrases that stand in their texts: the first word as it is in
    the query, of the second one the letters that its inflections share."""
    sought: list[tuple[str, str, float]] = []
    for phrase, weight in phrases.items():
        first, second = phrase.split(" ")
        sought.append((f"{first} {stem_of(second)}", f"{first}-{stem_of(second)}", weight))
    scores: list[float] = []
    for candidate, text in zip(pool, texts, strict=True):
        score = candidate.bm25
        if score > 0:
            score += sum(weight for spaced, joined, weight in sought if spaced in text or joined in text)
        scores.append(score)
    return scores


def _length_corrected(texts: Sequence[str], matched: Sequence[float], b: float) -> list[float]:
    """BM25's score of words that occur once in a text of this length: times (k1 + 1) / (1 + k1·(1−b+b·L)).

    L is the length over the median length of the pool, up to 10 (Robertson and Zaragoza, 2009, eq. 3.12).
    """
    lengths = [len(text) + 1 for text in texts]
    middle = sorted(lengths)[len(lengths) // 2]
    most, whole, rest = 10 * middle, 1 + _BM25_K1, 1 - b
    return [
        score * whole / (1 + _BM25_K1 * (rest + b * (length / middle if length < most else 10.0))) if score > 0 else 0.0
        for score, length in zip(matched, lengths, strict=True)
    ]


def _floored(own: list[float], parsed: ParsedQuery, texts: Sequence[str]) -> list[float]:
    """At least `WORD_FLOOR` for each of the query's words in a text that matched."""
    most = WORD_FLOOR * max(1, len(parsed.terms))
    if min(filter(None, own), default=most) >= most:
        return own
    return [
        score
        if score >= most or not score
        else max(score, WORD_FLOOR * max(1, sum(term in text for term in parsed.terms)))
        for score, text in zip(own, texts, strict=True)
    ]


def _signals(
    parsed: ParsedQuery,
    pool: Sequence[Candidate],
    columns: _Columns,
    heard: Collection[str],
    current_conversation: int | None,
    weights: Weights,
) -> dict[int, list[tuple[SignalName, float]]]:
    """The signals found without reading the text, by index, of the candidates that may have any."""
    worth = any(columns.references) or {*columns.importance, *columns.confidence} != {None}
    chosen: Iterable[int]
    if parsed.dates or parsed.window is not None or worth or any(columns.title):
        chosen = range(len(pool))
    elif heard or current_conversation is not None:
        chosen = [
            i
            for i, (speaker, conversation) in enumerate(zip(columns.speaker, columns.conversation, strict=True))
            if speaker in heard or (conversation is not None and conversation == current_conversation)
        ]
    else:
        return {}
    return {i: _attributes(parsed, pool[i], heard, current_conversation, weights) for i in chosen}


def _damped(columns: _Columns, asks: Sequence[bool]) -> list[int]:
    """The indices of the candidates that a damping factor applies to."""
    if not (any(columns.archived) or any(columns.superseded)):
        return [i for i, each in enumerate(asks) if each]
    return [i for i, each in enumerate(zip(asks, columns.archived, columns.superseded, strict=True)) if any(each)]


def _heard(parsed: ParsedQuery, columns: _Columns, asker: Collection[str]) -> frozenset[str]:
    """The speakers whose own words are asked for."""
    terms = set(parsed.terms)
    speakers = {speaker for speaker in set(columns.speaker) if speaker}
    named = {speaker for speaker in speakers if not terms.isdisjoint(name_words((speaker,)))}
    return frozenset(named | (speakers.intersection(asker) if parsed.first_person else set()))


def _attributes(
    parsed: ParsedQuery,
    candidate: Candidate,
    heard: Collection[str],
    current_conversation: int | None,
    weights: Weights,
) -> list[tuple[SignalName, float]]:
    """The signals that need no reading of the text, with their bonuses."""
    signals: list[tuple[SignalName, float]] = []
    if candidate.speaker in heard:
        signals.append(("speaker", weights.speaker))
    if parsed.dates and candidate.dated:
        bonus = max(_date_bonus(date, candidate.at_us, weights) for date in parsed.dates)
        if bonus:
            signals.append(("date", bonus))
    if parsed.window is not None and candidate.dated and parsed.window[0] <= candidate.at_us <= parsed.window[1]:
        signals.append(("date", weights.window * parsed.window_share))
    if current_conversation is not None and candidate.conversation == current_conversation:
        signals.append(("current_conversation", weights.current))
    if candidate.title and parsed.terms:
        title = candidate.title.lower()
        shared = sum(stem_of(term) in title for term in parsed.terms)
        if shared:
            signals.append(("title", weights.title * shared / len(parsed.terms)))
    return [*signals, *_weighed(candidate, weights)]


def _weighed(candidate: Candidate, weights: Weights) -> list[tuple[SignalName, float]]:
    """What its writer and later records say of its worth. What is below the middle has no name: nothing rises by it."""
    signals: list[tuple[SignalName, float]] = []
    if candidate.importance is not None:
        signals.append(("importance", weights.importance * _around_middle(candidate.importance)))
    if candidate.confidence is not None:
        signals.append(("confidence", weights.confidence * _around_middle(candidate.confidence)))
    if candidate.references > 0:
        signals.append(("referenced", weights.referenced * min(3, candidate.references)))
    return signals


def _around_middle(value: float) -> float:
    """-1 to 1 of a value from 0 to 1."""
    return 2 * min(1.0, max(0.0, value)) - 1


def _date_bonus(date: DatePart, at_us: int, weights: Weights) -> float:
    """A year alone gives nothing: it is in the index already, and most of a store is of one year."""
    at = utc_time(at_us)
    if not date.month:
        return 0.0
    same_month = at.month == date.month and date.year in (0, at.year)
    if date.day:
        # Of a day without a year each year has one: the week after it may end in the next.
        years = (date.year,) if date.year else (at.year, at.year - 1)
        days_after = {_days_after(date, at, year) for year in years}
        if 0 in days_after:
            return weights.day
        if not days_after.isdisjoint(range(1, 8)):
            return weights.day / 2
    return weights.month if same_month else 0.0


def _days_after(date: DatePart, at: datetime, year: int) -> int | None:
    """How many days after a date of that year it is; None where the year has no such day."""
    try:
        return (at - at.replace(year=year, month=date.month, day=date.day)).days
    except ValueError:
        return None


def _damping(candidate: Candidate, asks: bool, weights: Weights) -> float:
    question = weights.question if asks else 1.0
    superseded = weights.superseded if candidate.superseded else 1.0
    return question * superseded * (weights.archived if candidate.archived else 1.0)


def _reread(
    parsed: ParsedQuery, candidate: Candidate, heard: Collection[str], weights: Weights
) -> list[tuple[SignalName, float]]:
    """The signals found by searching the text, with their factors."""
    text = candidate.text[:READ_CHARS]
    signals: list[tuple[SignalName, float]] = []
    if candidate.speaker in heard and re.search(FIRST_PERSON, text):
        signals.append(("first_person", 1 + weights.first_person))
    if parsed.asks_when and re.search(_TIME_EXPRESSION, text):
        signals.append(("time_expression", 1 + weights.when))
    return signals
