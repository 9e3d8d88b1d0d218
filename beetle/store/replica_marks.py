"""What the store remembers of its replica: that something is being removed from it."""

from __future__ import annotations

from beetle.store.engine import erasing
from beetle.store.engine.transaction import Reading, Writing

BEGIN_SQL = "INSERT INTO meta VALUES ('replica_forgets', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
BEGUN_SQL = "SELECT value FROM meta WHERE key = 'replica_forgets'"
DONE_SQL = "DELETE FROM meta WHERE key = 'replica_forgets'"
TOUCH_SQL = "INSERT INTO meta VALUES ('replica_touched', 1) ON CONFLICT DO UPDATE SET value = value + 1"


def begin(tx: Writing, known: int | None) -> None:
    """All that was sent before is being removed; `known` is until when it would hold what was erased."""
    tx.run(BEGIN_SQL, known or 0)


def is_begun(tx: Reading) -> bool:
    """Whether it was begun, and not done since."""
    return tx.value(BEGUN_SQL) is not None


def done(tx: Writing) -> None:
    """Nothing of it is left."""
    known = tx.value(BEGUN_SQL)
    if isinstance(known, int):
        erasing.forgotten(tx, known)
    tx.run(DONE_SQL)


def touch(tx: Writing) -> None:
    """A small write, by which the sidecar has something to send."""
    tx.run(TOUCH_SQL)
