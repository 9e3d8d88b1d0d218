"""The order of recall: from index hits and their neighbouring turns to one ranked list.

A turn's score is BM25, plus what its neighbours lend it, times one plus the sum of its bonuses, times its dampings.
Bonuses multiply, so that nothing rises by date or speaker alone. The caller passes only what may be seen: a candidate
that is absent neither lends nor receives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from unicodedata import category

from beetle.contracts.names import SignalName
from beetle.domain.lexical import FIRST_PERSON, MONTHS, WEEKDAYS, DatePart, ParsedQuery, name_words, utc_time
from beetle.named_tuple import NamedTuple

POOL = 112
"""Index hits to fetch. 100 and 300 measure the same within half a point; each hit costs about 20 µs.

Recall at 10 of the development half: .8218 with these two numbers, .8208 with 128 and 20, .8165 with 64 and 20."""

SEEDS = 8
"""Best hits whose neighbours are fetched when they did not match themselves. More change next to nothing."""

REREAD = 40
"""First results whose text is searched for time expressions and first person."""

SESSION_GAP_US = 30 * 60 * 1_000_000
"""A pause this long (µs) ends a session: nothing is lent across it."""

READ_CHARS = 2000
"""Text features look at this many characters of a candidate."""

_BORDER_CHARS = 24
"""How far an excerpt gives way to end between words; some scripts have no spaces, and some tokens no end."""

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


_Window = list[tuple[int, int]]

_TIME_EXPRESSION = (
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:last|next|this|past|other|few)\s+\w+|(?:19|20)\d\d|"
    + "|".join((*MONTHS, *WEEKDAYS))
    + r")\b"
)


def neighbours_wanted(candidates: Iterable[Candidate], top: int = SEEDS) -> list[tuple[int, int]]:
    """The (conversation, sequence) places within two turns of the `top` best hits that are not among the candidates.

    The caller fetches those it may show as candidates with bm25 0. A place may not exist.
    """
    hits = [(hit.bm25, hit.conversation, hit.sequence) for hit in candidates if hit.conversation is not None]
    present = {(conversation, sequence) for _, conversation, sequence in hits}
    hits.sort(key=lambda hit: (-hit[0], hit[1], hit[2]))
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
) -> list[Ranked]:
    """The candidates that match or stand beside a match, best first; the order they came in does not matter.

    `phrases`: what each phrase counts that the scores do not have yet. `asker`: the speaker names that "I" and "my" in
    the query mean.
    """
    pool = _distinct(candidates)
    if not pool:
        return []
    texts = [candidate.text[:READ_CHARS].lower() for candidate in pool]
    matched = _with_phrases(pool, texts, phrases) if phrases else [candidate.bm25 for candidate in pool]
    own = _floored(_length_corrected(pool, matched, weights.length), parsed, texts)
    windows = _windows(pool, own)
    asks = [candidate.conversation is not None and _asks(candidate.text) for candidate in pool]
    lent = _lent(own, asks, windows, weights)
    scores = [
        score * weights.alone if candidate.conversation is None else score + gift
        for candidate, score, gift in zip(pool, own, lent, strict=True)
    ]
    sessions = _session_shares(pool, scores)
    heard = _heard(parsed, pool, asker)
    speaker_words = name_words({candidate.speaker for candidate in pool if candidate.speaker})
    covered = _coverage([term for term in parsed.terms if term not in speaker_words], texts, windows)
    whys: list[list[SignalName]] = []
    for i, candidate in enumerate(pool):
        bonus = 1.0 + weights.session * sessions[i] + weights.coverage * covered[i]
        why: list[SignalName] = ["lexical"] if own[i] else []
        if lent[i]:
            why.append("neighbour")
        if sessions[i] >= 0.5:
            why.append("session")
        for phrase in parsed.phrases:
            if phrase in texts[i]:
                why.append("phrase")
                break
        for name, value in _attributes(parsed, candidate, heard, current_conversation, weights):
            bonus += value
            if value > 0:
                why.append(name)
        scores[i] *= bonus * _damping(candidate, asks[i], weights)
        whys.append(why)
    order = sorted(range(len(pool)), key=lambda i: -scores[i])
    for i in order[:REREAD]:
        for name, factor in _reread(parsed, pool[i], heard, weights):
            scores[i] *= factor
            whys[i].append(name)
    order.sort(key=lambda i: (-scores[i], -pool[i].at_us, i))
    best = scores[order[0]]
    return [Ranked(pool[i], scores[i] / best, tuple(whys[i])) for i in order if scores[i] > 0]


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    best: dict[tuple[str, int, str], Candidate] = {}
    for candidate in candidates:
        # By number where they are numbers: as texts, "9" and "10" would say how many rows are before them.
        key = (candidate.plane, len(candidate.source_id), candidate.source_id)
        known = best.get(key)
        if known is None or candidate.bm25 > known.bm25:
            best[key] = candidate
    return [best[key] for key in sorted(best)]


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


def _length_corrected(pool: Sequence[Candidate], matched: Sequence[float], b: float) -> list[float]:
    """BM25's score of words that occur once in a text of this length: times (k1 + 1) / (1 + k1·(1−b+b·L)).

    L is the length over the median length of the pool, up to 10 (Robertson and Zaragoza, 2009, eq. 3.12).
    """
    lengths = [len(candidate.text) + 1 for candidate in pool]
    middle = sorted(lengths)[len(lengths) // 2]
    return [
        max(0.0, score) * (1 + _BM25_K1) / (1 + _BM25_K1 * (1 - b + b * min(10.0, length / middle)))
        for score, length in zip(matched, lengths, strict=True)
    ]


def _floored(own: Sequence[float], parsed: ParsedQuery, texts: Sequence[str]) -> list[float]:
    """At least `WORD_FLOOR` for each of the query's words in a text that matched."""
    most = WORD_FLOOR * max(1, len(parsed.terms))
    return [
        score
        if score >= most or not score
        else max(score, WORD_FLOOR * max(1, sum(term in text for term in parsed.terms)))
        for score, text in zip(own, texts, strict=True)
    ]


