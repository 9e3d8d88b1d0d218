"""A device's first start: its store comes from the replica, before anything is opened.

Where no replica can be reached, nothing is opened either: a daemon that began with an empty store would soon send that.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping

from beetle import __version__
from beetle.contracts.errors import BeetleError, Conflict, IntegrityViolation, ServicesUnavailable
from beetle.domain.chain import chain_hash
from beetle.named_tuple import NamedTuple
from beetle.replication.program import Litestream
from beetle.runtime.areas.replica_restore import ONLY
from beetle.runtime.host import log_head
from beetle.runtime.host.config import Replica
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.host.identity import identity_beside
from beetle.runtime.host.sealing import sealer_of
from beetle.store import seal_checks, snapshot_file
from beetle.store.engine import exchange
from beetle.store.engine.copies import Copy
from beetle.store.engine.lock import StoreLock, lock_path
from beetle.store.engine.presence import has_content
from beetle.store.engine.progress import Progress
from beetle.store.engine.store import free_bytes
from beetle.store.snapshot_file import Facts

log = logging.getLogger("beetle.replication")

PULSE_S = 10.0
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
"""Before each further try to reach the replica."""
SPARE_BYTES = 16 * 2**20
FETCH_S = 6 * 3600.0
SHOWN = 3
BY_HAND = 'restore by hand, or begin an empty store: restore_on_first_boot = "never"'
KEY_HINT = (
    "put the key file of this store's device there; if it is lost, remove that one: without any the replica is believed"
)
STEPS = ("pages", "event_log", "seals", "turn_seals")


class StoreGone(Conflict):
    """Something of a store is there, but not the store: it is not for a start to decide what becomes of that."""

    template = "no store exists at {path}, but {left} does; nothing was restored"
    hint_template = "put the store back, or remove {left} to restore it from the replica"


class Restored(NamedTuple):
    """What came out of the replica: the sidecar's last transaction, and the rows of the event log."""

    txid: int
    rows: int


def restore(
    settings: Replica, store: str, env: Mapping[str, str], credentials: str | None, alive: Callable[[str], None]
) -> Restored | None:
    """Restore the newest state where there is no store yet; None where nothing was to be done.

    Args:
        credentials: the folder of this service's systemd credentials, where there is one.
        alive: is told in words what is done, and often enough that nobody takes this process for dead.

    Raises:
        ServicesUnavailable: the replica cannot be reached, or there must be one and is none.
        IntegrityViolation: what it holds is not whole.
        Conflict: something of an earlier store is there.
        BeetleError: the disk refuses.
    """
    if settings.restore_on_first_boot == "never" or has_content(store):
        return None
    path = os.path.realpath(store)
    _check_is_new(path)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        for left in exchange.beside(path):
            if left.kind == exchange.UNPACKING:
                os.unlink(left.path)
    except OSError as error:
        raise exchange.unwritable(path, error) from error
    stream = Litestream(path, settings.settings, env)
    if not _is_there(stream, settings, alive):
        log.warning("there is no replica at %s yet: a new store begins", settings.url)
        return None
    alive("restoring the store from its replica")
    copy = exchange.named(path, exchange.UNPACKING, f"u-{os.urandom(8).hex()}")
    try:
        room = max(0, free_bytes(os.path.dirname(path)) - SPARE_BYTES)
        with _Pulse(alive, _growth(copy)):
            txid = stream.write_state(copy, None, room, FETCH_S)
        with _Pulse(alive, lambda: "checking the restored store"):
            facts = _checked(copy, path, credentials, alive)
        _put_in_place(copy, path)
    except OSError as error:
        raise exchange.unwritable(path, error) from error
    finally:
        for rest in ("", *ONLY):
            if os.path.lexists(copy + rest):
                os.unlink(copy + rest)
    log.info("restored the store from its replica: transaction %d, %d rows of the event log", txid, facts.head.seq)
    return Restored(txid, facts.head.seq)


def _growth(path: str) -> Callable[[], str | None]:
    """Tells how large the file is that litestream writes for that path; None where it has not grown."""
    before = 0

    def words() -> str | None:
        nonlocal before
        try:
            size = os.path.getsize(path + ONLY[0])
        except OSError:
            return None
        grown, before = size > before, size
        return f"restoring the store from its replica: {size >> 20} MiB" if grown else None

    return words


class _Pulse:
    """Tells every few seconds what is done, so that a service manager does not take a long restore for a dead start."""

    def __init__(self, alive: Callable[[str], None], words: Callable[[], str | None]) -> None:
        """`words` are None where nothing has moved."""
        self._alive, self._words = alive, words
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._report_progress, name="beetle-restore", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _report_progress(self) -> None:
        while not self._end.wait(PULSE_S):
            if (said := self._words()) is not None:
                self._alive(said)


