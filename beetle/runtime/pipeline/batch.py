"""A batch: several operations in one transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from beetle.contracts import codec
from beetle.contracts.control import BatchReport
from beetle.contracts.errors import BeetleError, DeadlineExceeded, PayloadTooLarge
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.first_reports import kept_plain
from beetle.runtime.pipeline.idempotency import Again, KeyedWrite, answered_again
from beetle.runtime.pipeline.invocation import Invocation, stamp
from beetle.runtime.pipeline.views import RawReport
from beetle.store.engine.transaction import Reading, Stopped, stopping_at
from beetle.store.engine.write_transaction import WriteTransaction

DONE = "the batch was done"
READS_S = 0.5
"""For so long together the reads of a batch that writes may hold the writer."""


class BatchStep(NamedTuple):
    """The `number`th operation of a batch, authorized and admitted.

    `clipped` when a budget has lowered what it asks for.
    """

    number: int
    invocation: Invocation
    request: Any
    clipped: bool
    apply: Callable[[Any], RawReport]
    writes: bool
    again: Again | None = None

    @property
    def grows(self) -> bool:
        """Whether it may make the store larger."""
        row = self.invocation.operation
        return row.grows and row.effect == "write"

    def run(self, tx: WriteTransaction) -> dict[str, Any]:
        """Its report as its caller may see it."""
        before = len(tx.logged)
        with self._named():
            report = self.apply(tx)
        return self._revealed(stamp(self.invocation, report, tx, before))

    def read(self, tx: Reading) -> dict[str, Any]:
        """As `run`, of what only reads."""
        with self._named():
            report = self.apply(tx)
        return self._revealed(stamp(self.invocation, report, None))

    @contextmanager
    def _named(self) -> Generator[None]:
        """An error says which of the batch's operations it is of."""
        try:
            yield
        except BeetleError as error:
            error.details["index"] = self.number
            raise

    def kept(self, shown: dict[str, Any]) -> dict[str, Any]:
        """What of its report is kept: of what was read nothing."""
        return kept_plain(shown, self.invocation.operation.report) if self.writes else {}

    def first(self, kept: dict[str, Any]) -> dict[str, Any]:
        """Its report as it was kept."""
        return self._revealed(codec.from_plain(kept, self.invocation.operation.report)) if self.writes else {}

    def repeat(self, tx: WriteTransaction, kept: dict[str, Any], until: float) -> dict[str, Any]:
        """Its report with its records as they are now, or what is read now; as it was kept where that cannot be shown,
        or not until then (monotonic seconds).
        """
        try:
            with stopping_at(tx, until):
                if not self.writes:
                    return self.run(tx)
                first = codec.from_plain(kept, self.invocation.operation.report)
                return self._revealed(answered_again(self.again, self.invocation, self.request, tx, first))
        except (BeetleError, Stopped):
            return self.first(kept)

    def _revealed(self, report: RawReport) -> dict[str, Any]:
        return codec.to_plain(self.invocation.reveal(self.request, report, clipped=self.clipped))


def read_batch(invocation: Invocation, steps: Sequence[BatchStep]) -> BatchReport:
    """A batch that only reads: in one read transaction, and no key is kept for it."""
    reports: list[dict[str, Any]] = []
    room = _Room(invocation)
    with invocation.reading() as tx, invocation.going_on():
        for step in steps:
            if invocation.must_end:
                raise _late(step)
            reports.append(room.take(step, step.read(tx)))
    return stamp(invocation, BatchReport(reports=tuple(reports)), None)


class _Room:
    """The bytes that the reports of one batch may have together."""

    def __init__(self, invocation: Invocation) -> None:
        self._most = self._left = invocation.shared.profile.budgets.answer_bytes

    def take(self, step: BatchStep, shown: dict[str, Any]) -> dict[str, Any]:
        """The step's report; raises PayloadTooLarge when it is one too many."""
        self._left -= len(codec.pack(shown))
        if self._left < 0:
            hint = "nothing was changed; send fewer requests in one batch, or give them lower limits"
            what = "what the batch answers"
            error = PayloadTooLarge(what=what, maximum=self._most, unit="bytes", limit="answer_bytes", hint=hint)
            error.details["index"] = step.number
            raise error
        return shown


class KeyedBatch(KeyedWrite):
    """A batch as one write.

    What it reads is read in the same transaction, on the writer's thread. All wait for that, so its reads have a short
    time together; and it ends between two of its operations once its deadline has passed.
    """

    def __init__(self, key: str | None, invocation: Invocation, request: Any, steps: Sequence[BatchStep]) -> None:
        super().__init__(key, invocation, request)
        self._grows = any(step.grows for step in steps)
        self._steps = steps

    def run(self) -> BatchReport:
        """Every step in order, or none."""
        return self.commit(lambda tx: BatchReport(reports=tuple(self._each(tx))))

    def _packed(self, report: Any) -> bytes:
        paired = zip(self._steps, report.reports or (), strict=True)
        return codec.pack(codec.replace(report, reports=tuple(step.kept(shown) for step, shown in paired)))

    def _answer_again(self, tx: WriteTransaction, first: Any) -> BatchReport:
        """Never an error of a step, which would say that nothing was written: what was kept stands where the time of a
        batch's reads, its deadline or the bytes of one answer end before.
        """
        kept: Sequence[dict[str, Any]] = first.reports or ()
        reports = [step.first(each) for step, each in zip(self._steps, kept, strict=True)]
        until = min(time.monotonic() + READS_S, self._invocation.deadline or math.inf)
        left = self._invocation.shared.profile.budgets.answer_bytes - sum(len(codec.pack(each)) for each in reports)
        cut = False
        for step in self._steps:
            was, now = reports[step.number], step.repeat(tx, kept[step.number], until)
            more = len(codec.pack(now)) - len(codec.pack(was))
            if more <= max(left, 0):
                left -= more
                reports[step.number] = now
                continue
            cut = True
            if step.writes:
                reports[step.number] = {**was, "profile_budget_applied": True}
        return codec.replace(first, reports=tuple(reports), profile_budget_applied=cut or first.profile_budget_applied)

    def _each(self, tx: WriteTransaction) -> Iterator[dict[str, Any]]:
        """What each step answers, within the batch's time."""
        deadline = self._invocation.deadline or math.inf
        left, room = READS_S, _Room(self._invocation)
        for step in self._steps:
            began = time.monotonic()
            if began > deadline:
                raise _late(step)
            if step.writes:
                yield room.take(step, step.run(tx))
                continue
            try:
                with stopping_at(tx, min(began + left, deadline)):
                    report = step.run(tx)
            except Stopped:
                raise (_late(step) if time.monotonic() > deadline else _too_long(step)) from None
            left -= time.monotonic() - began
            yield room.take(step, report)


def _late(step: BatchStep) -> DeadlineExceeded:
    error = DeadlineExceeded.before(DONE)
    error.details["index"] = step.number
    return error


def _too_long(step: BatchStep) -> DeadlineExceeded:
    error = DeadlineExceeded(
        what="the reads beside a batch's writes were done",
        deadline_ms=round(READS_S * 1000),
        hint="nothing was changed; send the reads in a batch of their own, which may take its whole deadline",
    )
    error.details["index"] = step.number
    return error
