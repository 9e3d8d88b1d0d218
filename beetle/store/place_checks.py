"""What follows from the event log: the places of events in their spaces, and the turns that conversations must hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import restores
from beetle.store.engine.progress import EVERY
from beetle.store.engine.transaction import Reading, Row
from beetle.store.event_places import Places, is_visible
from beetle.store.verify import Finding

MOST = 100
EVENTS_SQL = "SELECT seq, space FROM event_log WHERE space IS NOT NULL ORDER BY seq"
PLACE_SQL = "SELECT seq, matter, place, place_private, place_shared FROM event_place WHERE space = ? AND place = ?"
COUNTS_SQL = "SELECT space, min(place), max(place), count(*) FROM event_place GROUP BY space"
STRAY_SQL = "SELECT seq FROM event_place WHERE space = ? AND (place < 1 OR place > ?) LIMIT 100"
TURNS_SQL = """
SELECT seq, space, topic, event, subject FROM event_log
WHERE event IN ('committed', 'imported') AND topic IN ('transcript', 'memory') ORDER BY seq
"""
HELD_SQL = """
SELECT c.last_sequence FROM conversation c JOIN space s ON s.space = c.space
WHERE s.memory_space_id = ? AND c.channel_id = ? AND c.conversation_id = ?
"""


def places(tx: Reading, at: Callable[[int], None]) -> Iterator[Finding]:
    """Events whose place does not follow from the one before."""
    last: dict[str, _Reached] = {}
    told = 0
    for rows, (seq, space) in enumerate(tx.rows(EVENTS_SQL)):
        if not rows % EVERY:
            at(rows)
        problem = last.setdefault(space, _Reached()).step(seq, tx.row(PLACE_SQL, space, last[space].place + 1))
        if problem is not None:
            told += 1
            yield Finding("event_places", f"row {seq}", problem)
        if told >= MOST:
            return
    for space, first, highest, count in list(tx.rows(COUNTS_SQL)):
        reached = 0 if space not in last else last[space].place
        if (first, highest, count) != (1, reached, reached):
            for (seq,) in tx.rows(STRAY_SQL, space, reached):
                yield Finding("event_places", f"row {seq}", "is the place of an event that is not there")


class _Reached:
    """How far the events of a space have places; `counts` None behind one whose place is not known."""

    def __init__(self) -> None:
        self.place = 0
        self._counts: Places | None = Places(0, 0, 0)

    def step(self, seq: int, found: Row | None) -> str | None:
        """What is wrong with the next place, which is to be this event's."""
        if found is None or found[0] != seq:
            self._counts = None
            # That of a later event is still to come.
            self.place += found is None or found[0] < seq
            return "has no place in its space, or one in another"
        _, matter, *counted = found
        before, here = self._counts, Places(*counted)
        self.place, self._counts = self.place + 1, here
        steps = (1, int(is_visible(matter, "private")), int(is_visible(matter, "shared")))
        if before is None or here == Places(*(a + b for a, b in zip(before, steps, strict=True))):
            return None
        return "its place does not follow from the one before"


class Named(NamedTuple):
    """A conversation by the names that the event log knows it by."""

    channel_id: str
    conversation_id: str


def missing_turns(tx: Reading) -> Iterator[tuple[str, Named, str]]:
    """(memory_space_id, conversation, problem) of conversations that hold less than the log tells of."""
    expected: dict[str, dict[Named, int]] = {}
    imported: dict[str, dict[Named, int]] = {}
    undone = restores.undone(tx)
    for seq, space, topic, event, text in tx.rows(TURNS_SQL):
        if restores.is_undone(undone, seq):
            # A snapshot from before it was put in the store's place; the log went on.
            continue
        subject = subject_of(text)
        if topic == "memory":
            fresh = imported.pop(space, {})
            if subject.get("kind") == "space":
                # A space is taken in whole: what was there before has made room.
                expected[space] = fresh
            continue
        named, last = (
            Named(subject.get("channel_id", ""), subject.get("conversation_id", "")),
            subject.get("last_sequence"),
        )
        if isinstance(last, int):
            expected.setdefault(space, {})[named] = last
            if event == "imported":
                imported.setdefault(space, {})[named] = last
    for space, conversations in expected.items():
        for named, last in conversations.items():
            held = tx.value(HELD_SQL, space, *named)
            if held is None and last:
                yield space, named, "is not there, and the event log tells of its turns"
            elif held is not None and (not isinstance(held, int) or held < last):
                yield space, named, f"holds turns up to {held}, and the event log tells of {last}"


def subject_of(text: Any) -> dict[str, Any]:
    """The subject of an event; empty where it is damaged."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
