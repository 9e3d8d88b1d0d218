"""replication.restore: a state of the replica takes the store's place, or goes to a file."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from beetle.contracts.codec import format_us, to_us
from beetle.contracts.errors import BeetleError, Conflict, IntegrityViolation, InvalidRequest, NotFound
from beetle.contracts.replication import ReplicationRestoreReport, ReplicationRestoreRequest
from beetle.contracts.snapshots import SnapshotFault, SnapshotRestoreReport, SnapshotRestoreRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import verification
from beetle.runtime.areas.snapshots import putting_back, snapshots, store_snapshots
from beetle.runtime.areas.snapshots.putting_back import Unpacked
from beetle.runtime.areas.snapshots.store_snapshots import Header, SnapshotFile
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.host.replica import SentFile, Source
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import snapshot_file
from beetle.store.engine import exchange
from beetle.store.engine.copies import Copy
from beetle.store.engine.schema import SchemaAltered
from beetle.store.engine.store import free_bytes
from beetle.store.verify import Finding

FETCHING = ("list", "fetch", "pages", "event_log")
"""The steps of reading a state of the replica and looking through it, before `verification.GENUINE`."""
SPARE_BYTES = 16 * 2**20
FETCH_S = 3600.0
SECOND_US = 1_000_000
SHOWN = 5
WHAT = "replica"
ONLY = (".tmp", "-wal", "-shm", "-journal", "-txid")
"""What stands behind the name of a file that litestream, or SQLite, has made beside a state."""


class Range(NamedTuple):
    """The first and the last time of which the replica has a state; microseconds."""

    first: int
    last: int


class Fetched(NamedTuple):
    """A state of the replica as a file that was looked through, and the sidecar's last transaction in it."""

    unpacked: Unpacked
    header: Header
    txid: int
    range: Range


def restore(invocation: Invocation, request: ReplicationRestoreRequest) -> ReplicationRestoreReport:
    """Fetch it, check it, and put it in the store's place or in the file that was named."""
    source = invocation.shared.replica.source()
    snapshots.on_disk(invocation)
    steps = (*FETCHING, *verification.GENUINE)
    invocation.progress.plan(steps if request.dry_run else (*steps, *putting_back.STEPS))
    with invocation.shared.lifecycle.alone(invocation.operation.name), invocation.heavy_turn():
        invocation.progress.step("list")
        known = _range(invocation, source.files(), request)
        sent = invocation.shared.replica.synced_events
        with _fetched(invocation, source, known, request) as fetched:
            if request.at is None and not request.accept_older:
                _check_newest(invocation, fetched.header, sent)
            terms = SnapshotRestoreRequest(
                snapshot_id=fetched.header.snapshot_id,
                dry_run=request.dry_run,
                other_store=request.other_store,
                keep_erased=request.keep_erased,
            )
            if request.to is None:
                done = putting_back.put_back(invocation, terms, fetched.unpacked, WHAT)
            else:
                done = _put_aside(invocation, terms, fetched, request.to)
    return _report(fetched, done, request)


def _check_newest(invocation: Invocation, header: Header, sent: int | None) -> None:
    """A replica that was put back to an older state of its own is whole, and signed.

    Raises:
        Conflict: rows of this store's event log had reached it that it does not have.
    """
    shared = invocation.shared
    if sent is not None and header.store_id == shared.store.store_id and header.event_log_rows < sent:
        reason = f"the replica ends at event {header.event_log_rows}, and {sent} events had reached it"
        hint = "look who could write to its target; to take that state all the same: --accept-older"
        raise Conflict(reason=f"{reason}: it was put back to an older state", hint=hint)


