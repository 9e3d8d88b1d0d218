"""Seals: keyed digests of rows as the runtime wrote them.

A row that another program changed, added or removed has none that fits.

A turn is sealed with all that was committed with it, in its own row, by who writes it (`turn_seals`): that costs one
digest a turn. So is the first report of an idempotency key (`idempotency`). Rows of all other tables are sealed apart,
at the end of each write: SQLite tells which rows a statement changed, so no statement has to care for it. Tables whose
rows follow from others need none: `UNSEALED` says why.

The key comes from the device identity, so that nobody makes a seal from the database alone. Without a usable identity
the store's own key serves; the seal's first byte tells which.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from beetle.contracts.codec import pack
from beetle.mac import mac
from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import DamagedRow

if TYPE_CHECKING:
    import apsw

    from beetle.store.engine.transaction import Reading, Writing

UNSEALED: Mapping[str, str] = {
    "turn": "sealed in its own row, with its messages, host refs and attrs",
    "message": "sealed with its turn",
    "host_ref": "sealed with its turn",
    "host_ref_label": "sealed with its turn",
    "attr": "sealed with its turn",
    "body": "each has its digest in its message",
    "thought": "chained by its hashes, and the newest one of each chain is told by the event log",
    "thought_body": "each has its digest in its thought",
    "thought_link": "hashed with its thought",
    "chunk_body": "each has its digest in its chunk",
    "chunk_link": "digested with its chunk",
    "chunk_tag": "follows from the tags of the chunks, and is compared with them",
    "chain_activity": "follows from the thoughts, and is compared with them",
    "conversation_speaker": "follows from the live messages, and is compared with them",
    "event_log": "chained by its hashes, and its head is signed",
    "event_place": "follows from the event log, and is compared with it",
    "event": "follows from the messages, and is compared with them",
    "recall_index": "follows from what it indexes, and is compared with that",
    "index_tail": "says what the recall index has, which is compared with the messages",
    "word_bitmap": "follows from the recall index, and is compared with it",
    "toc_outbox": "says what of the table of contents is to be made anew, which may be all of it",
    "row_seal": "compared with the rows that it seals",
    "table_seal": "holds its own seal",
    "pending_erasure": "tells the next opening to cut the write-ahead log, and is emptied when that is done",
}
"""Tables without seals of their own, and why."""
IN_ITS_ROW = "seal"
"""A table with such a column holds its seals itself."""
OF_TURN: Mapping[str, int] = {"turn": 0, "message": 1, "host_ref": 1, "attr": 1}
"""Tables that are sealed with a turn, and which column holds the turn's key."""
LABELS = "host_ref_label"
UNREADABLE: tuple[Any, ...] = ()
"""Instead of a row's values: a text of it is damaged, so that they cannot be read."""
INSERTED_WITH_TURN = frozenset((*OF_TURN, LABELS))
COUNTED: Mapping[str, tuple[str, ...]] = {
    "conversation": ("turns", "last_sequence", "messages", "first_at", "last_at"),
}
"""Columns that follow from other rows and are compared with them: no part of a seal."""
SHADOWS = re.compile(r"(recall_index(_[a-z]+)?|sqlite_[a-z0-9_]+|_litestream_(seq|lock))\Z")
STRONG, WEAK = b"\x01", b"\x00"
"""First byte of a seal: by the device identity, or by the store's own key."""
MAC_BYTES = 15
MOST_ROWS = 2**62
NO_SUM = bytes(MAC_BYTES + 1)

WITHOUT_IDENTITY = frozenset({"meta"})
"""Tables that are sealed with the store's own key: by `meta` the identity is known again."""

