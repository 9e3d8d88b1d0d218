"""How far imports of chunk files are: written down when one is decided, and in the transaction of each slice."""

from __future__ import annotations

from typing import Any

from beetle.contracts.codec import decode_json, json_text
from beetle.contracts.errors import IntegrityViolation, InvalidRequest
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

PREFIX = "chunk_import_"
"""Keys of `meta`: the rest is the id of an import, the value a JSON array of what else is known of it."""
CALLED_OFF = -1
"""In place of a number of entries: the space was emptied, so that nothing of the import is to come in any more."""
BEGIN_SQL = "INSERT INTO meta VALUES (?, ?)"
FIND_SQL = "SELECT value FROM meta WHERE key = ?"
ALL_SQL = "SELECT rowid, key, value FROM meta WHERE key GLOB 'chunk_import_*' ORDER BY key"
ANY_SQL = "SELECT 1 FROM meta WHERE key GLOB 'chunk_import_*' LIMIT 1"
GO_ON_SQL = "UPDATE meta SET value = ? WHERE key = ?"
END_SQL = "DELETE FROM meta WHERE key = ?"
END_ROW_SQL = "DELETE FROM meta WHERE rowid = ?"


class BegunImport(NamedTuple):
    """An import that is decided. `since`: the revision of the space's chunks then; `done`: entries of its archive that
    are dealt with, `CALLED_OFF` where the others are not to be; `left`: files among the others that are to come in."""

    import_id: str
    space: int
    since: int
    done: int
    left: int

    def after(self, done: int, files: int) -> BegunImport:
        """The same, when `done` entries are dealt with, so many more of the files among them."""
        return self._replace(done=done, left=max(0, self.left - files))


class UnreadableImport(NamedTuple):
    """An import of which the store's row is not what the runtime wrote."""

    row: int
    import_id: str


def begin(tx: Writing, import_id: str, space: int, files: int) -> BegunImport:
    """Decide an import: from now on it is done, whatever happens to this process."""
    from beetle.store import chunks  # an opening looks whether there is any, no more

    begun = BegunImport(import_id, space, chunks.revision(tx, space), 0, files)
    tx.run(BEGIN_SQL, PREFIX + import_id, json_text(begun[1:]))
    return begun


def find(tx: Reading, import_id: str) -> BegunImport | None:
    """An import that is not finished; None where the store knows none of this id.

    Raises:
        IntegrityViolation: its row cannot be read.
    """
    row = tx.row(FIND_SQL, PREFIX + import_id)
    if row is None:
        return None
    begun = _begun(PREFIX + import_id, row[0])
    if begun is None:
        raise IntegrityViolation(reason="what the store knows of an import of chunks is damaged")
    return begun


def unfinished(tx: Reading) -> list[BegunImport]:
    """The imports that are not finished, but for those of `unreadable`."""
    found = (_begun(key, said) for _, key, said in tx.rows(ALL_SQL))
    return [each for each in found if each is not None]


def unreadable(tx: Reading) -> list[UnreadableImport]:
    """The imports of which it cannot be read how far they are."""
    rows = list(tx.rows(ALL_SQL))
    return [UnreadableImport(row, key.removeprefix(PREFIX)) for row, key, said in rows if _begun(key, said) is None]


def are_left(tx: Reading) -> bool:
    """Whether an import is not finished."""
    return tx.value(ANY_SQL) is not None


def coming(tx: Reading, space: int) -> tuple[str, ...]:
    """The ids of imports that have files left to bring into a space."""
    return tuple(
        each.import_id for each in unfinished(tx) if each.space == space and each.left and each.done != CALLED_OFF
    )


def go_on(tx: Writing, begun: BegunImport) -> None:
    """The import is so far now."""
    tx.run(GO_ON_SQL, json_text(begun[1:]), PREFIX + begun.import_id)


def call_off(tx: Writing, space: int) -> None:
    """Let no import into a space go on: it is emptied, and what is still to come is not meant to be in it."""
    for each in unfinished(tx):
        if each.space == space:
            go_on(tx, each._replace(done=CALLED_OFF))


def end(tx: Writing, import_id: str) -> None:
    """Nothing of an import is left to do."""
    tx.run(END_SQL, PREFIX + import_id)


def end_unreadable(tx: Writing, one: UnreadableImport) -> None:
    """Nothing of an import can be done any more; its key may be damaged too."""
    tx.run(END_ROW_SQL, one.row)


def _begun(key: str, said: Any) -> BegunImport | None:
    """What a row says; None where it is not what the runtime wrote."""
    if not isinstance(said, str):
        return None
    try:
        space, since, done, left = decode_json(said.encode(), tuple[int, int, int, int])
    except InvalidRequest:
        return None
    if space < 1 or since < 0 or done < CALLED_OFF or left < 0:
        return None
    return BegunImport(key.removeprefix(PREFIX), space, since, done, left)