def _check_is_new(path: str) -> None:
    for left in (lock_path(path), path + "-wal", path + "-journal"):
        if os.path.lexists(left):
            raise StoreGone(path=path, left=left)


def _is_there(stream: Litestream, settings: Replica, alive: Callable[[str], None]) -> bool:
    """Whether there is a replica; asked several times, the last answer counts.

    Raises:
        ServicesUnavailable: nobody answers, or there must be one and is none.
    """
    found = _listed(stream, alive)
    if not found and settings.restore_on_first_boot == "required":
        reason = f"there is no replica at {settings.url}, and this store is to be restored from one"
        hint = 'check [replica] url; for a new store: restore_on_first_boot = "if_there"'
        raise ServicesUnavailable(reason=reason, hint=hint)
    return found


def _listed(stream: Litestream, alive: Callable[[str], None]) -> bool:
    target = stream.settings.target
    for number, pause in enumerate((*PAUSES_S, None), 1):
        alive(f"looking for the replica (try {number} of {len(PAUSES_S) + 1})")
        try:
            if target.kind == "file" and not os.path.isdir(target.path):
                # What is not mounted looks like this, and not like a replica that was never made.
                hint = f"mount its disk; for a new replica: mkdir {target.path}"
                raise ServicesUnavailable(reason=f"{target.path} is not there", hint=hint)
            return bool(stream.files())
        except ServicesUnavailable as error:
            if pause is None:
                raise ServicesUnavailable(
                    reason=f"no store exists at {stream.store}, and its replica cannot be reached: {error.message}",
                    hint=error.hint or 'try again, or begin an empty store: restore_on_first_boot = "never"',
                ) from error
            log.warning("the replica cannot be reached (%s), tried again in %.0f s", error.message, pause)
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _checked(copy: str, path: str, credentials: str | None, alive: Callable[[str], None]) -> Facts:
    """What a restored state says of itself, once it was looked through; by the device identity too, where it is here.

    Raises:
        IntegrityViolation: it is not whole.
    """
    try:
        facts = snapshot_file.examine(copy)
        if facts is None:
            raise _broken("it is not of a beetle store")
        progress = Progress(lambda step: alive(f"checking the restored store: {step.name}"))
        progress.plan(STEPS)
        looked = snapshot_file.check(copy, chain_hash, lambda: False, progress)
    except IntegrityViolation:
        raise
    except BeetleError as error:
        raise _broken(error.message) from error
    if not looked.pages_sound:
        raise _broken("SQLite finds damaged pages in it")
    if not looked.chain_sound:
        raise _broken("the hash chain of its event log is broken")
    identity = identity_beside(path, facts.identity, credentials)
    state = identity.state
    if state not in ("usable", "missing"):
        said, _ = identity.problem(state, whole_path=True) or ("", "")
        raise _broken(f"{said}, or the replica is forged", KEY_HINT)
    if state == "missing":
        log.warning(
            "the device identity is not here: that the replica holds what this store's runtime wrote cannot be "
            "checked; put its key file back, or, where it is lost: beetle identity renew"
        )
        return facts
    with snapshot_file.reading(copy) as tx:
        sealer = sealer_of(snapshot_file.key_of(tx), identity)
        progress.step("seals")
        found = [f"{each.table} {each.problem}" for each in seal_checks.broken(tx, sealer, progress)]
    # An older schema becomes today's, which the other checks know.
    Copy(copy, time.time_ns() // 1000, __version__, DOMAIN_FUNCTIONS, None).close()
    with snapshot_file.reading(copy) as tx:
        found += [f"{each.subject} {each.problem}" for each in log_head.check(identity, facts.store_id, tx)[1]]
        progress.step("turn_seals")
        found += [f"turn {each.turn} {each.problem}" for each in seal_checks.broken_turns(tx, sealer, progress)]
    if found:
        raise _broken(f"it is not what this store's runtime wrote: {'; '.join(found[:SHOWN])}")
    return facts


def _put_in_place(copy: str, path: str) -> None:
    """Give it the store's name, unless another process has made one meanwhile."""
    exchange.sync_file(copy)
    lock = StoreLock.acquire(path)
    try:
        if not has_content(path):
            os.rename(copy, path)
            exchange.sync_folder(path)
    finally:
        lock.release()


def _broken(why: str, hint: str = BY_HAND) -> IntegrityViolation:
    return IntegrityViolation(reason=f"the replica is not whole: {why}; nothing was restored", hint=hint)