def _windows(pool: Sequence[Candidate], own: Sequence[float]) -> list[_Window]:
    """For each candidate its neighbours as (index, steps from the neighbour to it), none across a session gap.

    Of several rows in one place the one that matches best stands for all.
    """
    # The sequences of a conversation side by side, and far from those of the next one.
    keys = [
        None if candidate.conversation is None else (candidate.conversation << 40) + candidate.sequence
        for candidate in pool
    ]
    places: dict[int, int] = {}
    for i, key in enumerate(keys):
        if key is not None and (key not in places or own[i] > own[places[key]]):
            places[key] = i
    windows: list[_Window] = []
    for i, key in enumerate(keys):
        window: _Window = []
        windows.append(window)
        if key is None:
            continue
        for step in (-2, -1, 1, 2):
            j = places.get(key - step)
            if j is not None and abs(pool[j].at_us - pool[i].at_us) <= SESSION_GAP_US:
                window.append((j, step))
    return windows


def _lent(own: Sequence[float], asks: Sequence[bool], windows: Sequence[_Window], weights: Weights) -> list[float]:
    share = {-2: weights.far, -1: weights.near, 1: weights.near, 2: weights.far}
    lent: list[float] = []
    for window in windows:
        total = 0.0
        for j, step in window:
            if own[j]:
                total += own[j] * (weights.answer if step == 1 and asks[j] else share[step])
        lent.append(total)
    return lent


def _session_shares(pool: Sequence[Candidate], scores: Sequence[float]) -> list[float]:
    """For each candidate the three best scores of its session together, as a share of the best session's."""
    turns = sorted(
        (candidate.conversation, candidate.sequence, candidate.at_us, i)
        for i, candidate in enumerate(pool)
        if candidate.conversation is not None
    )
    sessions: list[list[int]] = []
    before: tuple[int, int] | None = None
    for conversation, _, at_us, i in turns:
        if before is None or before[0] != conversation or abs(at_us - before[1]) > SESSION_GAP_US:
            sessions.append([])
        sessions[-1].append(i)
        before = (conversation, at_us)
    sums = [
        scores[session[0]] if len(session) == 1 else sum(sorted([scores[i] for i in session], reverse=True)[:3])
        for session in sessions
    ]
    best = max(sums, default=0.0) or 1.0
    shares = [0.0] * len(pool)
    for session, total in zip(sessions, sums, strict=True):
        for i in session:
            shares[i] = total / best
    return shares


