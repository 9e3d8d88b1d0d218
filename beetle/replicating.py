"""Has a replica kept of an open store: what the configuration says, the sidecar's supervisor, and who tells of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

from beetle.contracts.errors import BeetleError
from beetle.contracts.replication import ReplicaProblem, ReplicaState, ReplicationStatusReport
from beetle.open import Opened
from beetle.replication.followed import Followed
from beetle.replication.forgetting import Result
from beetle.replication.program import Litestream
from beetle.replication.supervisor import Supervisor
from beetle.runtime.host.config import Replica
from beetle.store import replica_marks
from beetle.store.engine import erasing
from beetle.store.engine.connection import store_bytes
from beetle.store.engine.store import Store, free_bytes
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event

log = logging.getLogger("beetle.replication")

PLACE_SUFFIX = ".replica"
"""Behind the path of the daemon's socket: the folder of the sidecar's own."""


def keep_replica(opened: Opened, config: Replica, socket_path: str, env: Mapping[str, str]) -> Supervisor | None:
    """Begin to keep one, and return at once; None where this store cannot have one, which its status tells."""
    store, board = opened.store, opened.dispatcher.shared.replica
    settings = config.settings
    if (refused := _refused(opened)) is not None:
        problem, hint = refused
        log.warning("no replica is kept (%s): %s", problem, hint)
        report = ReplicationStatusReport(state="refused", problem=problem, hint=hint, target_kind=settings.target.kind)
        board.put_up(lambda: report)
        return None
    folder = os.path.dirname(store.settings.path)
    followed = Followed(
        store.settings.path,
        store.follower,
        events=lambda: store.head.seq,
        store_bytes=lambda: store_bytes(store.settings.path)[0],
        wal_bytes=store.wal_bytes,
        free_bytes=lambda: free_bytes(folder),
        touch=lambda: _touch(store),
    )

    def on_change(state: ReplicaState, problem: ReplicaProblem | None) -> None:
        subject = {"state": state} if problem is None else {"state": state, "problem": problem}
        row = Event("replication", "replica_changed", "serve", "daemon", None, subject)
        store.post(lambda tx: tx.log(row))

    found = Supervisor(settings, followed, socket_path + PLACE_SUFFIX, env, on_change)
    board.put_up(found.status, found)
    found.on_forgotten = lambda done: _forgotten(store, done)
    with store.read() as tx:
        if replica_marks.is_begun(tx):
            log.info("the replica was being made to forget: it goes on")
            found.forget_soon()
    found.on_synced = lambda stream, txid: _look_for_erased(store, stream, txid)
    store.post(lambda tx: replica_marks.send_to(tx, settings.target.url, settings.kept_until(time.time_ns() // 1000)))
    found.start()
    return found


def _look_for_erased(store: Store, stream: Litestream, txid: int) -> None:
    """See to it that what was erased leaves the replica when it is to, and note when it is seen to have left."""
    with store.read() as tx:
        known = replica_marks.erased(tx)
    if known is None:
        return
    if known.txid is None:
        # All that is erased had gone by the first transaction that this sidecar told of.
        store.post(lambda tx: replica_marks.note_erased(tx, known.until, txid))
        return
    if known.until <= time.time_ns() // 1000 and _is_gone(stream, known.txid):
        store.post(lambda tx: erasing.forgotten(tx, known.until))
        return
    # Litestream makes no snapshot, and removes none, of a store that nobody has written to.
    _touch(store)


def _is_gone(stream: Litestream, txid: int) -> bool:
    try:
        files = stream.files()
    except BeetleError as error:
        log.info("what the replica holds could not be seen: %s", error.message)
        return False
    left = sum(each.max_txid < txid for each in files)
    if left:
        log.warning("the replica still has %d files from before an erasure that were to be gone by now", left)
    return bool(files) and not left


def _touch(store: Store) -> None:
    store.post(replica_marks.touch)


def _forgotten(store: Store, done: Result) -> None:
    """What an earlier daemon had begun, or whoever asked for it did not wait for, is done."""
    on_change = {"files": done.removed_files, "bytes": done.removed_bytes}

    def write(tx: WriteTransaction) -> None:
        replica_marks.done(tx)
        tx.log(Event("replication", "replica_forgotten", "serve", "daemon", None, on_change))

    store.post(write)


def _refused(opened: Opened) -> tuple[ReplicaProblem, str] | None:
    store = opened.store
    if "replication" not in opened.profile.capabilities.allowed:
        return "profile", f"{opened.profile.name} leaves replication out: take a larger profile"
    if store.settings.immutable:
        return "read_only", "a store on read-only media does not change: copy its file"
    if not store.settings.walled:
        return "backend", "a replica needs the backend sqlite or embedded, which have a write-ahead log"
    return None