TABLES_SQL = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
COLUMNS_SQL = "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid"
SEAL_SQL = "SELECT seal FROM row_seal WHERE of = ? AND row = ?"
PUT_SQL = "INSERT INTO row_seal VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seal = excluded.seal"
DROP_SQL = "DELETE FROM row_seal WHERE of = ? AND row = ?"
SUM_SQL = "SELECT rows, sum, seal FROM table_seal WHERE of = ?"
PUT_SUM_SQL = """
INSERT INTO table_seal VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET rows = excluded.rows, sum = excluded.sum, seal = excluded.seal
"""
TURN_OF_SQL = {name: f"SELECT turn FROM {name} WHERE {name} = ?" for name in OF_TURN}  # noqa: S608 - our names
WRITES = re.compile(r"\b(INSERT|REPLACE|UPDATE|DELETE)\b(?:\s+OR\s+[A-Z]+)?(?:\s+(?:INTO|FROM))?\s+([a-z_]+)\b")


class Sealer(NamedTuple):
    """What seals: `strong` comes from the device identity, None where that cannot be used; `weak` from the store."""

    strong: bytes | None
    weak: bytes

    def seal(self, of: str, values: Iterable[Any]) -> bytes:
        """The seal of a row, or of all that is sealed with it; 16 bytes."""
        if self.strong is None or of in WITHOUT_IDENTITY:
            return WEAK + _mac(self.weak, of, values)
        return STRONG + _mac(self.strong, of, values)

    def fits(self, seal: Any, of: str, values: Iterable[Any]) -> bool | None:
        """Whether a seal is of this row; None where only the identity could tell, and it is not usable."""
        if not isinstance(seal, bytes) or len(seal) != MAC_BYTES + 1:
            return False
        if seal[:1] == WEAK:
            return hmac.compare_digest(seal[1:], _mac(self.weak, of, values))
        if self.strong is None:
            return None
        return seal[:1] == STRONG and hmac.compare_digest(seal[1:], _mac(self.strong, of, values))

    def is_weak(self, of: str, seal: bytes) -> bool:
        """Whether it was made without the identity, though that is usable now."""
        return self.strong is not None and seal[:1] == WEAK and of not in WITHOUT_IDENTITY

    def key_of(self, values: tuple[Any, ...]) -> bytes:
        """What stands for a primary key that is no single integer."""
        return _mac(self.weak, "key", values)


def _mac(key: bytes, of: str, values: Iterable[Any]) -> bytes:
    return mac(key, b"", pack((of, *values)))[:MAC_BYTES]


