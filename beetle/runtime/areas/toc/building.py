"""Building the table of contents: the outbox is cut into segments, segments are summarized, periods are rolled up.

Each step does one small piece at a time and leaves a mark in the store until it is done, so that it goes on where it
was ended. What a node holds follows from the events below it alone: in whatever order they came, and however often it
was made anew, it is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from beetle.domain.toc import summary
from beetle.domain.toc.periods import day_of, periods_of_day, ulid
from beetle.domain.toc.segments import OVERLAP_US, Member, Segment, cut
from beetle.domain.toc.summary import Sentence, Span, Summary, Text, Word
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.proof import is_whole
from beetle.store import toc
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.toc import DAY_US, LEVELS, SEGMENT, ConversationPlace, CutSegment, GripRow, NodeRow, TextRow, Waiting

DAYS_AT_ONCE = 8
NODES_AT_ONCE = 8
CHILDREN = 5000
"""So many children of a period are read; a day of more segments is summed up by its first ones."""
MANY = 64
"""Of so many children each still hands up all that it has."""

Place3 = list[int]


class Rolled(NamedTuple):
    """What a period is to hold, and which keywords its children are to show."""

    bullets: list[str]
    words: list[list[float]]
    keywords: dict[int, list[Place3]]


def cut_waiting(invocation: Invocation) -> int:
    """Cut the days in the outbox into segments; how many days."""
    done = 0
    while True:
        invocation.check("the next days are cut")
        count = invocation.shared.store.write(_cut_some, grows=False, by=invocation.caller.name)
        done += count
        if count < DAYS_AT_ONCE:
            return done
        invocation.work.rest()


def summarize_segments(invocation: Invocation) -> int:
    """Choose bullets and words of the segments that have changed; how many segments."""
    return _settle_level(invocation, SEGMENT)


def roll_up(invocation: Invocation) -> int:
    """Sum up days, weeks, months and years whose children have changed; how many periods."""
    return sum(_settle_level(invocation, number) for number in range(SEGMENT - 1, 0, -1))


def _settle_level(invocation: Invocation, number: int) -> int:
    done, after = 0, 0
    while True:
        invocation.check("the next nodes are summarized")
        with invocation.reading(heavy=False) as tx:
            rows = toc.stale(tx, number, after, NODES_AT_ONCE)
            made = [(row, _made(invocation, tx, row)) for row in rows]

        def keep(tx: WriteTransaction, made: Sequence[tuple[NodeRow, Summary | Rolled]] = tuple(made)) -> None:
            for row, each in made:
                _keep(tx, row, each)

        if not rows:
            return done
        invocation.shared.store.write(keep, grows=False, by=invocation.caller.name)
        done, after = done + len(rows), rows[-1].key
        invocation.work.rest()


def _made(invocation: Invocation, tx: Reading, row: NodeRow) -> Summary | Rolled:
    return summarized(invocation.key, tx, row) if row.level == SEGMENT else rolled_up(invocation.key, tx, row)


def _keep(tx: Writing, row: NodeRow, made: Summary | Rolled) -> None:
    """Write what was made of a node, unless what it was made of has changed meanwhile; then it is made again."""
    if isinstance(made, Summary):
        grips = _grips(tx, row, made.bullets)
        words = [[*each.place, each.times] for each in made.words]
        same = words == json.loads(row.words)
        if toc.put(tx, row, [each.grip_id for each in grips], words, json.loads(row.keywords), other=not same):
            toc.put_grips(tx, row.space, row.key, [*grips, *_written(tx, row)])
            _stale_parent(tx, row)
        return
    own = json.loads(row.keywords)
    before = (json.loads(row.bullets), json.loads(row.words))
    if toc.put(tx, row, made.bullets, made.words, own, other=False):
        for key, keywords in made.keywords.items():
            toc.put_keywords(tx, key, keywords)
        if row.level == LEVELS["year"]:
            _show_years(tx, row.space)
        elif before != (made.bullets, made.words) or not row.bullets:
            _stale_parent(tx, row)


def _stale_parent(tx: Writing, row: NodeRow) -> None:
    if row.parent is not None:
        toc.make_stale(tx, row.parent)


# Cutting.


def _cut_some(tx: WriteTransaction) -> int:
    found = toc.waiting(tx, DAYS_AT_ONCE)
    for each in found:
        cut_day(tx, each)
        toc.settle_waiting(tx, each)
    return len(found)


def cut_day(tx: Writing, each: Waiting) -> None:
    """Bring the segments of a day of a conversation in line with its events."""
    place = toc.place_of(tx, each.conversation)
    begin = each.day * DAY_US
    before: list[Member] = []
    own: list[Member] = []
    if place is not None:
        own = [Member(*row) for row in toc.members(tx, each.conversation, begin, begin + DAY_US - 1)]
        before = sorted(Member(*row) for row in toc.members(tx, each.conversation, begin - OVERLAP_US, begin - 1))
    known = {segment.node_id: segment for segment in toc.segments(tx, each.conversation, each.day)}
    if place is not None and own:
        day = _periods(tx, place.space, own[0].at // 1000)
        for segment in cut(own, before):
            _keep_segment(tx, place, each, day, segment, known)
    for gone in known.values():
        toc.drop_segment(tx, gone.key)
        stays = toc.drop_if_empty(tx, gone.parent)
        # A year's keywords tell it from the others.
        for key in [each.key for each in toc.level(tx, gone.space, LEVELS["year"])] if stays is None else [stays]:
            toc.make_stale(tx, key)
    if own and max(member.at for member in own) >= begin + DAY_US - OVERLAP_US:
        _look_at_next_day(tx, each)


def _keep_segment(
    tx: Writing, place: ConversationPlace, each: Waiting, day: int, segment: Segment, known: dict[str, CutSegment]
) -> None:
    node_id = segment.node_id(*place[1:])
    bounds, digest = (segment.start_ms, segment.end_ms), segment.digest()
    found = known.get(node_id)
    if found is not None and found.space == place.space:
        del known[node_id]
        if (found.members, found.parent, (found.starts, found.ends)) == (digest, day, bounds):
            return
        toc.recut(tx, found.key, day, bounds, digest)
    else:
        toc.add_node(tx, place.space, SEGMENT, node_id, day, bounds, (each.conversation, each.day, digest))
    toc.make_stale(tx, day)


def _look_at_next_day(tx: Writing, each: Waiting) -> None:
    """The first segment of the next day is read with the last minutes of this one."""
    after = Waiting(each.conversation, each.day + 1)
    begin = after.day * DAY_US // 1000
    if any(segment.starts - begin <= OVERLAP_US // 1000 for segment in toc.segments(tx, *after)):
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


def summarized(key: bytes, tx: Reading, row: NodeRow) -> Summary:
    """The bullets and words of a segment."""
    own, context = segment_texts(key, tx, row)
    return summary.summarize(own, context)


def segment_texts(key: bytes, tx: Reading, row: NodeRow) -> tuple[list[Text], list[Text]]:
    """What may be read of a segment's events, in order, and of those before it."""
    assert row.conversation is not None and row.day is not None
    begin = row.day * DAY_US
    day = [Member(*each) for each in toc.members(tx, row.conversation, begin, begin + DAY_US - 1)]
    before = sorted(Member(*each) for each in toc.members(tx, row.conversation, begin - OVERLAP_US, begin - 1))
    place = toc.place_of(tx, row.conversation)
    for segment in () if place is None else cut(day, before):
        if place is not None and segment.node_id(*place[1:]) == row.node_id:
            own = _texts(key, tx, row.space, [each.message for each in segment.members])
            return own, _texts(key, tx, row.space, [each.message for each in segment.context])
    return [], []  # its events have changed: the outbox says so


