"""How far imports of chunk files are: written down when one is decided, and in the transaction of each slice."""

from __future__ import annotations

from typing import Any

from beetle.contracts.codec import json_text
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

PREFIX = "chunk_import_"
"""Keys of `meta`: the rest is the id of an import, the value a JSON array of what else is known of it."""
CALLED_OFF = -1
"""In place of a number of entries: the space was emptied, so that nothing of the import is to come in any more."""
BEGIN_SQL = "INSERT INTO meta VALUES (?, ?)"
FIND_SQL = "SELECT value FROM meta WHERE key = ?"
ALL_SQL = "SELECT key, value FROM meta WHERE key GLOB 'chunk_import_*' ORDER BY key"
ANY_SQL = "SELECT 1 FROM meta WHERE key GLOB 'chunk_import_*' LIMIT 1"
GO_ON_SQL = "UPDATE meta SET value = ? WHERE key = ?"
END_SQL = "DELETE FROM meta WHERE key = ?"


class BegunImport(NamedTuple):
    """An import that is decided. `since`: the revision of the space's chunks then; `done`: entries of its archive that
    are dealt with, `CALLED_OFF` where the others are not to be."""

    import_id: str
    space: int
    since: int
    done: int


def begin(tx: Writing, import_id: str, space: int) -> BegunImport:
    """Decide an import: from now on it is done, whatever happens to this process."""
    from beetle.store import chunks  # an opening looks whether there is any, no more

    begun = BegunImport(import_id, space, chunks.revision(tx, space), 0)
    tx.run(BEGIN_SQL, PREFIX + import_id, json_text(begun[1:]))
    return begun


def find(tx: Reading, import_id: str) -> BegunImport | None:
    """An import that is not finished; None where the store knows none of this id."""
    return _begun(PREFIX + import_id, tx.value(FIND_SQL, PREFIX + import_id))


def unfinished(tx: Reading) -> list[BegunImport]:
    """The imports that are not finished."""
    found = (_begun(*row) for row in tx.rows(ALL_SQL))
    return [each for each in found if each is not None]


def are_left(tx: Reading) -> bool:
    """Whether an import is not finished."""
    return tx.value(ANY_SQL) is not None


def go_on(tx: Writing, begun: BegunImport, done: int) -> None:
    """So many entries are dealt with."""
    tx.run(GO_ON_SQL, json_text(begun._replace(done=done)[1:]), PREFIX + begun.import_id)


def call_off(tx: Writing, space: int) -> None:
    """Let no import into a space go on: it is emptied, and what is still to come is not meant to be in it."""
    for each in unfinished(tx):
        if each.space == space:
            go_on(tx, each, CALLED_OFF)


def end(tx: Writing, import_id: str) -> None:
    """Nothing of an import is left to do."""
    tx.run(END_SQL, PREFIX + import_id)


def _begun(key: str, said: Any) -> BegunImport | None:
    """What a row says; None where there is none, or it is not what the runtime wrote."""
    import json  # likewise

    try:
        space, since, done = json.loads(said)
    except (TypeError, ValueError):
        return None
    return BegunImport(key.removeprefix(PREFIX), space, since, done)