class Shape(NamedTuple):
    """A table whose rows are sealed: its columns, which of them are sealed, and the primary key's.

    `integer` says that the key is one integer, by which the row is named.
    """

    name: str
    columns: tuple[str, ...]
    sealed: tuple[int, ...]
    key: tuple[int, ...]
    integer: bool

    def row(self, sealer: Sealer, values: tuple[Any, ...]) -> int | bytes:
        """By what `row_seal` names a row."""
        return values[self.key[0]] if self.integer else sealer.key_of(tuple(values[each] for each in self.key))

    def sealed_of(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values that a seal covers."""
        return values if len(self.sealed) == len(values) else tuple(values[each] for each in self.sealed)


def shapes(tx: Reading) -> dict[str, Shape]:
    """The tables of a store whose rows are sealed apart."""
    names = [name for (name,) in tx.rows(TABLES_SQL) if name not in UNSEALED and not SHADOWS.match(name)]
    found = (_shape(name, list(tx.rows(COLUMNS_SQL, name))) for name in names)
    return {each.name: each for each in found if IN_ITS_ROW not in each.columns}


def shape_of(tx: Reading, table: str) -> Shape:
    """One of them."""
    return _shape(table, list(tx.rows(COLUMNS_SQL, table)))


def _shape(name: str, columns: list[tuple[Any, ...]]) -> Shape:
    counted = COUNTED.get(name, ())
    keys = sorted((pk, place) for place, (_, _, pk) in enumerate(columns) if pk)
    key = tuple(place for _, place in keys)
    return Shape(
        name,
        tuple(each[0] for each in columns),
        tuple(place for place, each in enumerate(columns) if each[0] not in counted),
        key,
        len(key) == 1 and columns[key[0]][1] == "INTEGER",
    )


class Change(NamedTuple):
    """What a write made of one row: its values before, None when it is new, and after, None when it is gone."""

    before: tuple[Any, ...] | None
    after: tuple[Any, ...] | None


class Changes:
    """The rows that a write has changed, as SQLite tells them, until their seals are written."""

    __slots__ = ("_followed", "_parts", "_rows", "_shapes", "_trusted", "_turns", "plain", "sealer", "trusts")

    def __init__(self, sealer: Sealer, made: dict[str, Shape]) -> None:
        self.sealer = sealer
        self._shapes = made
        self._rows: dict[tuple[str, int | bytes], Change] = {}
        self._turns: set[int] = set()
        self._parts: set[tuple[str, int]] = set()
        self._trusted: set[tuple[str, int | bytes]] = set()
        self.trusts = False
        """Whether what is changed now is sealed as it is then, though another program had changed it before."""
        self._followed: set[str] = set()
        self.plain: set[str] = set()
        """Statements that change nothing of the kind, as far as they were met."""

    def follows(self, sql: str) -> bool:
        """Whether a statement changes rows whose seals must follow."""
        if sql in self._followed:
            return True
        if sql in self.plain or not any(map(self._is_followed, WRITES.findall(sql))):
            self.plain.add(sql)
            return False
        self._followed.add(sql)
        return True

    def _is_followed(self, write: tuple[str, str]) -> bool:
        verb, table = write
        if table in INSERTED_WITH_TURN:
            # Who adds a turn seals it.
            return verb in ("UPDATE", "DELETE")
        # What changes of a conversation follows from its turns.
        return table in self._shapes and not (verb == "UPDATE" and table in COUNTED)

    def note(self, update: apsw.PreUpdate) -> None:
        """SQLite is about to change a row."""
        table, before, after = update.table_name, _values(update, "old"), _values(update, "new")
        if table in OF_TURN:
            for values in (before, after):
                if values:
                    self._turns.add(values[OF_TURN[table]])
                elif values is UNREADABLE:
                    self._parts.add((table, update.rowid))
            return
        if table == LABELS:
            self._parts.add(("host_ref", update.rowid))
            return
        shape = self._shapes.get(table)
        if shape is None:
            return
        old, new = self._row(shape, before, update), self._row(shape, after, update)
        if old is not None and old != new:
            self._add(table, old, before, None)
        if new is not None:
            self._add(table, new, before if old == new else None, after)

    def _row(self, shape: Shape, values: tuple[Any, ...] | None, update: apsw.PreUpdate) -> int | bytes | None:
        if values is None:
            return None
        return shape.row(self.sealer, values) if values else update.rowid

    def _add(self, table: str, row: int | bytes, before: tuple[Any, ...] | None, after: tuple[Any, ...] | None) -> None:
        known = self._rows.get((table, row))
        self._rows[table, row] = Change(before if known is None else known.before, after)
        if self.trusts:
            self._trusted.add((table, row))

    def __bool__(self) -> bool:
        return bool(self._rows or self._turns or self._parts)

    def forget(self) -> None:
        """The write was undone."""
        self._rows.clear()
        self._trusted.clear()
        self._turns.clear()
        self._parts.clear()

    def settle(self, tx: Writing, known: dict[Any, Any]) -> set[int]:
        """Write the seals of what was changed; the turns that must be sealed anew.

        Args:
            known: what the commits before have noted of rows that only the writer changes.
        """
        rows, self._rows = self._rows, {}
        turns, self._turns = self._turns, set()
        parts, self._parts = self._parts, set()
        sums: dict[str, tuple[int, int]] = {}
        for (table, row), change in rows.items():
            count, total = self._settle_row(tx, table, row, change)
            counted, summed = sums.get(table, (0, 0))
            sums[table] = (counted + count, summed ^ total)
        for table, (count, total) in sums.items():
            if count or total:
                add_to_sum(tx, self.sealer, table, (count, total), known)
        found = (tx.value(TURN_OF_SQL[table], key) for table, key in parts)
        return turns | {each for each in found if each is not None}

    def _settle_row(self, tx: Writing, table: str, row: int | bytes, change: Change) -> tuple[int, int]:
        """How many seals there are more, and the exclusive or of the seals that came and went."""
        shape = self._shapes[table]
        kept = None if change.before is None else _bytes_of(tx.value(SEAL_SQL, table, row))
        if change.after is None:
            if kept is None:
                return 0, 0
            tx.run(DROP_SQL, table, row)
            return -1, _number(kept)
        judged = change.before is not None and (table, row) not in self._trusted
        if change.after is UNREADABLE or (judged and not self._was_sound(shape, change.before or UNREADABLE, kept)):
            # Another program had changed it, or added it: what the runtime makes of it does not make it good.
            return 0, 0
        seal = self.sealer.seal(table, shape.sealed_of(change.after))
        if seal == kept:
            return 0, 0
        tx.run(PUT_SQL, table, row, seal)
        return int(kept is None), _number(seal) ^ (0 if kept is None else _number(kept))

    def _was_sound(self, shape: Shape, before: tuple[Any, ...], kept: bytes | None) -> bool:
        """Whether a row was as the runtime had written it, as far as anybody can tell."""
        if kept is None or before is UNREADABLE:
            return False
        return self.sealer.fits(kept, shape.name, shape.sealed_of(before)) is not False


def _values(update: apsw.PreUpdate, which: str) -> tuple[Any, ...] | None:
    try:
        return getattr(update, which)
    except UnicodeDecodeError:
        return UNREADABLE


def _bytes_of(seal: Any) -> bytes | None:
    """A seal that was read; one that is damaged fits nothing."""
    return seal if seal is None or type(seal) is bytes else b""


def _number(seal: bytes) -> int:
    return int.from_bytes(seal, "big")


def add_to_sum(tx: Writing, sealer: Sealer, table: str, more: tuple[int, int], known: dict[Any, Any]) -> None:
    """Add so many seals, with their exclusive or, to a table's sum. A sum changed by hand stays.

    Args:
        known: has the sums that the commits before have written, and this one then.
    """
    count, total = more
    if (before := known.get((SUM_SQL, table))) is None:
        before = (0, 0)
        if (found := tx.row(SUM_SQL, table)) is not None:
            rows, sum_, seal = found
            if sealer.fits(seal, "table_seal", (table, rows, sum_)) is False:
                return
            if not is_sum(rows, sum_):
                raise DamagedRow("table_seal", table)
            before = rows, _number(sum_)
    after = known[SUM_SQL, table] = before[0] + count, before[1] ^ total
    put_sum(tx, sealer, table, *after)


def is_sum(rows: Any, sum_: Any) -> bool:
    """Whether values that were read can say how many rows of a table are sealed, and the exclusive or of the seals."""
    return type(rows) is int and 0 <= rows < MOST_ROWS and type(sum_) is bytes and len(sum_) <= MAC_BYTES + 1


def put_sum(tx: Writing, sealer: Sealer, table: str, rows: int, total: int) -> None:
    """Write down how many rows of a table are sealed, and the exclusive or of their seals."""
    sum_ = total.to_bytes(MAC_BYTES + 1, "big")
    tx.run(PUT_SUM_SQL, table, rows, sum_, sealer.seal("table_seal", (table, rows, sum_)))


def all_rows(tx: Reading, shape: Shape) -> Iterator[tuple[Any, ...]]:
    """Every row of a table, its columns in their order."""
    return tx.rows(f"SELECT {', '.join(shape.columns)} FROM {shape.name}")  # noqa: S608 - names of the schema
