"""What recovery looks for and mends: the recall index against the tables, stuck work, rows that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.store import columns, erasures, index_pages, index_rebuild, word_bitmaps
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.index_merge import MERGE_SQL
from beetle.store.index_tail import ALL_INDEXED_SQL, is_marked
from beetle.store.indexed import KEYS_END, Tables, extra_rows
from beetle.store.recall_index import NAMED, PLANE_BITS, TOUCH_INDEX_SQL
from beetle.store.verify import Finding

SPACE_AFTER_SQL = "SELECT space, memory_space_id FROM space WHERE space > ? ORDER BY space LIMIT 1"
CHECK_INDEX_SQL = "PRAGMA quick_check('recall_index')"
FOREIGN_ROW_SQL = f"""
SELECT 1 FROM recall_index_docsize WHERE id < 1 << {PLANE_BITS} OR id >= {KEYS_END} << {PLANE_BITS} LIMIT 1
"""  # noqa: S608 - our own text
"""A row that no record can have."""
ALL_MESSAGES_SQL = "SELECT CAST(total(messages) AS INTEGER) FROM conversation"
SPACE_MESSAGES_SQL = "SELECT CAST(total(messages) AS INTEGER) FROM conversation WHERE space = ?"
SPENT_KEYS_SQL = """
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM idempotency WHERE idempotency <= (SELECT max(idempotency) FROM idempotency) - ?1
  ORDER BY idempotency LIMIT ?2
) RETURNING idempotency
"""
DEVICE_KEYS_SQL = """
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM idempotency
  WHERE principal GLOB 'device:*'
    AND substr(principal, 8) NOT IN (SELECT device_id FROM device WHERE state <> 'revoked')
  LIMIT ?
) RETURNING idempotency
"""
DEAD_REMEMBERED_SQL = """
DELETE FROM remembered_conversation AS kept
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.conversation = kept.conversation AND c.space = kept.space)
  OR (kept.principal GLOB 'device:*' AND NOT EXISTS (
    SELECT 1 FROM device WHERE device_id = substr(kept.principal, 8) AND state <> 'revoked'))
RETURNING conversation
"""

SPENT_SQL = """
SELECT count(*) FROM idempotency
WHERE idempotency <= (SELECT max(idempotency) FROM idempotency) - ?1
  OR (principal GLOB 'device:*'
    AND substr(principal, 8) NOT IN (SELECT device_id FROM device WHERE state <> 'revoked'))
"""
DEAD_SQL = """
SELECT count(*) FROM remembered_conversation AS kept
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.conversation = kept.conversation AND c.space = kept.space)
  OR (kept.principal GLOB 'device:*' AND NOT EXISTS (
    SELECT 1 FROM device WHERE device_id = substr(kept.principal, 8) AND state <> 'revoked'))
"""
STUCK_SQL = "SELECT job_id FROM job WHERE state = 'leased' AND lease_until <= ? LIMIT 100"
PENDING_SQL = "SELECT count(*) FROM pending_erasure WHERE since <= ?"


def waiting(tx: Reading, most: int, before: int, erased_before: int) -> Iterator[Finding]:
    """What the steps of a recovery would find besides damage.

    Args:
        most: first reports that are kept.
        before: microseconds; what has waited since then waits for nothing that will come.
        erased_before: the same of erasures, by the writer's `erasure_clock`.
    """
    if found := tx.value(SPENT_SQL, most):
        yield Finding("idempotency", "first reports", f"{found} are kept that nobody needs")
    if found := tx.value(DEAD_SQL):
        yield Finding("remembered_conversations", "last conversations", f"{found} are gone, or of who may call no more")
    for (job_id,) in tx.rows(STUCK_SQL, before):
        yield Finding("jobs", f"job {job_id}", "its lease has ended, and nobody took it up")
    if found := tx.value(PENDING_SQL, erased_before):
        yield Finding("pending_erasures", "write-ahead log", f"{found} erasures wait for it to be cut")
    if index_rebuild.is_rebuilding(tx):
        yield Finding("recall_index", "index", "was emptied, and not filled since")


def space_after(tx: Reading, space: int) -> tuple[int, str] | None:
    """(space, memory_space_id) of the next space."""
    found = tx.row(SPACE_AFTER_SQL, space)
    return None if found is None else (found[0], found[1])


def extra(tx: Reading, tables: Tables, after: int, limit: int) -> list[tuple[int, str, int]]:
    """(row, plane, key) behind `after` of what the index holds and should not; the plane is empty when none is such."""
    return [(row, NAMED.get(row & 15, ""), row >> PLANE_BITS) for (row,) in tx.rows(extra_rows(tables), after, limit)]


def index_is_sound(tx: Reading) -> bool:
    """Whether the index's own pages are in order, and each of its terms is found; a damaged page may raise
    `apsw.CorruptError` instead."""
    tx.row(TOUCH_INDEX_SQL)
    if [row[0] for row in tx.rows(CHECK_INDEX_SQL)] != ["ok"] or tx.row(FOREIGN_ROW_SQL) is not None:
        return False
    return index_pages.are_counted(tx) and index_pages.are_marked(tx)


def empty_index(tx: WriteTransaction) -> None:
    """Take every row out of the index, and mark that it has to be filled again."""
    # Not by way of `tx`: what waits for the index goes on to wait, since a damaged one would refuse it.
    index = Writing(tx.connection)
    if not is_marked(index):
        index.run(ALL_INDEXED_SQL)
    index_rebuild.empty(index)
    word_bitmaps.clear(index)
    tx.index_changed(None)
    columns.mend_keywords(tx)
    index_rebuild.begin(tx, tx.now)
    tx.expect_erasure()


def merge_index(tx: Writing, pages: int) -> bool:
    """Merge about so many pages of the index, of all its segments when negative; whether there was work."""
    tx.row(TOUCH_INDEX_SQL)  # what waits for the index is written before, and is no work of a merge
    before = tx.connection.total_changes()
    tx.run(MERGE_SQL, pages)
    # FTS5 counts one change of its own for the command itself.
    return tx.connection.total_changes() - before > 1


def all_messages(tx: Reading) -> int:
    """Messages of every space, as their conversations say."""
    return tx.value(ALL_MESSAGES_SQL)


def messages_of(tx: Reading, space: int) -> int:
    """Messages of a space, as its conversations say."""
    return tx.value(SPACE_MESSAGES_SQL, space)


def drop_keys(tx: Writing, most: int, limit: int) -> int:
    """Drop first reports beyond the newest `most`, and those of devices that may call no more; at most `limit` of
    each. How many went."""
    gone = sum(len(list(rows)) for rows in (tx.rows(SPENT_KEYS_SQL, most, limit), tx.rows(DEVICE_KEYS_SQL, limit)))
    if gone:
        erasures.drop_forsaken(tx)
    return gone


def drop_remembered(tx: Writing) -> int:
    """Forget conversations that are gone, and those of devices that may call no more; how many."""
    return len(list(tx.rows(DEAD_REMEMBERED_SQL)))