def _texts(key: bytes, tx: Reading, space: int, messages: Sequence[int]) -> list[Text]:
    found = (each for each in toc.texts(tx, space, messages) if is_whole(key, each))
    return [Text(each.message, each.role, each.content[: each.length]) for each in found]


def _grips(tx: Reading, row: NodeRow, bullets: Sequence[Span]) -> list[GripRow]:
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


def _written(tx: Reading, row: NodeRow) -> list[GripRow]:
    return toc.written_grips(tx, row.key)


# Rolling up.


def rolled_up(key: bytes, tx: Reading, row: NodeRow) -> Rolled:
    """The bullets and words of a period, of its children's."""
    children = toc.children(tx, row.key, CHILDREN)
    texts = read_places(key, tx, row.space, children)
    named, places = ranked_words(children, texts)
    keywords = {
        child.key: [places[at][index] for index in order[: summary.KEYWORDS]]
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
    bullets = _best_bullets(tx, row, children, texts, weights)
    return Rolled(bullets, [[*each.place, each.times] for each in best], keywords)


def _best_bullets(
    tx: Reading, row: NodeRow, children: Sequence[NodeRow], texts: dict[int, TextRow], weights: dict[str, float]
) -> list[str]:
    ids = _bullet_ids(children)
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


def _bullet_ids(children: Sequence[NodeRow]) -> list[str]:
    most = summary.PERIOD_BULLETS if len(children) <= MANY else 1
    return [grip_id for child in children for grip_id in json.loads(child.bullets)[:most]]


def read_places(key: bytes, tx: Reading, space: int, nodes: Sequence[NodeRow]) -> dict[int, TextRow]:
    """The texts in which words and bullets of some nodes stand, as far as they may be read."""
    grips = toc.grips(tx, space, _bullet_ids(nodes))
    messages = {each.message for each in grips.values()} | {each.last_message for each in grips.values()}
    messages |= {int(place[0]) for node in nodes for place in json.loads(node.words)}
    return {each.message: each for each in toc.texts(tx, space, sorted(messages)) if is_whole(key, each)}


def ranked_words(
    nodes: Sequence[NodeRow], texts: dict[int, TextRow]
) -> tuple[list[list[tuple[str, float]]], list[list[Place3]]]:
    """The words of each node with their counts, and where each stands."""
    most = summary.CANDIDATES if len(nodes) <= MANY else summary.KEYWORDS
    named: list[list[tuple[str, float]]] = []
    places: list[list[Place3]] = []
    for node in nodes:
        words: list[tuple[str, float]] = []
        stand: list[Place3] = []
        for message, begin, end, count in json.loads(node.words)[:most]:
            text = texts.get(message)
            if text is not None:
                words.append((text.content[: text.length][begin:end].lower(), count))
                stand.append([message, begin, end])
        named.append(words)
        places.append(stand)
    return named, places


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
    named, places = ranked_words(years, texts)
    for at, order in enumerate(summary.rank_words(named)):
        toc.put_keywords(tx, years[at].key, [places[at][index] for index in order[: summary.KEYWORDS]])
