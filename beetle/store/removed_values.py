"""Values that were corrected, superseded or deleted: keyed digests, and by what authority each was removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

ANY_SQL = "SELECT 1 FROM removed_value WHERE space = ? LIMIT 1"
REMOVER_SQL = "SELECT authority FROM removed_value WHERE space = ? AND digest = ? AND visibility = ?"
RECORD_SQL = "INSERT OR REPLACE INTO removed_value (space, digest, visibility, authority) VALUES (?, ?, ?, ?)"

EVERY_SQL = """
SELECT s.memory_space_id, s.created_at, v.digest, v.visibility, v.authority
FROM space s JOIN removed_value v ON v.space = s.space
"""


class Removal(NamedTuple):
    """By what authority a value of a space was removed; `created_at` is the space's."""

    memory_space_id: str
    created_at: int
    digest: bytes
    visibility: str
    authority: str


def has_any(tx: Reading, space: int) -> bool:
    """Whether any value of a space was removed."""
    return tx.value(ANY_SQL, space) is not None


def removers(tx: Reading, space: int, digests: Iterable[bytes], visibilities: Iterable[str]) -> list[str]:
    """The authorities that removed values of these digests, from what these visibilities show."""
    shown = tuple(visibilities)
    found = (tx.value(REMOVER_SQL, space, digest, each) for digest in digests for each in shown)
    return [each for each in found if each is not None]


def record(tx: Writing, space: int, digest: bytes, visibility: str, authority: str) -> None:
    """Write down by what authority a value was removed, in the place of what was written before."""
    tx.run(RECORD_SQL, space, digest, visibility, authority)


def every(tx: Reading) -> Iterator[Removal]:
    """All that a store knows, of every space."""
    return map(Removal._make, tx.rows(EVERY_SQL))
