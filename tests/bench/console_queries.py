"""What the console asks a daemon, one answer at a time, each beside a plain SQL query for the same rows.

The floor runs in this process on a connection of its own with the same page cache, and turns rows into nothing: it has
no socket, no gate, no report. A ratio tells what those add, and whether a query reads more than it shows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from beetle.client import Client
from tests.bench.console_store import LONG, Made, short_name, time_of
from tests.running import quantiles

PAGE = 100
TURNS = 50
SECONDS = 3.0
"""After so long a question is not asked again, though it was asked fewer times than wished."""
LEAST = 3

SKILLS_SQL = """
SELECT s.name, s.revision, r.title, r.topic, r.summary FROM skill s
JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision WHERE s.space = 1 ORDER BY s.name LIMIT 101
"""
NEWEST_SKILLS_SQL = """
SELECT s.name, s.revision, r.title, r.topic, r.summary FROM skill s
JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE s.space = 1 ORDER BY s.updated_at DESC, s.name DESC LIMIT 101
"""
SKILLS_WITH_SQL = """
SELECT s.name, s.revision, r.title, r.topic, r.summary FROM skill s
JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE s.space = 1 AND (s.name LIKE ?1 OR r.title LIKE ?1 OR r.topic LIKE ?1 OR r.summary LIKE ?1)
ORDER BY s.name LIMIT 101
"""
SKILL_SQL = """
SELECT * FROM skill s JOIN skill_revision r ON r.skill = s.skill
WHERE s.space = 1 AND s.name = 'runtime_skill__' || ? ORDER BY r.revision
"""
CONVERSATIONS_SQL = """
SELECT channel_id, conversation_id, turns, first_at, last_at FROM conversation WHERE space = 1
ORDER BY conversation DESC LIMIT 101
"""
CONVERSATIONS_WITH_SQL = """
SELECT channel_id, conversation_id, turns, first_at, last_at FROM conversation
WHERE space = 1 AND conversation_id LIKE ? ORDER BY conversation DESC LIMIT 101
"""
LONG_SQL = "SELECT conversation FROM conversation WHERE conversation_id = ?"
TURNS_COLUMNS = """
SELECT t.turn_id, t.sequence, t.at, m.*, b.content FROM turn t JOIN message m ON m.turn = t.turn
JOIN body b ON b.message = m.message WHERE t.conversation = ?1
"""
LATEST_SQL = f"{TURNS_COLUMNS} AND t.sequence > ?2 ORDER BY t.sequence DESC, m.position LIMIT 50"
ONE_SQL = f"{TURNS_COLUMNS} AND t.sequence = ?2"
AFTER_SQL = f"{TURNS_COLUMNS} AND t.sequence > ?2 ORDER BY t.sequence LIMIT 50"
COUNTS_SQL = """
SELECT (SELECT count(*) FROM conversation), (SELECT count(*) FROM turn), (SELECT count(*) FROM message),
  (SELECT count(*) FROM skill), (SELECT count(*) FROM skill_revision)
