"""Building the table of contents: the outbox is cut into segments, segments are summarized, periods are rolled up.

Each step does one small piece at a time and leaves a mark in the store until it is done, so that it goes on where it
was ended. What a node holds follows from the events below it alone: in whatever order they came, and however often it
was made anew, it is the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from array import array
from collections.abc import Callable, Sequence
from typing import TypeVar

from beetle.domain.toc import summary
from beetle.domain.toc.periods import day_of, periods_of_day, ulid
from beetle.domain.toc.segments import OVERLAP_US, Segment, cut
from beetle.domain.toc.summary import Sentence, Span, Summary, Text, Word
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.proof import is_whole
from beetle.runtime.planes.toc import day_members
from beetle.store import toc, toc_written
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.toc import DAY_US, LEVELS, SEGMENT, ConversationPlace, CutSegment, GripRow, NodeRow, TextRow, Waiting

DAYS_AT_ONCE = 8
NODES_AT_ONCE = 8
SEGMENTS_IN_ORDER = 5000
"""So many stale segments are put in order: those of one day of a session are summarized one after the other."""
CHILDREN = 5000
"""So many children of a period are read; a day of more segments is summed up by its first ones."""
MANY = 64
"""Of so many children each still hands up all that it has."""

RUNS = itertools.count(int.from_bytes(os.urandom(6)) + 1)
"""Each run that cuts days has a number of its own, that no run of another process has left in the store."""
BEFORE_ALL = Waiting(-1, 0)

WORD_FIELDS = 4
"""Message, begin, end, number of times."""

WordSpan = list[int]
Counted = list[float]
Made = TypeVar("Made")


class Rolled(NamedTuple):
    """What a period is to hold, and which keywords its children are to show."""

    bullets: list[str]
    words: list[Counted]
    keywords: dict[int, list[WordSpan]]


def cut_waiting(invocation: Invocation) -> int:
    """Cut the days in the outbox into segments; how many days.

    The events of a day may be many. They are read and cut beside the writer, which gets what comes of it. A day whose
    events change meanwhile stays in the outbox.
    """
    store, by = invocation.shared.store, invocation.caller.name
    run, done, after = next(RUNS), 0, BEFORE_ALL
    while True:
        invocation.check("the next days are cut")

        def take(tx: WriteTransaction, after: Waiting = after) -> list[Waiting]:
            return toc.take_waiting(tx, run, after, DAYS_AT_ONCE)

        days = store.write(take, grows=False, by=by)
        if not days:
            return done
        cuts: list[DayCut] = []
        for each in days:
            with invocation.reading(heavy=False) as tx:
                cuts.append(cut_day(tx, each))
            invocation.work.rest()
        store.write(lambda tx, cuts=cuts: _keep_cuts(tx, run, cuts), grows=False, by=by)
        done += len(days)
        if len(days) < DAYS_AT_ONCE:
            return done
        after = days[-1]


def summarize_segments(invocation: Invocation) -> int:
    """Choose bullets and words of the segments that have changed; how many segments.

    One whose day waits to be cut again stays as it is until then.
    """
    done, after, cuts = 0, 0, DayCuts()
    while True:
        with invocation.reading(heavy=False) as tx:
            keys = toc.stale_segments(tx, after, SEGMENTS_IN_ORDER)
        if not keys:
            return done
        after = max(keys)
        for at in range(0, len(keys), NODES_AT_ONCE):
            invocation.check("the next segments are summarized")
            with invocation.reading(heavy=False) as tx:
                found = (toc.by_key(tx, key) for key in keys[at : at + NODES_AT_ONCE])
                cut = [(row, cuts.segment(tx, row)) for row in found if row is not None and row.stale]
                made = [
                    (row, summary.summarize(*segment_texts(invocation.key, tx, row, segment)))
                    for row, segment in cut
                    if segment is not None
                ]
            _write(invocation, made, _keep_summary)
            done += len(made)
            invocation.work.rest()


def roll_up(invocation: Invocation) -> int:
    """Sum up days, weeks, months and years whose children have changed; how many periods."""
    return sum(_settle_level(invocation, number) for number in range(SEGMENT - 1, 0, -1))


def _settle_level(invocation: Invocation, number: int) -> int:
    done, after = 0, 0
    while True:
        invocation.check("the next periods are summed up")
        with invocation.reading(heavy=False) as tx:
            rows = toc.stale(tx, number, after, NODES_AT_ONCE)
            made = [(row, rolled_up(invocation.key, tx, row)) for row in rows]
        if not rows:
            return done
        _write(invocation, made, _keep_rolled)
        done, after = done + len(rows), rows[-1].key
        invocation.work.rest()


def _write(
    invocation: Invocation, made: Sequence[tuple[NodeRow, Made]], keep: Callable[[Writing, NodeRow, Made], None]
) -> None:
    """Write what was made of some nodes, unless what one was made of has changed meanwhile: that is made again."""

    def write(tx: WriteTransaction) -> None:
        for row, each in made:
            keep(tx, row, each)

    if made:
        invocation.shared.store.write(write, grows=False, by=invocation.caller.name)


def _keep_summary(tx: Writing, row: NodeRow, made: Summary) -> None:
    grips = grips_of(tx, row, made.bullets)
    words = with_named(row if toc_written.titles(tx, [row.key]) else None, made.words)
    other = words != json.loads(row.words)
    if toc.put(tx, row, [each.grip_id for each in grips], words, json.loads(row.keywords), other=other):
        toc.put_grips(tx, row.space, row.key, [*grips, *toc_written.grips(tx, row.key)])
        stale_parent(tx, row)


def with_named(row: NodeRow | None, words: Sequence[Word]) -> list[Counted]:
    """The words of a segment as they are kept: behind those that a model has named, which `row` holds."""
    named: list[Counted] = [] if row is None else [each for each in json.loads(row.words) if is_named(each)]
    return [*named, *([*each.place, each.times] for each in words)]


def is_named(word: Counted) -> bool:
    """Whether a model has named a word as a keyword: it is marked behind its number."""
    return len(word) > WORD_FIELDS


def _keep_rolled(tx: Writing, row: NodeRow, made: Rolled) -> None:
    own = json.loads(row.keywords)
    before = (json.loads(row.bullets), json.loads(row.words))
    if toc.put(tx, row, made.bullets, made.words, own, other=False):
        for key, keywords in made.keywords.items():
            toc.put_keywords(tx, key, keywords)
        if row.level == LEVELS["year"]:
            _show_years(tx, row.space)
        elif before != (made.bullets, made.words) or not row.bullets:
            stale_parent(tx, row)


def stale_parent(tx: Writing, row: NodeRow) -> None:
    """What is above a node is to be made anew."""
    if row.parent is not None:
        toc.make_stale(tx, row.parent)


# Cutting.


class SegmentCut(NamedTuple):
    """A segment as it is to be: its id, its bounds in milliseconds, the digest of its events."""

    node_id: str
    bounds: tuple[int, int]
    digest: bytes


class DayCut(NamedTuple):
    """What the events of a day of a conversation make of it; `place` None for a conversation that is gone."""

    of: Waiting
    place: ConversationPlace | None
    segments: list[SegmentCut]
    ends_late: bool
    """Whether an event stands in its last five minutes, which are context of the next day's first segment."""


