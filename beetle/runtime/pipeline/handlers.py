"""The four ways in which an operation is handled: read, write, plain and staged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.idempotency import Again, KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import RawReport
from beetle.store.damaged_rows import DAMAGE
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

Apply: TypeAlias = Callable[[WriteTransaction], RawReport]
Prepare: TypeAlias = Callable[[Invocation, Any], Apply]
R = TypeVar("R")


class Read(NamedTuple):
    """Answers out of one read transaction; with `refusals`, of what was refused before too."""

    handle: Callable[[Invocation, Any, Reading], RawReport]
    refusals: bool = False

    def within(self, invocation: Invocation, request: Any) -> Apply:
        """What answers the request in a transaction of several operations."""
        return lambda tx: self.answer(invocation, request, tx)

    def answer(self, invocation: Invocation, request: Any, tx: Reading) -> RawReport:
        """What answers the request.

        Raises:
            IntegrityViolation: a row that was read for it is damaged.
        """
        try:
            return self.handle(invocation, request, tx)
        except DAMAGE:
            # A value that no runtime writes, or a defect of ours: once more, with a look at each value that is read.
            from beetle.store.checked_reading import CheckedReading

            self.handle(invocation, request, CheckedReading(tx))
            raise


class Write(NamedTuple):
    """Does its pure work first, on the caller's thread, and returns what runs in the transaction.

    `settle` runs after the commit, also for a repeated report. `brief`: its pure work is short, waits for nothing, and
    reads no store. `again` is for those whose report is kept without what its caller said.
    """

    prepare: Prepare
    settle: Callable[[Invocation, Any], RawReport] | None = None
    brief: bool = False
    again: Again | None = None

    def within(self, invocation: Invocation, request: Any) -> Apply:
        """What answers the request in a transaction: its own, or one of several operations.

        Raises:
            IntegrityViolation: a row that was read for it is damaged.
        """
        return _looking(self.prepare, invocation, request)


class Plain(NamedTuple):
    """Opens its own transactions, or none. `again` as that of a write."""

    handle: Callable[[Invocation, Any], RawReport]
    again: Again | None = None

    def within(self, invocation: Invocation, request: Any) -> Apply:
        """What answers the request in a transaction of several operations."""
        return lambda _: self.answer(invocation, request)

    def answer(self, invocation: Invocation, request: Any) -> RawReport:
        """What answers the request. Raises IntegrityViolation as that of a read, where it only reads."""
        if invocation.operation.effect == "read":
            return _looking(self.handle, invocation, request)
        return self.handle(invocation, request)


class Staged(NamedTuple):
    """Reads, works and writes by turns, in the writes that it is given; no batch can hold it."""

    handle: Callable[[Invocation, Any, KeyedWrite], RawReport]

    def answer(self, invocation: Invocation, request: Any, write: KeyedWrite) -> RawReport:
        """What answers the request. Raises IntegrityViolation as that of a read, as long as nothing was written."""
        try:
            return self.handle(invocation, request, write)
        except DAMAGE:
            if write.begun:
                raise
            return self.handle(invocation._replace(checks=True), request, write)


def _looking(ask: Callable[[Invocation, Any], R], invocation: Invocation, request: Any) -> R:
    """What only reads answers; where it meets what no one foresaw, it is asked again, with a look at each value."""
    try:
        return ask(invocation, request)
    except DAMAGE:
        ask(invocation._replace(checks=True), request)
        raise


Handler: TypeAlias = Read | Write | Plain | Staged