def _coverage(terms: Sequence[str], texts: Sequence[str], windows: Sequence[_Window]) -> list[float]:
    """The share of the terms, weighted by their rarity in the pool, that a candidate's window holds between them."""
    stems = [(1 << k, stem_of(term)) for k, term in enumerate(terms)]
    held: list[int] = []
    counts = [0] * len(stems)
    for text in texts:
        bits = 0
        for k, (bit, stem) in enumerate(stems):
            if stem in text:
                bits |= bit
                counts[k] += 1
        held.append(bits)
    rarity = [log(1 + len(texts) / (1 + count)) if count else 0.0 for count in counts]
    whole = sum(rarity) or 1.0
    shares: dict[int, float] = {}
    covered: list[float] = []
    for bits, window in zip(held, windows, strict=True):
        for j, _ in window:
            bits |= held[j]
        if bits not in shares:
            shares[bits] = sum(value for k, value in enumerate(rarity) if bits >> k & 1) / whole
        covered.append(shares[bits])
    return covered


def stem_of(term: str) -> str:
    """A word without its last letters: the start that most of its inflections share."""
    return term[: max(4, len(term) - 2)] if term.isascii() else term


def _heard(parsed: ParsedQuery, pool: Sequence[Candidate], asker: Collection[str]) -> frozenset[str]:
    """The speakers whose own words are asked for."""
    terms = set(parsed.terms)
    speakers = {candidate.speaker for candidate in pool if candidate.speaker}
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
        try:
            day = at.replace(year=date.year or at.year, month=date.month, day=date.day)
        except ValueError:
            return 0.0
        days_after = at.toordinal() - day.toordinal()
        if days_after == 0:
            return weights.day
        if 0 < days_after <= 7:
            return weights.day / 2
    return weights.month if same_month else 0.0


def _damping(candidate: Candidate, asks: bool, weights: Weights) -> float:
    question = weights.question if asks else 1.0
    superseded = weights.superseded if candidate.superseded else 1.0
    return question * superseded * (weights.archived if candidate.archived else 1.0)


def _asks(text: str) -> bool:
    return text[-16:].rstrip().endswith(("?", "\uff1f", "\u061f"))


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


def excerpt(content: str, parsed: ParsedQuery, length: int = 240) -> str:
    """At most `length` characters around the place that holds most of the query's words, … marking what is left out."""
    if len(content) <= length:
        return content
    room = length - 2
    if room < 1:
        return ""
    first, last = _densest(content, parsed, room)
    start = max(0, min(first - (room - (last - first)) // 2, len(content) - room))
    end = start + room
    if start:
        space = content.find(" ", start, min(first, start + _BORDER_CHARS))
        start = space + 1 if space >= 0 else start
    if end < len(content):
        space = content.rfind(" ", max(last, end - _BORDER_CHARS), end + 1)
        end = space if space > start else end
    while 0 < start < end and _joined(content, start):
        start += 1
    while start < end < len(content) and _joined(content, end):
        end -= 1
    return ("…" if start else "") + content[start:end] + ("…" if end < len(content) else "")


def _densest(content: str, parsed: ParsedQuery, room: int) -> tuple[int, int]:
    """Where the first window of `room` characters with most distinct query words begins and ends its words."""
    lower = content.lower()
    if len(lower) != len(content):  # a letter that grows in lower case would shift every place after it
        lower = content
    places = sorted(
        (start, start + len(stem), stem)
        for stem in {stem_of(word) for word in (*parsed.terms, *parsed.phrases)}
        for start in _starts(lower, stem)
    )
    best, found, left = 0, (0, 0), 0
    inside: dict[str, int] = {}
    for start, end, stem in places:
        inside[stem] = inside.get(stem, 0) + 1
        while places[left][0] < end - room and places[left][0] < start:
            gone = places[left][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            left += 1
        if len(inside) > best:
            best, found = len(inside), (places[left][0], end)
    return found


def _starts(text: str, stem: str) -> list[int]:
    """Up to 64 places where a word begins with `stem`; a script without spaces has no such border."""
    starts: list[int] = []
    at = text.find(stem)
    while at >= 0 and len(starts) < 64:
        if not at or not stem.isascii() or not text[at - 1].isalnum():
            starts.append(at)
        at = text.find(stem, at + 1)
    return starts


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and after `at` are drawn as one: a cut there would change either."""
    before, after = text[at - 1], text[at]
    if after.isascii():
        return before == "\r" and after == "\n"
    if before == "\u200d" or after == "\u200d" or category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return True
    flags = 0
    while flags < 256 and at - flags > 0 and "\U0001f1e6" <= text[at - flags - 1] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 1 and "\U0001f1e6" <= after <= "\U0001f1ff"
