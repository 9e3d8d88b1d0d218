"""Messages are found by their times, though turns came late and messages have times of their own: compared with a
search through all of them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.store import message_times, session_order, toc
from beetle.store.session_order import Placed
from tests.store.conftest import CONVERSATION, assert_clean, commit, open_runtime, store_of, turn
from tests.store.make_schema_fixture import FIXTURE

TURNS = 70
BEGIN_US = 1_772_323_200_000_000
ALL_SQL = """
SELECT m.conversation, m.at, iif(t.door = 'event', t.turn_id, ''), iif(t.door = 'event', 0, t.sequence), m.position,
  m.message, m.visibility
FROM message m JOIN turn t ON t.turn = m.turn
JOIN conversation c ON c.conversation = m.conversation WHERE c.conversation_id = 'c1'
"""
KINDS = ("shared", "private"), ("shared",)


def day(number: int) -> str:
    return f"2026-03-{number + 1:02}T00:00:00Z"


def written(seed: int, kind: str) -> list[dict[str, Any]]:
    """Turns of three messages: in order and late, some with messages that have times of their own."""
    chance = random.Random(seed)
    days = [min(29, n * 30 // TURNS) for n in range(TURNS)]
    if kind == "backwards":
        days.reverse()
    turns = []
    for n, each in enumerate(days):
        at = chance.randrange(30) if chance.random() < 0.2 else each
        made = turn(f"t{n}", "one word", "another", "a third", at=day(at))
        for message in made["messages"]:
            if kind == "apart" or chance.random() < 0.1:
                message["at"] = day(chance.randrange(30))
            message["visibility"] = chance.choice(["shared", "shared", "private"])
        turns.append(made)
    return turns


def write(memory: MemoryRuntime, seed: int, kind: str) -> None:
    """A session that is to be looked through, `c1`, and another one beside it."""
    turns = written(seed, kind)
    for first in range(0, TURNS, 9):
        if kind != "events":
            commit(memory, *turns[first : first + 9])
        commit(memory, turn(f"other{first}", "elsewhere"), conversation={**CONVERSATION, "conversation_id": "c2"})
    if kind == "events":
        for n in random.Random(seed).sample(range(60), 60):
            at = BEGIN_US // 1000 + n // 4 * 43_200_000
            made = {"event_id": f"e{n * 7 % 60}", "session_id": "c1", "timestamp_ms": at, "event_type": "user_message"}
            memory.call("event.ingest", {"event": {**made, "role": "user", "text": "one word"}})


@pytest.fixture(scope="module", params=[(1, "mixed"), (3, "backwards"), (4, "apart"), (5, "events")])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_runtime(tmp_path_factory.mktemp("times") / "store.db") as memory:
        write(memory, *request.param)
        with store_of(memory).read() as tx:
            everything = sorted((Placed(*row[:5]), row[5], row[6]) for row in tx.rows(ALL_SQL))
        yield memory, everything


def seen(everything: Any, kinds: tuple[str, ...]) -> list[tuple[Placed, int]]:
    return [(place, message) for place, message, visibility in everything if visibility in kinds]


@pytest.mark.parametrize("kinds", KINDS, ids=["private too", "shared"])
def test_a_place_leads_to_the_messages_before_and_behind_it(held: Any, kinds: tuple[str, ...]) -> None:
    memory, everything = held
    among = seen(everything, kinds)
    with store_of(memory).read() as tx:
        for place, message, _ in everything[::19]:
            assert session_order.place(tx, 1, message) == place
            for most in (0, 1, 4, 1000):
                below = [key for at, key in among if at < place]
                above = [key for at, key in among if at > place]
                told = [each.message for each in session_order.before(tx, place, kinds, most)]
                assert told == (below[-most:] if most else [])
                assert [each.message for each in session_order.after(tx, place, kinds, most)] == above[:most]


def test_two_places_lead_to_the_messages_between_them(held: Any) -> None:
    memory, everything = held
    among = seen(everything, KINDS[0])
    with store_of(memory).read() as tx:
        for first, last in zip(everything[::11], everything[5::11], strict=False):
            inside = [key for at, key in among if first[0] <= at <= last[0]]
            found = session_order.between(tx, first[0], last[0], KINDS[0], 4)
            assert [each.message for each in found] == inside[:4]
            assert [each.at_ms * 1000 for each in found] == [at.at for at, key in among if key in inside][:4]


def test_a_stretch_of_time_leads_to_its_shared_messages(held: Any) -> None:
    memory, everything = held
    among = seen(everything, KINDS[1])
    conversation = everything[0][0].conversation
    with store_of(memory).read() as tx:
        for begin in range(-1, 31):
            for length in (0, 3, 40):
                low, high = (BEGIN_US + number * 86_400_000_000 for number in (begin, begin + length))
                members = sorted(row[4] for row in toc.members(tx, conversation, low, high))
                assert members == sorted(key for at, key in among if low <= at.at <= high)


def test_a_stretch_of_time_leads_to_whether_anything_live_was_said_and_to_the_newest(held: Any) -> None:
    memory, everything = held
    conversation = everything[0][0].conversation
    with store_of(memory).read() as tx:
        space = tx.value("SELECT space FROM conversation WHERE conversation = ?", conversation)
        for begin in range(-1, 31, 3):
            for length in (0, 3, 40):
                low, high = (BEGIN_US + number * 86_400_000_000 for number in (begin, begin + length))
                inside = [(at.at, key, visibility) for at, key, visibility in everything if low <= at.at <= high]
                for kinds in KINDS:
                    told = toc.has_events(tx, space, conversation, low, high, kinds)
                    assert told is any(visibility in kinds for _, _, visibility in inside)
                newest = toc.unsegmented_of(tx, conversation, low, high, 10)
                # Which of those of the oldest time that is among them is not said.
                times = sorted((at for at, _, _ in inside), reverse=True)[:10]
                assert len(newest) <= len(times)
                shared = {key: at for at, key, visibility in inside if visibility == "shared"}
                assert set(newest) <= set(shared)
                assert {key for key, at in shared.items() if at > times[-1]} <= set(newest) if times else not newest


def test_the_index_has_the_messages_alone_that_have_not_their_turns_time(held: Any) -> None:
    memory, everything = held
    with store_of(memory).read() as tx:
        rows = tx.value("SELECT count(*) FROM message INDEXED BY message_apart WHERE apart = 1")
        apart = tx.value("SELECT count(*) FROM message m JOIN turn t ON t.turn = m.turn WHERE m.at <> t.at")
        assert rows == apart < len(everything)
    assert_clean(memory)


@pytest.mark.parametrize("own", [None, day(3)], ids=["its turn's time", "its own"])
def test_a_message_that_says_it_wrongly_is_found_and_put_right(tmp_path: Path, own: str | None) -> None:
    path = tmp_path / "store.db"
    second = turn("t2", "two")
    if own is not None:
        second["messages"][0]["at"] = own
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "one"), second)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE message SET apart = 1 - apart WHERE message_id LIKE 't2%'")
    connection.close()
    with open_runtime(path) as memory:
        (finding,) = memory.verify_store().findings
        assert finding.problem == "says wrongly whether it has its turn's time"
        assert [each.outcome for each in memory.repair_transcript_safe().mended] == ["recounted"]
        assert_clean(memory)


def test_a_migration_tells_apart_what_has_its_own_time(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(FIXTURE, path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE message SET at = at + 1 WHERE message = (SELECT max(message) FROM message)")
    connection.close()
    with open_runtime(path) as memory, store_of(memory).read() as tx:
        assert [row[0] for row in tx.rows("SELECT apart FROM message ORDER BY message")][-2:] == [0, 1]
        assert not list(tx.rows(message_times.MISTAKEN_SQL))