def cut_day(tx: Reading, each: Waiting) -> DayCut:
    """Cut a day of a conversation as its events are now."""
    place = toc.place_of(tx, each.conversation)
    segments: list[SegmentCut] = []
    last = 0
    if place is not None:
        for found in cut(*day_members(tx, *each)):
            segments.append(SegmentCut(found.node_id(*place[1:]), (found.start_ms, found.end_ms), found.digest()))
            last = found.members[-1].at
    return DayCut(each, place, segments, bool(segments) and last >= (each.day + 1) * DAY_US - OVERLAP_US)


def _keep_cuts(tx: WriteTransaction, run: int, cuts: Sequence[DayCut]) -> None:
    kept = [each for each in cuts if toc.settle_waiting(tx, each.of, run)]
    read_behind = {each.of for each in kept}
    for each in kept:
        # Where a conversation came or went meanwhile, its days wait to be cut again.
        if toc.place_of(tx, each.of.conversation) == each.place:
            _keep_day(tx, each)
            if each.ends_late and _next_day(each.of) not in read_behind:
                _look_at_next_day(tx, each.of)


def _next_day(day: Waiting) -> Waiting:
    return day._replace(day=day.day + 1)


def _keep_day(tx: Writing, cut: DayCut) -> None:
    """Bring the segments of a day of a conversation in line with what its events make of it."""
    # A damaged one may be of another space, and have the id of one of this.
    known = {(segment.space, segment.node_id): segment for segment in toc.segments(tx, *cut.of)}
    if cut.place is not None and cut.segments:
        day = _periods(tx, cut.place.space, cut.segments[0].bounds[0])
        for segment in cut.segments:
            _keep_segment(tx, cut.place, cut.of, day, segment, known)
    for gone in known.values():
        toc.drop_segment(tx, gone.key)
        stays = toc.drop_if_empty(tx, gone.parent)
        # A year's keywords tell it from the others.
        for key in [each.key for each in toc.level(tx, gone.space, LEVELS["year"])] if stays is None else [stays]:
            toc.make_stale(tx, key)


