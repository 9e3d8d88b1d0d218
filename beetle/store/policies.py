"""Policies over what may be remembered: pause and suppress, by kind, topic and chat."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction


class PolicyRow(NamedTuple):
    """A policy that holds, by its number in its space. What is None does not narrow it; `at` in microseconds."""

    number: int
    action: str
    kind: str | None
    topic_mac: bytes | None
    chat_id: str | None
    principal: str
    at: int
    topic: str | None
    reason: str | None


LIST_SQL = """
SELECT p.number, p.action, p.kind, p.topic_mac, p.chat_id, p.principal, p.at, t.topic, t.reason
FROM policy p LEFT JOIN policy_text t ON t.policy = p.policy
WHERE p.space = ? ORDER BY p.policy
"""
ACTING_SQL = """
SELECT DISTINCT action FROM policy
WHERE space = ? AND (kind IS NULL OR kind = ?) AND (topic_mac IS NULL OR topic_mac = ?)
  AND (chat_id IS NULL OR chat_id = ?)
"""
NUMBER_SQL = "SELECT number FROM policy WHERE policy = ? AND space = ?"
NAMED_SQL = """
SELECT policy, action FROM policy WHERE space = ? AND kind IS ? AND topic_mac IS ? AND chat_id IS ? ORDER BY policy
"""
NEW_SQL = """
INSERT INTO policy (space, action, kind, topic_mac, chat_id, principal, at, number)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT coalesce(max(number), 0) + 1 FROM policy WHERE space = ?1))
"""
NEW_TEXT_SQL = "INSERT INTO policy_text VALUES (?, ?, ?)"
REMOVE_SQLS = ("DELETE FROM policy_text WHERE policy = ?", "DELETE FROM policy WHERE policy = ?")


def acting(tx: Reading, space: int, kind: str, topic_mac: bytes | None, chat_id: str) -> frozenset[str]:
    """What policies say of something to be remembered: any of pause, suppress."""
    return frozenset(row[0] for row in tx.rows(ACTING_SQL, space, kind, topic_mac, chat_id))


def policies(tx: Reading, space: int) -> list[PolicyRow]:
    """Every policy of a space, the oldest first."""
    return [PolicyRow(*row) for row in tx.rows(LIST_SQL, space)]


def number_of(tx: Reading, space: int, policy: int) -> int | None:
    """The number of a policy in its space."""
    return tx.value(NUMBER_SQL, policy, space)


def named_alike(
    tx: Reading, space: int, kind: str | None, topic_mac: bytes | None, chat_id: str | None
) -> list[tuple[int, str]]:
    """(key, action) of the policies over exactly this."""
    return [(row[0], row[1]) for row in tx.rows(NAMED_SQL, space, kind, topic_mac, chat_id)]


def add_policy(tx: Writing, space: int, row: PolicyRow) -> int:
    """Write a policy; its key."""
    key = tx.insert(NEW_SQL, space, row.action, row.kind, row.topic_mac, row.chat_id, row.principal, row.at)
    if row.topic is not None or row.reason is not None:
        tx.run(NEW_TEXT_SQL, key, row.topic, row.reason)
    return key


def remove_policy(tx: WriteTransaction, policy: int) -> None:
    """Lift a policy; its topic and reason leave the store."""
    for sql in REMOVE_SQLS:
        tx.run(sql, policy)
    tx.expect_erasure()
