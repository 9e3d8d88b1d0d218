"""Idempotency: the first report of a key, kept in the transaction of its change and answered again.

What a caller said is left out of what is kept: a repeat answers it from the records as they are then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from beetle.contracts import codec
from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, Conflict, IntegrityViolation, KeyAtWork
from beetle.domain.digest import request_digest
from beetle.runtime.host.devices import is_still
from beetle.runtime.pipeline.first_reports import kept_form
from beetle.runtime.pipeline.invocation import Invocation, stamp
from beetle.runtime.pipeline.views import RawReport
from beetle.store import idempotency
from beetle.store.engine.transaction import Reading
from beetle.store.engine.turns import Turns
from beetle.store.engine.write_queue import PendingWrite
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.seals import Sealer

R = TypeVar("R", bound=Report)
Again: TypeAlias = Callable[[Invocation, Any, Reading, Any], RawReport]
"""Given a request and its first report as it was kept: that report with its records as they are now. One that is
gone, also where another has its id by now, stays without what it said, in the state for that if its kind has one."""


def answered_again(again: Again | None, invocation: Invocation, request: Any, tx: Reading, first: Any) -> Any:
    """What a key that was used before is answered: as its report was kept, where its records cannot be shown now."""
    if again is None:
        return first
    try:
        return again(invocation, request, tx, first)
    except BeetleError:
        # It was done: an error would say that it was not.
        return first


class KeyTurns:
    """One call at a time of each idempotency key, of those that are not one transaction: the next one finds the report
    of the one before. Of a key that no call has now nothing is kept."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turns: dict[tuple[str, str, str], tuple[Turns, int]] = {}

    @property
    def calls(self) -> int:
        """How many have the turn of a key now, or wait for one."""
        with self._guard:
            return sum(calls for _, calls in self._turns.values())

    @contextmanager
    def held(self, key: str, invocation: Invocation) -> Generator[None]:
        """The turn of a key until the block ends. Raises as `Turns.held`."""
        whose = (*_whose(invocation), key)
        with self._guard:
            turns, calls = self._turns.get(whose) or (Turns(1, each=1, full=KeyAtWork), 0)
            self._turns[whose] = turns, calls + 1
        try:
            with turns.held(invocation.caller.name, invocation.deadline, invocation.is_abandoned):
                yield
        finally:
            with self._guard:
                turns, calls = self._turns.pop(whose)
                if calls > 1:
                    self._turns[whose] = turns, calls - 1