def _report(
    fetched: Fetched, done: SnapshotRestoreReport, request: ReplicationRestoreRequest
) -> ReplicationRestoreReport:
    header = fetched.header
    return ReplicationRestoreReport(
        dry_run=done.dry_run,
        changed=done.changed,
        txid=fetched.txid,
        first=format_us(fetched.range.first),
        last=format_us(fetched.range.last),
        schema=header.schema,
        store_id=header.store_id,
        bytes=header.store_bytes,
        counts=header.counts,
        event_log_rows=header.event_log_rows,
        events_behind=done.events_behind,
        kept_as=done.kept_as,
        to=None if request.dry_run else request.to,
        migrations_applied=done.migrations_applied,
        identity=done.identity,
        devices_suspended=done.devices_suspended,
        erased=done.erased,
        kept_erased=done.kept_erased,
        erased_refs=done.erased_refs,
        profile_budget_applied=done.profile_budget_applied,
        lifecycle=done.lifecycle,
    )


def _range(invocation: Invocation, files: Sequence[SentFile], request: ReplicationRestoreRequest) -> Range:
    """Of which times there are states, where the one that is asked for is among them.

    Raises:
        NotFound: there is no replica.
        InvalidRequest: the time is in the future, or before the first state.
    """
    found = range_of(files)
    if found is None:
        raise NotFound(kind="replica", name="of this store", listing="`beetle replica status` tells where it is kept")
    if request.at is None:
        return found
    at = to_us(request.at)
    between = f"it has states from {format_us(found.first)} to {format_us(found.last)}"
    if at > invocation.now:
        raise InvalidRequest(reason=f"that time is in the future; {between}", path="$.args.at", hint="leave --at out")
    if at < found.first:
        hint = "give a time of that range; a snapshot may be older: `beetle snapshot list`"
        raise InvalidRequest(reason=f"the replica has no state of that time; {between}", path="$.args.at", hint=hint)
    return found


def range_of(files: Sequence[SentFile]) -> Range | None:
    """From when to when the replica has states; None where it has none."""
    whole = [_time(each.created) for each in files if each.min_txid == 1]
    if not whole:
        return None
    # Listings tell whole seconds, and the sidecar compares parts of them.
    first = min(whole) + SECOND_US
    return Range(first, max(first, max(_time(each.created) for each in files)))


def _time(text: str) -> int:
    return to_us(datetime.fromisoformat(text))


@contextmanager
def _fetched(
    invocation: Invocation, source: Source, known: Range, request: ReplicationRestoreRequest
) -> Generator[Fetched]:
    """A state as a file beside the store, or beside the one that was named; taken away unless it has another name."""
    store = invocation.shared.store
    place = store.settings.path if request.to is None else _free(request.to)
    copy = exchange.named(place, exchange.UNPACKING, invocation.new_id("u"))
    at = None if request.at is None else format_us(to_us(request.at) + 1000)
    try:
        invocation.progress.step("fetch")
        room = max(0, free_bytes(os.path.dirname(place)) - SPARE_BYTES)
        left = FETCH_S if invocation.deadline is None else max(1.0, invocation.deadline - time.monotonic())
        try:
            txid = source.write_state(copy, at, room, min(FETCH_S, left))
        except BeetleError as error:
            # Its target has answered just now: it is what it holds that is wrong, or there is no room for it.
            raise _broken(error.message) from error
        invocation.check("the replica was restored")
        header, faults, checked = _look_through(invocation, copy, request.at)
        found = SnapshotFile(header.snapshot_id, copy, header.store_bytes, header)
        yield Fetched(Unpacked(found, copy, faults, checked), header, txid, known)
    except OSError as error:
        raise exchange.unwritable(place, error) from error
    finally:
        for rest in ("", *ONLY):
            store_snapshots.remove(store, copy + rest)


