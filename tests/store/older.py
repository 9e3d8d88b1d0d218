"""A store of the schema before first reports held their seals, as a build of then has left it."""

from __future__ import annotations

from pathlib import Path

import apsw

from beetle.store import idempotency, seals
from beetle.store.engine.transaction import Writing
from beetle.store.engine.write_transaction import WriteTransaction
from tests.store.conftest import open_runtime, store_of

LATER_SQL = "DELETE FROM schema_migration WHERE number >= 23"


def make_older(path: str | Path) -> None:
    """Make one of a store that nobody has open."""
    with open_runtime(path) as memory:
        store_of(memory).write(_seal_apart)
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE idempotency DROP COLUMN seal")
    connection.close()


def _seal_apart(tx: WriteTransaction) -> None:
    tx.run(LATER_SQL)
    tx.settle()
    plain, sealer = Writing(tx.connection), tx.sealer
    assert sealer is not None
    count = total = 0
    for kept in idempotency.every(tx):
        seal = sealer.seal(idempotency.NAME, (kept.row, *kept.covered))
        plain.run(seals.PUT_SQL, idempotency.NAME, kept.row, seal)
        count, total = count + 1, total ^ int.from_bytes(seal, "big")
    seals.put_sum(plain, sealer, idempotency.NAME, count, total)