class KeyedWrite:
    """The writes of one call, under its idempotency key where it has one.

    A key that was used before changes nothing again: it is answered what it was answered first, and `repeated` is set.
    Most calls write once. A staged one works between its transactions, so that none of them waits for that; its key
    keeps the report of the last one. `begun` says that something was written.
    """

    def __init__(self, key: str | None, invocation: Invocation, request: Any, again: Again | None = None) -> None:
        self.repeated = False
        self.begun = False
        self._request = request
        self._again = again
        self._invocation = invocation
        self._store = invocation.shared.store
        self._key = key
        self._digest = b"" if key is None else _digest(invocation, request)
        self._grows = invocation.operation.grows
        self._by = invocation.caller.name
        self._last: Any = None

    @property
    def key(self) -> str | None:
        """The idempotency key."""
        return self._key

    @property
    def digest(self) -> bytes:
        """Keyed digest of the request, as it is kept with the first report of its key."""
        return self._digest

    def go_on(self, first: Any) -> None:
        """The work that the key's first report told of was not done to its end: it goes on, and the next report takes
        that one's place.
        """
        self.repeated = False
        self._last = first

    def earlier(self) -> Any:
        """The report that the key was answered before; None when there is none."""
        if self._key is None:
            return None
        try:
            with self._store.read(self._invocation.deadline, by=self._by) as tx:
                first = self._find(self._key, self._store.sealer, tx)
                first = None if first is None else self._answer_again(tx, first)
        except IntegrityViolation:
            # While the store is sealed anew, rows and what seals are of one time in the writer's transactions alone.
            first = self._store.write(partial(self._written_again, self._key), grows=False, by=self._by)
        self.repeated = first is not None
        return first

    def once(self, handle: Callable[[], RawReport]) -> RawReport:
        """Run what opens its own transactions; its report is kept behind them."""
        if (first := self.earlier()) is not None:
            return first
        report = stamp(self._invocation, handle(), None)
        if self._key is not None:
            self._store.write(partial(self._keep_first, self._key, report), grows=False, by=self._by)
        return report

    def commit(self, apply: Callable[[WriteTransaction], R], *, begun: bool = False) -> R:
        """As `committing`, which waits here for the write."""
        return self._store.complete(self.committing(apply, begun=begun))

    def committing(
        self, apply: Callable[[WriteTransaction], R], *, begun: bool = False
    ) -> Generator[PendingWrite, Any, R]:
        """The change, its event-log rows and the key's report in one transaction; answers when that is on disk.

        `begun` says that the call has done work before, so that its deadline counts no more.
        """
        if self._last is None:
            deadline = None if begun else self._invocation.deadline
            report, self.repeated = yield PendingWrite(partial(self._write, apply), deadline, self._grows, self._by)
        else:
            written = yield PendingWrite(partial(self._write_on, apply), None, self._grows, self._by)
            report = self._joined(written)
        self._last = report
        self.begun = True
        return report

    def _write(self, apply: Callable[[WriteTransaction], R], tx: WriteTransaction) -> tuple[R, bool]:
        """The first transaction: the report, and whether the key had it already."""
        if self._key is not None and (first := self._find_written(self._key, tx)) is not None:
            return self._answer_again(tx, first), True
        before = len(tx.logged)
        report = stamp(self._invocation, apply(tx), tx, before)
        if self._key is not None and is_still(tx, self._invocation.caller):
            self._keep(tx, self._key, report)
        return report, False

    def _write_on(self, apply: Callable[[WriteTransaction], R], tx: WriteTransaction) -> R:
        """A later one, whose report takes the place of the first."""
        before = len(tx.logged)
        report = stamp(self._invocation, apply(tx), tx, before)
        if self._key is not None and is_still(tx, self._invocation.caller):
            told = idempotency.FirstReport(self._digest, self._packed(report))
            idempotency.restate(tx, *self._whose, self._key, told)
        return report

    def _joined(self, report: R) -> R:
        """A call that changed something in any of its transactions changed something."""
        before, after = self._last.lifecycle, report.lifecycle
        if after is None or after.changed or not before.changed:
            return report
        return codec.replace(report, lifecycle=codec.replace(after, changed=True, event_id=before.event_id))

    def _answer_again(self, tx: Any, first: Any) -> Any:
        """What a key that was used before is answered, of the report that was kept."""
        return answered_again(self._again, self._invocation, self._request, tx, first)

    def _packed(self, report: RawReport) -> bytes:
        """What of a report is kept."""
        return codec.pack(kept_form(report))

    def _unpacked(self, kept: bytes) -> Any:
        """The report that was kept."""
        return codec.unpack(kept, self._invocation.operation.report)

    @property
    def _whose(self) -> tuple[str, str]:
        return _whose(self._invocation)

    def _find_written(self, key: str, tx: WriteTransaction) -> Any:
        return self._find(key, tx.sealer, tx)

    def _written_again(self, key: str, tx: WriteTransaction) -> Any:
        first = self._find_written(key, tx)
        return None if first is None else self._answer_again(tx, first)

    def _find(self, key: str, sealer: Sealer | None, tx: Reading) -> Any:
        """The report that the key was answered first, if it was used before.

        Raises:
            Conflict: it was used for another request.
            IntegrityViolation: another program has changed what was kept of it.
        """
        # A call of a device that was removed meanwhile goes on, but its id may be another's by now.
        found = idempotency.find(tx, *self._whose, key) if is_still(tx, self._invocation.caller) else None
        if found is None:
            return None
        row, first = found
        if sealer is not None and not idempotency.is_as_written(tx, sealer, row):
            raise IntegrityViolation(
                reason="another program has changed what this idempotency key was answered first",
                hint="see whether the request was done before sending it with a new key; an operator's `beetle verify`"
                " names the row",
            )
        if first.request != self._digest:
            raise Conflict(
                reason="this idempotency key was used for another request",
                hint="use a new key for a new request; the same key only repeats the same request",
            )
        return self._unpacked(first.report)

    def _keep_first(self, key: str, report: RawReport, tx: WriteTransaction) -> None:
        if not is_still(tx, self._invocation.caller):
            return
        found = idempotency.find(tx, *self._whose, key)
        if found is None:
            self._keep(tx, key, report)
        elif found[1].request != self._digest:
            # One of a single transaction, which waits for no turn.
            raise Conflict(
                reason="this idempotency key was used for another request while this one ran",
                hint="both were done; use a new key for a new request",
            )

    def _keep(self, tx: WriteTransaction, key: str, report: RawReport) -> None:
        first = idempotency.FirstReport(self._digest, self._packed(report))
        idempotency.keep(tx, *self._whose, key, first, tx.now, self._invocation.shared.profile.budgets.idempotency_keys)


def _whose(invocation: Invocation) -> tuple[str, str]:
    """A key is its caller's own, in its space; a device's goes with the device."""
    return invocation.caller.name, invocation.space_id


def _digest(invocation: Invocation, request: Any) -> bytes:
    if getattr(request, "passphrase", None) is not None:
        # A digest of it would let it be guessed without the work that sealing asks for.
        request = codec.replace(request, passphrase=None)
    scope = invocation.scope
    named = (scope.owner_id, scope.agent_id, scope.channel, scope.chat_id, scope.conversation_id)
    return request_digest(invocation.key, invocation.operation.name, named, request)