"""
LOG_SQL = "SELECT * FROM event_log ORDER BY seq DESC LIMIT 100"
MATCH_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH ? ORDER BY rank LIMIT 200"


class Question(NamedTuple):
    """One thing that the console asks; the number is a chance one, so that not the same row is asked for each time."""

    name: str
    ask: Callable[[Client, int], object]
    floor: Callable[[apsw.Connection, int], object] | None


def questions(made: Made, long: int) -> Iterator[Question]:
    """All of them; `long` is the key of the long conversation."""
    where = {"channel_id": "local", "conversation_id": LONG}

    def plain(sql: str, *values: Any) -> Callable[[apsw.Connection, int], object]:
        return lambda connection, _: connection.execute(sql, values).fetchall()

    def turns(anchor: Callable[[int], Any], limit: int) -> Callable[[Client, int], object]:
        return lambda client, number: client.transcript_timeline(
            conversation=where, view="host_ui", anchor=anchor(number), limit=limit
        )

    def at(connection: apsw.Connection, number: int) -> object:
        # Turn n of the long conversation was said at a time that is known: what a search for the time leads to.
        return connection.execute(ONE_SQL, (long, number)).fetchall()

    def skills(**more: Any) -> Callable[[Client, int], object]:
        return lambda client, _: client.list_runtime_skills(include_retired=True, limit=PAGE, **more)

    yield Question("skills, a page", skills(), plain(SKILLS_SQL))
    yield Question("skills by change", skills(sort="updated", descending=True), plain(NEWEST_SKILLS_SQL))
    yield Question("skills with a word that many hold", skills(query="pump"), plain(SKILLS_WITH_SQL, "%pump%"))
    yield Question("skills with a word that none holds", skills(query="zzyzx"), plain(SKILLS_WITH_SQL, "%zzyzx%"))
    yield Question(
        "one skill",
        lambda client, number: client.get_runtime_skill(name=short_name(number % made.skills)),
        lambda connection, number: connection.execute(SKILL_SQL, (short_name(number % made.skills),)).fetchall(),
    )
    yield Question(
        "conversations, a page", lambda client, _: client.list_conversations(limit=PAGE), plain(CONVERSATIONS_SQL)
    )
    yield Question(
        "conversations with a text that none holds",
        lambda client, _: client.list_conversations(query="zzyzx", limit=PAGE),
        plain(CONVERSATIONS_WITH_SQL, "%zzyzx%"),
    )
    yield Question("the latest 50 turns", turns(lambda _: "latest", TURNS), plain(LATEST_SQL, long, 0))
    yield Question(
        "50 turns somewhere",
        turns(lambda number: {"after": number}, TURNS),
        lambda connection, number: connection.execute(AFTER_SQL, (long, number)).fetchall(),
    )
    yield Question("one turn somewhere", turns(lambda number: {"around": number}, 1), at)
    yield Question("the first turn since a time", turns(lambda number: {"at": _stamp(number)}, 1), at)
    yield Question(
        "the first turn within a day",
        turns(lambda number: {"first_in": {"from": _stamp(number), "to": _stamp(number + 360)}}, 1),
        at,
    )
    yield Question(
        "messages by two words",
        lambda client, _: client.search_transcript(query="coolant harbour", view="host_ui", limit=50),
        plain(MATCH_SQL, '"coolant" OR "harbour"'),
    )
    yield Question("console.overview", lambda client, _: client.console_overview(), plain(COUNTS_SQL))
    yield Question("memory.inspect", lambda client, _: client.inspect(), plain(COUNTS_SQL))
    yield Question(
        "event log, the newest 100",
        lambda client, _: client.read_event_log(newest_first=True, limit=PAGE),
        plain(LOG_SQL),
    )
    yield Question(
        "event log, a topic that is rare",
        lambda client, _: client.read_event_log(newest_first=True, limit=PAGE, topics=["device"]),
        None,
    )


def _stamp(number: int) -> str:
    return f"{time_of(number):%Y-%m-%dT%H:%M:%SZ}"


def compare(client: Client, store: str, made: Made, times: int) -> dict[str, dict[str, float]]:
    """p50 and p99 in milliseconds of each question and of its floor, and the ratio of the medians."""
    connection = apsw.Connection(store, flags=apsw.SQLITE_OPEN_READONLY)
    connection.pragma("cache_size", -2048)
    found: dict[str, dict[str, float]] = {}
    long = connection.execute(LONG_SQL, (LONG,)).get
    for question in questions(made, long):
        name, ask, floor = question
        rolls = random.Random(name)
        numbers = [rolls.randrange(1, made.long) for _ in range(times)]
        p50, p99 = quantiles(_timed(lambda number, ask=ask: ask(client, number), numbers))
        found[name] = {"p50_ms": p50, "p99_ms": p99}
        if floor is not None:
            least, most = quantiles(_timed(lambda number, floor=floor: floor(connection, number), numbers))
            found[name] |= {"floor_p50_ms": least, "floor_p99_ms": most, "ratio": p50 / least}
    connection.close()
    return found


def _timed(run: Callable[[int], object], numbers: list[int]) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    for number in numbers:
        began = time.perf_counter()
        run(number)
        times.append((time.perf_counter() - began) * 1000)
        if time.perf_counter() > end and len(times) >= LEAST:
            break
    return times
