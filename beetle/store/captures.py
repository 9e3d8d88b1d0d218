"""Turns that hosts delivered: the key by which each is captured once, and what is counted of them."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import IS_TIME, check_row
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.turn_messages import OF_TURN

KNOWN_SQL = f"""
SELECT k.turn, k.agent_id, k.attest_level, t.turn_id, c.channel_id, c.conversation_id, m.message, m.message_id, m.role,
  m.state, m.digest
FROM captured_turn k
JOIN turn t ON t.turn = k.turn
JOIN conversation c ON c.conversation = t.conversation
CROSS JOIN message m ON {OF_TURN} AND +m.position = 0
WHERE k.space = ? AND k.host_session_id = ? AND k.host_turn_index = ?
"""  # noqa: S608 - our own text
ADD_SQL = """
INSERT INTO captured_turn (turn, space, host_session_id, host_turn_index, host_kind, host_version, agent_id, role, at,
  attest_level, host_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
TAKEN_SQL = "SELECT 1 FROM captured_turn WHERE space = ? AND host_session_id = ? AND host_turn_index = ?"
REPEATED_SQL = "UPDATE captured_turn SET duplicates = duplicates + 1, mismatches = mismatches + ? WHERE turn = ?"
GROUPS_SQL = f"""
SELECT host_kind, host_version, role, agent_id, attest_level, count(*), sum(duplicates), sum(mismatches),
  min(at), max(at)
FROM captured_turn WHERE space = ?1 AND (?2 IS NULL OR host_kind = ?2) AND (?3 IS NULL OR host_session_id = ?3)
  AND {IS_TIME.format(column="at")}
GROUP BY host_kind, host_version, role, agent_id, attest_level
"""  # noqa: S608 - our columns
SESSIONS_SQL = """
SELECT s.host_session_id, k.host_kind, s.first, s.last, s.turns
FROM (
  SELECT host_session_id, min(host_turn_index) AS first, max(host_turn_index) AS last, count(*) AS turns
  FROM captured_turn WHERE space = ?1 AND (?2 IS NULL OR host_session_id = ?2) GROUP BY host_session_id
) s
CROSS JOIN captured_turn k ON k.space = ?1 AND k.host_session_id = s.host_session_id AND k.host_turn_index = s.first
"""
INDEXES_SQL = """
SELECT host_turn_index FROM captured_turn WHERE space = ? AND host_session_id = ? ORDER BY host_turn_index
"""


class Known(NamedTuple):
    """A captured turn with its message."""

    turn: int
    agent_id: str
    attest_level: str
    turn_id: str
    channel_id: str
    conversation_id: str
    message: int
    message_id: str
    role: str
    state: str
    digest: bytes


class NewCapture(NamedTuple):
    """What is kept of a captured turn beside the turn. `at` in microseconds."""

    host_session_id: str
    host_turn_index: int
    host_kind: str
    host_version: str | None
    agent_id: str
    role: str
    at: int
    attest_level: str
    host_key: int | None


class Session(NamedTuple):
    """A session by its lowest and highest turn index."""

    host_session_id: str
    host_kind: str
    first_index: int
    last_index: int
    turns: int

    @property
    def gaps(self) -> int:
        """Indexes from 0 to the highest one that never came."""
        return self.last_index + 1 - self.turns


def known(tx: Reading, space: int, session: str, index: int) -> Known | None:
    """The turn that was captured under this key."""
    return tx.one(Known, KNOWN_SQL, space, session, index)


def is_taken(tx: Reading, space: int, session: str, index: int) -> bool:
    """Whether a turn was captured under this key."""
    return tx.value(TAKEN_SQL, space, session, index) is not None


def add(tx: Writing, turn: int, space: int, new: NewCapture) -> None:
    """Note that a turn was captured."""
    tx.run(ADD_SQL, turn, space, *new)


def count_repeat(tx: Writing, turn: int, mismatch: bool) -> None:
    """Count a delivery of a turn that was there."""
    tx.run(REPEATED_SQL, int(mismatch), turn)


def groups(tx: Reading, space: int, host_kind: str | None, session: str | None) -> list[Row]:
    """(host_kind, host_version, role, agent_id, attest_level, turns, duplicates, mismatches, first, last)."""
    rows = list(tx.rows(GROUPS_SQL, space, host_kind, session))
    for kind, *_, turns, duplicates, mismatches, _first, _last in rows:
        check_row("captured_turn", kind, numbers=(turns, duplicates, mismatches))
    return rows


def sessions(tx: Reading, space: int, session: str | None) -> Iterator[Session]:
    """The sessions of a space, each with the host kind of its lowest turn."""
    for name, kind, *numbers in tx.rows(SESSIONS_SQL, space, session):
        check_row("captured_turn", name, numbers=numbers)
        yield Session(name, kind, *numbers)


def missing(tx: Reading, space: int, session: str, most: int) -> list[tuple[int, int]]:
    """The first ranges of indexes of a session that never came, both ends included."""
    found: list[tuple[int, int]] = []
    expected = 0
    for (index,) in tx.rows(INDEXES_SQL, space, session):
        if index > expected:
            found.append((expected, index - 1))
            if len(found) == most:
                break
        expected = index + 1
    return found
