"""What device identities leave in a store: how one is known again, the wrapped keys of spaces, and what they seal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction

UNKNOWN_CHECK = ""
"""Instead of what is recorded of an identity, where that is damaged: it is of no secret."""
CHECK = re.compile(r"[0-9a-f]{32}")
KEY_BYTES = 32

CHECK_SQL = "SELECT value FROM meta WHERE key = 'identity'"
IS_KNOWN_SQL = """
SELECT EXISTS (SELECT 1 FROM meta WHERE key IN ('identity', 'identity_key')) OR EXISTS (SELECT 1 FROM space_key)
"""
RECORD_CHECK_SQL = "INSERT INTO meta VALUES ('identity', ?)"
PUBLIC_KEY_SQL = "SELECT value FROM meta WHERE key = 'identity_key'"
RECORD_PUBLIC_KEY_SQL = "INSERT OR IGNORE INTO meta VALUES ('identity_key', ?)"
SPACE_KEY_SQL = "SELECT wrapped FROM space_key WHERE space = ?"
ADD_SPACE_KEY_SQL = "INSERT INTO space_key VALUES (?, ?, ?, ?)"
ADD_ITEM_SQL = """
INSERT INTO private_item (
  space, record_id, candidate_id, plane, privacy, authority, state, content_mac, length, sealed, principal, at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
ITEM_COLUMNS = """
SELECT private_item, record_id, candidate_id, plane, privacy, authority, state, length, sealed, at,
  former_identity IS NOT NULL
FROM private_item
"""
ITEM_SQL = ITEM_COLUMNS + "WHERE space = ? AND record_id = ?"
ITEMS_SQL = ITEM_COLUMNS + "WHERE space = ? AND private_item > ? ORDER BY private_item LIMIT ?"
ITEMS_OF_PLANE_SQL = ITEM_COLUMNS + "WHERE space = ? AND private_item > ? AND plane = ? ORDER BY private_item LIMIT ?"
SAYING_SQL = "SELECT record_id FROM private_item WHERE space = ? AND content_mac = ? AND plane = ? AND privacy = ?"
SET_STATE_SQL = "UPDATE private_item SET state = ? WHERE space = ? AND record_id = ?"
KNOWN_DERIVED_SQL = "SELECT 1 FROM derived_ref WHERE turn = ? AND derived = ? AND evidence = ?"
NEW_DERIVED_SQL = "INSERT INTO derived_ref (space, derived, evidence, relation, turn, at) VALUES (?, ?, ?, ?, ?, ?)"
REMOVE_DERIVED_SQL = "DELETE FROM derived_ref WHERE space = ? AND derived = ?"
REMOVE_ITEM_SQL = "DELETE FROM private_item WHERE space = ? AND record_id = ?"
COUNT_SQL = "SELECT count(*) FROM private_item WHERE space = ? AND (?2 IS NULL OR plane = ?2)"
ALL_ITEMS_SQL = """
SELECT s.memory_space_id, k.wrapped, i.record_id, i.plane, i.sealed
FROM private_item i JOIN space s ON s.space = i.space LEFT JOIN space_key k ON k.space = i.space
WHERE i.former_identity IS NULL
ORDER BY i.private_item
"""

FORMER_SQL = "SELECT check_value, public_key, renewed_at FROM former_identity ORDER BY former_identity"
ADD_FORMER_SQL = "INSERT INTO former_identity (check_value, public_key, renewed_at) VALUES (?, ?, ?)"
CLOSE_SQLS = (
    "INSERT INTO former_space_key SELECT ?, space, wrapped, created_at FROM space_key",
    "UPDATE private_item SET former_identity = ? WHERE former_identity IS NULL",
    "UPDATE candidate_body SET former_identity = ? WHERE former_identity IS NULL AND sealed IS NOT NULL",
)
CLEAR_KEYS_SQL = "DELETE FROM space_key"
SET_CHECK_SQL = "INSERT INTO meta VALUES ('identity', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
SET_PUBLIC_KEY_SQL = (
    "INSERT INTO meta VALUES ('identity_key', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
SEALED_SQL = """
SELECT count(*), coalesce(sum(former_identity IS NOT NULL), 0) FROM private_item
"""
SEALED_TEXTS_SQL = """
SELECT count(*), coalesce(sum(former_identity IS NOT NULL), 0) FROM candidate_body WHERE sealed IS NOT NULL
"""
SEALED_REFS_SQL = """
SELECT plane, record_id FROM private_item WHERE ?1 OR former_identity IS NOT NULL ORDER BY private_item LIMIT ?2
"""
IS_CLOSED_SQL = """
SELECT EXISTS (SELECT 1 FROM candidate_body WHERE candidate = ?1 AND former_identity IS NOT NULL)
  OR EXISTS (SELECT 1 FROM private_item WHERE space = ?2 AND record_id = ?3 AND former_identity IS NOT NULL)
"""
SEALED_WAITING_SQL = """
SELECT c.waiting_id FROM candidate_body w JOIN candidate c ON c.candidate = w.candidate
WHERE w.sealed IS NOT NULL AND (?1 OR w.former_identity IS NOT NULL) ORDER BY w.candidate LIMIT ?2
"""


class ItemRow(NamedTuple):
    """A private item as it is kept. `length` in characters, `at` in microseconds. `closed`: a former identity of the
    store has sealed it, and nobody opens it any more."""

    item: int
    record_id: str
    candidate_id: str
    plane: str
    privacy: str
    authority: str
    state: str
    length: int
    sealed: bytes
    at: int
    closed: int


class NewItem(NamedTuple):
    """A private item to be kept; `content_mac` is keyed with the space's own key."""

    record_id: str
    candidate_id: str
    plane: str
    privacy: str
    authority: str
    state: str
    content_mac: bytes
    length: int
    sealed: bytes
    principal: str
    at: int


class SealedRow(NamedTuple):
    """What is needed to open one item of any space; `wrapped` is None where its space has no key."""

    memory_space_id: str
    wrapped: bytes | None
    record_id: str
    plane: str
    sealed: bytes


def recorded_check(tx: Reading) -> str | None:
    """By what the store's identity is known again: 32 hex digits, `UNKNOWN_CHECK` where what is recorded is none, None
    where nothing is."""
    row = tx.row(CHECK_SQL)
    if row is None:
        return None
    return row[0] if isinstance(row[0], str) and CHECK.fullmatch(row[0]) else UNKNOWN_CHECK


def is_known(tx: Reading) -> bool:
    """Whether the store had an identity, of which at least something is recorded."""
    return bool(tx.value(IS_KNOWN_SQL))


def record_check(tx: Writing, check: str) -> None:
    """Write down by what the store's identity is known again."""
    tx.run(RECORD_CHECK_SQL, check)


def mend_check(tx: WriteTransaction, check: str) -> None:
    """Write down again what was damaged: the seal of what it was fits it."""
    tx.unnoted().run(SET_CHECK_SQL, check)


def public_key(tx: Reading) -> bytes | None:
    """The 32 bytes that check the store's receipts; None before the first is signed, and where they are damaged."""
    return _key(tx.value(PUBLIC_KEY_SQL))


def _key(value: Any) -> bytes | None:
    return value if isinstance(value, bytes) and len(value) == KEY_BYTES else None


def record_public_key(tx: Writing, key: bytes) -> None:
    """Write down the public key, once."""
    tx.run(RECORD_PUBLIC_KEY_SQL, key)


def space_key(tx: Reading, space: int) -> bytes | None:
    """The wrapped key of a space."""
    return tx.value(SPACE_KEY_SQL, space)


def add_space_key(tx: Writing, space: int, wrapped: bytes, identity: str, now: int) -> None:
    """The first key of a space, wrapped by the device with this fingerprint."""
    tx.run(ADD_SPACE_KEY_SQL, space, wrapped, identity, now)


def add_item(tx: Writing, space: int, item: NewItem) -> None:
    """Keep an item that is sealed already."""
    tx.run(ADD_ITEM_SQL, space, *item)


def find_item(tx: Reading, space: int | None, record_id: str) -> ItemRow | None:
    """The item of that record id."""
    return tx.one(ItemRow, ITEM_SQL, space, record_id)


def list_items(tx: Reading, space: int | None, after: int, plane: str | None, limit: int) -> list[ItemRow]:
    """Items in the order in which they were kept, behind the item `after`."""
    if plane is None:
        return [ItemRow(*row) for row in tx.rows(ITEMS_SQL, space, after, limit)]
    return [ItemRow(*row) for row in tx.rows(ITEMS_OF_PLANE_SQL, space, after, plane, limit)]


def item_saying(tx: Reading, space: int, content_mac: bytes, plane: str, privacy: str) -> str | None:
    """Record id of an item that says the same in the same plane."""
    return tx.value(SAYING_SQL, space, content_mac, plane, privacy)


def set_item_state(tx: Writing, space: int, record_id: str, state: str) -> None:
    """Have an item be kept, waiting or handed off."""
    tx.run(SET_STATE_SQL, state, space, record_id)


def remove_item(tx: WriteTransaction, space: int, record_id: str) -> None:
    """Take an item out."""
    tx.run(REMOVE_ITEM_SQL, space, record_id)
    tx.expect_erasure()


def remove_derived_refs(tx: WriteTransaction, space: int, derived: str) -> None:
    """Take out what joins an item to the turns that it came from."""
    tx.run(REMOVE_DERIVED_SQL, space, derived)


def add_derived_ref(tx: WriteTransaction, space: int, derived: str, evidence: str, turn: int) -> bool:
    """Join an item to the turn that it came from; whether that was not known before."""
    if tx.value(KNOWN_DERIVED_SQL, turn, derived, evidence) is not None:
        return False
    tx.run(NEW_DERIVED_SQL, space, derived, evidence, "cites", turn, tx.now)
    return True


def count_items(tx: Reading, space: int | None, plane: str | None) -> int:
    """Items of a space, or of one of its planes."""
    return tx.value(COUNT_SQL, space, plane)


def all_items(tx: Reading) -> Iterator[SealedRow]:
    """Every item of every space, as `store.verify` opens it."""
    return (SealedRow(*row) for row in tx.rows(ALL_ITEMS_SQL))


class FormerIdentity(NamedTuple):
    """One of them: what it was known by, its public key where it ever signed, until when it was the store's (µs)."""

    check: str
    public_key: bytes | None
    renewed_at: int


class Sealed(NamedTuple):
    """How many private items, and how many texts that wait, there are; and how many of each are closed."""

    items: int
    closed_items: int
    texts: int
    closed_texts: int


def former_identities(tx: Reading) -> list[FormerIdentity]:
    """All of them, the first one first."""
    return [FormerIdentity(check, _key(public), at) for check, public, at in tx.rows(FORMER_SQL)]


def sealed_counts(tx: Reading) -> Sealed:
    """What identities have sealed in this store."""
    return Sealed(*(tx.row(SEALED_SQL) or (0, 0)), *(tx.row(SEALED_TEXTS_SQL) or (0, 0)))


def sealed_refs(tx: Reading, limit: int, *, all_sealed: bool) -> list[tuple[str, str]]:
    """(plane, record id) of private items that are closed, or of all; and ("", waiting id) of texts that wait."""
    items = [(plane, record_id) for plane, record_id in tx.rows(SEALED_REFS_SQL, all_sealed, limit)]
    return [*items, *(("", name) for (name,) in tx.rows(SEALED_WAITING_SQL, all_sealed, limit - len(items)))]


def is_closed(tx: Reading, space: int, candidate: int, record_id: str | None) -> bool:
    """Whether one of them has sealed what a candidate says, in the queue or in the private item that holds it."""
    return bool(tx.value(IS_CLOSED_SQL, candidate, space, record_id))


def succeed(tx: Writing, check: str, public_key: bytes, former: FormerIdentity | None) -> None:
    """Another identity is the store's from now on: what the one before it, if there was one, has sealed is closed."""
    if former is not None:
        key = tx.insert(ADD_FORMER_SQL, *former)
        for sql in CLOSE_SQLS:
            tx.run(sql, key)
    tx.run(CLEAR_KEYS_SQL)
    tx.run(SET_CHECK_SQL, check)
    tx.run(SET_PUBLIC_KEY_SQL, public_key)