def _keep_segment(
    tx: Writing,
    place: ConversationPlace,
    each: Waiting,
    day: int,
    segment: SegmentCut,
    known: dict[tuple[int, str], CutSegment],
) -> None:
    node_id, bounds, digest = segment
    found = known.pop((place.space, node_id), None)
    if found is None:
        # A damaged one may stand with another day or conversation.
        elsewhere = toc.node(tx, place.space, node_id)
        if elsewhere is not None:
            toc.drop_segment(tx, elsewhere.key)
        toc.add_node(tx, place.space, SEGMENT, node_id, day, bounds, (each.conversation, each.day, digest))
        if elsewhere is not None and elsewhere.parent is not None:
            toc.drop_if_empty(tx, elsewhere.parent)
    elif (found.members, found.parent, (found.starts, found.ends)) == (digest, day, bounds):
        return
    else:
        toc.recut(tx, found.key, day, bounds, digest)
    toc.make_stale(tx, day)


def _look_at_next_day(tx: Writing, each: Waiting) -> None:
    """The first segment of the next day is read with the last minutes of this one."""
    after = _next_day(each)
    begin = after.day * DAY_US // 1000
    # A day that waits may have been read by another run with the minutes before as they were.
    near = any(segment.starts - begin <= OVERLAP_US // 1000 for segment in toc.segments(tx, *after))
    if near or toc.waits(tx, *after):
        toc.put_waiting(tx, *after)


def _periods(tx: Writing, space: int, at_ms: int) -> int:
    """The key of the day of a time; it and the periods above it are made where they are missing."""
    key: int | None = None
    for fresh in periods_of_day(day_of(at_ms)):
        found = toc.key_of(tx, space, fresh.node_id)
        if found is None:
            if key is not None:
                toc.make_stale(tx, key)
            found = toc.add_node(tx, space, LEVELS[fresh.level], fresh.node_id, key, (fresh.start_ms, fresh.end_ms))
        key = found
    assert key is not None
    return key


# Summarizing.


class SegmentMessages(NamedTuple):
    """The keys of a segment's messages, and of those that are read with it; `digest` is the segment's."""

    digest: bytes
    own: array[int]
    context: array[int]


class DayCuts:
    """The segments of days as their events make them now. The last day is kept: its segments are asked for in a row."""

    def __init__(self) -> None:
        self._day: tuple[int, int] | None = None
        self._segments: dict[str, SegmentMessages] = {}

    def segment(self, tx: Reading, row: NodeRow) -> SegmentMessages | None:
        """The messages of a segment; None where they are others than it was cut from, as the outbox says then."""
        assert row.conversation is not None and row.day is not None
        digest = toc.digest_of(tx, row.key)
        day = (row.conversation, row.day)
        found = self._segments.get(row.node_id) if day == self._day else None
        if found is None or found.digest != digest:
            self._day, self._segments = day, self._cut(tx, *day)
            found = self._segments.get(row.node_id)
        return None if found is None or found.digest != digest else found

    @staticmethod
    def _cut(tx: Reading, conversation: int, day: int) -> dict[str, SegmentMessages]:
        if (place := toc.place_of(tx, conversation)) is None:
            return {}
        return {each.node_id(*place[1:]): _messages(each) for each in cut(*day_members(tx, conversation, day))}


def _messages(segment: Segment) -> SegmentMessages:
    own, context = (array("q", (each.message for each in some)) for some in segment)
    return SegmentMessages(segment.digest(), own, context)


def segment_texts(key: bytes, tx: Reading, row: NodeRow, segment: SegmentMessages) -> tuple[list[Text], list[Text]]:
    """What may be read of a segment's events, in order, and of those before it."""
    own = _texts(key, tx, row.space, segment.own)
    return own, _texts(key, tx, row.space, segment.context)


def _texts(key: bytes, tx: Reading, space: int, messages: Sequence[int]) -> list[Text]:
    found = (each for each in toc.texts(tx, space, messages) if is_whole(key, each))
    return [Text(each.message, each.role, each.content[: each.length]) for each in found]


def grips_of(tx: Reading, row: NodeRow, bullets: Sequence[Span]) -> list[GripRow]:
    """The grips of a segment's bullets: with the same ids wherever the same sentences are chosen."""
    assert row.conversation is not None
    place = toc.place_of(tx, row.conversation)
    if place is None:
        return []
    found: list[GripRow] = []
    for each in bullets:
        at, name = toc.named(tx, each.message)
        parts = (place.space_id, place.channel_id, place.conversation_id, name, each.begin, each.end)
        digest = hashlib.sha256(repr(("grip", *parts)).encode(errors="surrogatepass")).digest()
        grip_id = f"grip:{ulid(at // 1000, digest)}"
        found.append(GripRow(grip_id, row.key, each.message, each.message, each.begin, each.end, None))
    return found


# Rolling up.


def rolled_up(key: bytes, tx: Reading, row: NodeRow) -> Rolled:
    """The bullets and words of a period, of its children's."""
    children = toc.children(tx, row.key, CHILDREN)
    below = bullet_ids(tx, children)
    texts = read_places(key, tx, row.space, children, below)
    named, places, chosen = ranked_words(children, texts)
    keywords = {
        child.key: chosen[at] or [places[at][index] for index in order[: summary.KEYWORDS]]
        for at, (child, order) in enumerate(zip(children, summary.rank_words(named), strict=True))
    }
    totals: dict[str, Word] = {}
    for at, words in enumerate(named):
        for index, (word, count) in enumerate(words):
            first = totals.get(word)
            place = Span(*places[at][index]) if first is None else first.place
            totals[word] = Word(place, count + (0.0 if first is None else first.times))
    # Equal ones stay in the order in which they came.
    best = sorted(totals.values(), key=lambda each: -each.times)[: summary.CANDIDATES]
    weights = {word: each.times for word, each in totals.items()}
    bullets = _best_bullets(tx, row, below, texts, weights)
    return Rolled(bullets, [[*each.place, each.times] for each in best], keywords)


def _best_bullets(
    tx: Reading, row: NodeRow, ids: Sequence[str], texts: dict[int, TextRow], weights: dict[str, float]
) -> list[str]:
    known = toc.grips(tx, row.space, ids)
    sentences: list[Sentence] = []
    named: list[str] = []
    for grip_id in dict.fromkeys(ids):
        grip = known.get(grip_id)
        text = None if grip is None else bullet_text(grip, texts)
        if grip is not None and text:
            sentences.append(Sentence(Span(grip.message, grip.begins, grip.ends), text, len(sentences)))
            named.append(grip_id)
    chosen = summary.choose(sentences, weights, summary.PERIOD_BULLETS)
    return [named[each.order] for each in chosen]


def bullet_ids(tx: Reading, children: Sequence[NodeRow]) -> list[str]:
    """The bullets of a period's children; of a segment that a model has summed up, the model's."""
    most = summary.PERIOD_BULLETS if len(children) <= MANY else 1
    written = toc_written.ids(tx, [child.key for child in children if child.level == SEGMENT])
    return [each for child in children for each in (written.get(child.key) or json.loads(child.bullets))[:most]]


def read_places(
    key: bytes, tx: Reading, space: int, nodes: Sequence[NodeRow], bullets: Sequence[str]
) -> dict[int, TextRow]:
    """The texts in which words and bullets of some nodes stand, as far as they may be read."""
    grips = toc.grips(tx, space, bullets)
    messages = {each.message for each in grips.values()} | {each.last_message for each in grips.values()}
    messages |= {int(place[0]) for node in nodes for place in json.loads(node.words)}
    return {each.message: each for each in toc.texts(tx, space, sorted(messages)) if is_whole(key, each)}


def ranked_words(
    nodes: Sequence[NodeRow], texts: dict[int, TextRow]
) -> tuple[list[list[tuple[str, float]]], list[list[WordSpan]], list[list[WordSpan]]]:
    """The words of each node with their counts, where each stands, and the places of those that a model has named."""
    most = summary.CANDIDATES if len(nodes) <= MANY else summary.KEYWORDS
    named: list[list[tuple[str, float]]] = []
    places: list[list[WordSpan]] = []
    chosen: list[list[WordSpan]] = []
    for node in nodes:
        words: dict[str, float] = {}
        stand: list[WordSpan] = []
        by_model: list[WordSpan] = []
        for each in json.loads(node.words)[:most]:
            message, begin, end, count = each[:WORD_FIELDS]
            text = texts.get(message)
            if text is None:
                continue
            if is_named(each):
                by_model.append([message, begin, end])
            word = text.content[: text.length][begin:end].lower()
            if word not in words:
                words[word] = count
                stand.append([message, begin, end])
        named.append(list(words.items()))
        places.append(stand)
        chosen.append(by_model)
    return named, places, chosen


def bullet_text(grip: GripRow, texts: dict[int, TextRow]) -> str | None:
    """What a bullet says; None where what it rests on may not be shown any more."""
    text, last = texts.get(grip.message), texts.get(grip.last_message)
    if text is None or last is None:
        return None
    return grip.written if grip.written is not None else text.content[: text.length][grip.begins : grip.ends] or None


def _show_years(tx: Writing, space: int) -> None:
    """Choose the keywords of a space's years, which have no period above them."""
    years = toc.level(tx, space, LEVELS["year"])
    messages = {int(place[0]) for year in years for place in json.loads(year.words)}
    texts = {each.message: each for each in toc.texts(tx, space, sorted(messages))}
    named, places, _ = ranked_words(years, texts)
    for at, order in enumerate(summary.rank_words(named)):
        toc.put_keywords(tx, years[at].key, [places[at][index] for index in order[: summary.KEYWORDS]])
