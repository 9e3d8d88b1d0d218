"""What the store remembers of its replicas: where they are, what is being removed, and what was seen to be gone."""

from __future__ import annotations

import json

from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine import erasing
from beetle.store.engine.transaction import Reading, Writing

BEGIN_SQL = "INSERT INTO meta VALUES ('replica_forgets', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
BEGUN_SQL = "SELECT value FROM meta WHERE key = 'replica_forgets'"
DONE_SQL = "DELETE FROM meta WHERE key = 'replica_forgets'"
TOUCH_SQL = "INSERT INTO meta VALUES ('replica_touched', 1) ON CONFLICT DO UPDATE SET value = value + 1"
ERASED_SQL = "SELECT value FROM meta WHERE key = 'replica_erased'"
NOTE_ERASED_SQL = "INSERT INTO meta VALUES ('replica_erased', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
TARGETS_SQL = "SELECT value FROM meta WHERE key = 'replica_targets'"
NOTE_TARGETS_SQL = "INSERT INTO meta VALUES ('replica_targets', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
UNTOLD_SQL = "SELECT value FROM meta WHERE key = 'replica_untold'"
TOLD_SQL = "DELETE FROM meta WHERE key = 'replica_untold'"


class Erased(NamedTuple):
    """What a replica may still hold: it is to be gone at `until` (microseconds), and was erased before the sidecar's
    transaction `txid`, None where that is not known yet."""

    until: int
    txid: int | None


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


def erased(tx: Reading) -> Erased | None:
    """What the replica may still hold of what was erased; None when that is nothing."""
    until = erasing.kept_until(tx)
    if until is None:
        return None
    noted = tx.value(ERASED_SQL)
    known, _, txid = noted.partition(" ") if isinstance(noted, str) else ("", "", "")
    return Erased(until, int(txid) if known == str(until) else None)


def note_erased(tx: Writing, until: int, txid: int) -> None:
    """What is to be gone at `until` was erased before that transaction."""
    tx.run(NOTE_ERASED_SQL, f"{until} {txid}")


def targets(tx: Reading) -> tuple[str, ...]:
    """The URLs of all targets that something was sent to, the last one last."""
    return texts(tx.value(TARGETS_SQL))


def keep_targets(tx: Writing, urls: tuple[str, ...]) -> None:
    """Remember these, besides those that are known."""
    known = targets(tx)
    if more := [each for each in urls if each not in known]:
        tx.run(NOTE_TARGETS_SQL, json.dumps([*known, *more]))


def send_to(tx: Writing, url: str, until: int) -> None:
    """From now on a replica is kept at that target. What was erased while none was kept there, it holds until then."""
    known = targets(tx)
    is_back = url in known and url != known[-1]
    if known[-1:] != (url,):
        tx.run(NOTE_TARGETS_SQL, json.dumps([*(each for each in known if each != url), url]))
    if is_back or tx.value(UNTOLD_SQL) is not None:
        erasing.keep_until(tx, until)
        tx.run(TOLD_SQL)


def leave(tx: Writing, url: str) -> None:
    """Nothing is left at that target."""
    tx.run(NOTE_TARGETS_SQL, json.dumps([each for each in targets(tx) if each != url]))