def _look_through(
    invocation: Invocation, copy: str, at: datetime | None
) -> tuple[Header, list[SnapshotFault], dict[str, int]]:
    """What a fetched state says of itself, and what is wrong with it.

    Raises:
        IntegrityViolation: it is no store, or not what this store's runtime wrote.
    """
    shared = invocation.shared
    try:
        facts = snapshot_file.examine(copy)
    except SchemaAltered as error:
        raise _broken(error.message) from error
    if facts is None:
        raise _broken("it is not of a beetle store")
    header = Header(
        snapshot_id=invocation.new_id("r"),
        created_at=invocation.now if at is None else to_us(at),
        label=None,
        version=shared.version,
        profile=shared.profile.name,
        backend=shared.store.settings.backend,
        schema=facts.schema,
        store_id=facts.store_id,
        store_bytes=os.path.getsize(copy),
        payload_bytes=0,
        payload_sha256="",
        counts=facts.counts,
        event_log_rows=facts.head.seq,
        event_log_head=facts.head.digest,
    )
    stopped = partial(snapshots.must_end, invocation)
    faults, checked = store_snapshots.examine(
        shared.store, store_snapshots.recorded(shared), header, copy, stopped, invocation.progress
    )
    if not faults:
        _check_genuine(invocation, copy)
    return header, faults, checked


def _check_genuine(invocation: Invocation, copy: str) -> None:
    """Whoever can write to the target can write a store there; only the device's own identity seals its rows.

    Raises:
        IntegrityViolation: a row is not what this store's runtime wrote.
    """
    shared = invocation.shared
    with snapshot_file.reading(copy) as tx:
        found: list[Finding] = list(verification.row_seals(invocation, tx))
    # An older schema becomes today's, which the other checks know.
    Copy(copy, invocation.now, shared.version, DOMAIN_FUNCTIONS, shared.store.sealer).close()
    with snapshot_file.reading(copy) as tx:
        found += verification.not_genuine(invocation, tx)
    if found:
        told = "; ".join(f"{each.subject} {each.problem}" for each in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise _broken(f"it is not what this store's runtime wrote: {told}{more}")


def _broken(why: str) -> IntegrityViolation:
    return IntegrityViolation(
        reason=f"the replica is not whole: {why}; nothing was changed",
        hint="restore an earlier time with --at, or a snapshot: `beetle snapshot list`",
    )


def _free(path: str) -> str:
    """A path where a file may be made.

    Raises:
        Conflict: something stands there.
        InvalidRequest: its folder is not there.
    """
    if not path.startswith("/") or "\x00" in path:
        raise InvalidRequest(reason="$.args.to: it is no absolute path", path="$.args.to", hint="begin it with /")
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidRequest(reason=f"no folder {os.path.dirname(path)}", path="$.args.to", hint="make it first")
    if os.path.lexists(path):
        raise Conflict(reason=f"{path} exists already", hint="name a file that does not, or move it away")
    return path


def _put_aside(
    invocation: Invocation, terms: SnapshotRestoreRequest, fetched: Fetched, to: str
) -> SnapshotRestoreReport:
    """Let a fetched state be a file of its own, with what was erased since erased in it, and no device let in."""
    header = putting_back.trusted(invocation, fetched.unpacked, terms, WHAT)
    shared, copy = invocation.shared, fetched.unpacked.copy
    prepared = putting_back.erase_again(invocation, terms, fetched.unpacked)
    active = snapshot_file.active_devices(copy)
    if not terms.dry_run:
        invocation.progress.step("exchange")
        snapshot_file.revoke_access(copy, (), invocation.caller.name)
        _name(copy, to)
    return SnapshotRestoreReport(
        snapshot=store_snapshots.info(shared.store, header, header.store_bytes),
        dry_run=terms.dry_run,
        changed=False,
        events_behind=max(0, shared.store.head.seq - header.event_log_rows),
        identity=shared.identity.state,
        devices_suspended=len(active),
        kept_erased=terms.keep_erased,
        **prepared.fields,
    )


def _name(copy: str, to: str) -> None:
    """Put a file on disk, and give it its name, where nothing is."""
    exchange.sync_file(copy)
    try:
        os.link(copy, to)
    except FileExistsError:
        _free(to)
    except OSError as error:
        if error.errno not in (*exchange.NO_LINKS, errno.EACCES):
            raise
        os.rename(copy, _free(to))
    exchange.sync_folder(to)
