"""The public keys with which hosts sign the turns that they capture, by space."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

COLUMNS = "SELECT host_key, public_key, fingerprint, label, host_kind, added_at, revoked_at FROM host_key"
BY_KEY_SQL = f"{COLUMNS} WHERE space = ? AND public_key = ?"
BY_FINGERPRINT_SQL = f"{COLUMNS} WHERE space = ? AND fingerprint = ? ORDER BY host_key LIMIT 2"
LIST_SQL = f"""{COLUMNS} WHERE space = ? AND host_key > ? AND (? OR revoked_at IS NULL)
  AND (?4 IS NULL OR host_kind IS NULL OR host_kind = ?4) ORDER BY host_key LIMIT ?5
"""
ADD_SQL = """
INSERT INTO host_key (space, public_key, fingerprint, label, host_kind, added_at) VALUES (?, ?, ?, ?, ?, ?)
"""
CHANGE_SQL = "UPDATE host_key SET label = ?, host_kind = ? WHERE host_key = ?"
REVOKE_SQL = "UPDATE host_key SET revoked_at = ? WHERE host_key = ?"


class HostKeyRow(NamedTuple):
    """One key. Times in microseconds; `host_kind` None: of any host."""

    host_key: int
    public_key: bytes
    fingerprint: str
    label: str
    host_kind: str | None
    added_at: int
    revoked_at: int | None


def by_key(tx: Reading, space: int | None, public_key: bytes) -> HostKeyRow | None:
    """The row of a key, revoked or not."""
    return tx.one(HostKeyRow, BY_KEY_SQL, space, public_key)


def by_fingerprint(tx: Reading, space: int | None, fingerprint: str) -> list[HostKeyRow]:
    """The rows of a fingerprint: mostly one, and two of many at most."""
    return [HostKeyRow(*row) for row in tx.rows(BY_FINGERPRINT_SQL, space, fingerprint)]


def listed(
    tx: Reading, space: int | None, after: int, with_revoked: bool, host_kind: str | None, limit: int
) -> list[HostKeyRow]:
    """Keys behind one, in the order in which they were added."""
    return [HostKeyRow(*row) for row in tx.rows(LIST_SQL, space, after, int(with_revoked), host_kind, limit)]


def add(tx: Writing, space: int, new: HostKeyRow) -> None:
    """A new key; its own number is not used."""
    tx.run(ADD_SQL, space, new.public_key, new.fingerprint, new.label, new.host_kind, new.added_at)


def change(tx: Writing, host_key: int, label: str, host_kind: str | None) -> None:
    """Another label, another kind of host."""
    tx.run(CHANGE_SQL, label, host_kind, host_key)


def revoke(tx: Writing, host_key: int, now: int) -> None:
    """From now on it signs nothing."""
    tx.run(REVOKE_SQL, now, host_key)
