"""Deferred work: how a job is left and ends, and how one is done that is due."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from beetle.contracts.codec import convert_request
from beetle.contracts.common import Conversation, ConversationRef, WireScope
from beetle.contracts.errors import BeetleError, InvalidRequest, NotFound, PrivacyDenied
from beetle.contracts.maintain import MemoryMaintainReport, MemoryMaintainRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.model_failure import ModelFailed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import jobs
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event
from beetle.store.jobs import JobRow, NewJob

log = logging.getLogger("beetle.jobs")

MAINTAIN = "maintain"
OPERATION = "memory.maintain"
SECOND_US = 1_000_000
LEASE_MARGIN_S = 60
"""How much longer than its model may take a job is held: what is left to do is one write."""
FIRST_PAUSE_S = 30
MOST_PAUSE_S = 3600
MOST_ATTEMPTS = 8
EMBEDDED = "embedded:*"
"""Principals that live in a process of their own; a daemon knows none of them, and leaves their jobs to them."""


class EnqueuedJob(NamedTuple):
    """A job that was left. `held` says that whoever left it does it now; `new`, that it was not there before."""

    job: JobRow
    held: bool
    new: bool


def job_for(invocation: Invocation, ref: ConversationRef) -> NewJob:
    """The job of maintaining a conversation for this caller. There is one of it, however often it is left."""
    scope = invocation.scope
    return NewJob(
        job_id=invocation.new_id("j"),
        kind=MAINTAIN,
        principal=invocation.caller.name,
        agent_id=scope.agent_id,
        channel=scope.channel,
        chat_id=scope.chat_id,
        subject={"channel_id": ref.channel_id, "conversation_id": ref.conversation_id},
    )


def enqueue(
    invocation: Invocation, tx: WriteTransaction, space: int, ref: ConversationRef, hold_s: float | None
) -> EnqueuedJob:
    """Leave a job, or find the one that is left already; hold it for `hold_s` seconds unless somebody else does."""
    job, new = jobs.enqueue(tx, space, job_for(invocation, ref), tx.now, tx.now)
    if new and hold_s is None:
        tx.log(_event(job, "job_left"))
    free = job.state == "waiting" or (job.lease_until or 0) <= tx.now or jobs.is_of_another_clock(job, tx.now)
    if hold_s is None or not free:
        return EnqueuedJob(job, False, new)
    return EnqueuedJob(jobs.lease(tx, job, tx.now, tx.now + round(hold_s * SECOND_US)), True, new)


def hold_s(timeout_s: int) -> int:
    """Seconds for which a job is held whose model may take `timeout_s`."""
    return timeout_s + LEASE_MARGIN_S


def done(tx: WriteTransaction, job: JobRow, *, more: bool, quiet: bool = False) -> None:
    """A job was done; with `more` to do it waits again. `quiet` leaves out the event of one that never waited."""
    if more:
        jobs.put_off(tx, job, tx.now, reason=None, attempts=0, not_before=tx.now)
        tx.log(_event(job, "job_goes_on"))
        return
    jobs.end(tx, job, tx.now, "done", None)
    if not quiet:
        tx.log(_event(job, "job_done"))


def retry_later(
    tx: WriteTransaction,
    job: JobRow,
    ids: Callable[[int], bytes],
    reason: str,
    *,
    counts: bool,
    last_counts: bool = True,
) -> None:
    """An attempt came to nothing: the job waits, for longer after each attempt that `counts`.

    After the last of them it has failed; without `last_counts` it still waits for one.
    """
    attempts = job.attempts + counts
    if not last_counts:
        attempts = min(attempts, MOST_ATTEMPTS - 1)
    if attempts >= MOST_ATTEMPTS:
        jobs.end(tx, job, tx.now, "failed", reason)
        tx.log(_event(job, "job_failed", reason=reason, attempts=attempts))
        return
    pause = min(FIRST_PAUSE_S * 2 ** max(0, attempts - 1), MOST_PAUSE_S)
    # Three quarters to five quarters: jobs that failed together do not come back together.
    drawn = int.from_bytes(ids(2), "big") / 2**16
    not_before = tx.now + round(pause * (0.75 + drawn / 2) * SECOND_US)
    jobs.put_off(tx, job, tx.now, reason=reason, attempts=attempts, not_before=not_before)
    tx.log(_event(job, "job_put_off", reason=reason, attempts=attempts))


def retry_now(tx: WriteTransaction, job: JobRow) -> None:
    """Somebody wants a job tried again: it is due at once, with all its attempts before it."""
    jobs.put_off(tx, job, tx.now, reason=job.reason, attempts=0, not_before=tx.now)
    tx.log(_event(job, "job_retried"))


def drop(tx: WriteTransaction, job: JobRow, reason: str) -> None:
    """A job can never be done."""
    jobs.end(tx, job, tx.now, "dropped", reason)
    tx.log(_event(job, "job_dropped", reason=reason))


def _event(job: JobRow, event: str, **more: object) -> Event:
    subject = {"job_id": job.job_id, "kind": job.kind, **job.subject, **more}
    return Event("job", event, OPERATION, job.principal, job.owner, subject)


def exactly(name: str) -> str:
    """The GLOB pattern that fits this name alone."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)


class JobRunner(Protocol):
    """What doing them asks of the runtime whose jobs it does."""

    def may(self, operation: str, caller: Caller, scope: WireScope) -> bool:
        """Whether a caller may use an operation in a scope."""
        ...

    def maintain(self, caller: Caller, scope: WireScope, request: MemoryMaintainRequest) -> MemoryMaintainReport:
        """Maintain a conversation, as any caller would have it done."""
        ...


class JobLimits(NamedTuple):
    """How they are done.

    `caller_of` answers who a principal's name stands for now, None for nobody. Jobs are looked at whose principal fits
    `whose` and not `not_whose` (GLOB). `timeout_s` is what the model may take, `rest_s` for how long it is left alone
    just now.
    """

    caller_of: Callable[[str], Caller | None]
    whose: str
    not_whose: str
    timeout_s: int
    rest_s: Callable[[], float]
    clock: Callable[[], int]
    ids: Callable[[int], bytes]


class DeferredJobs:
    """Does the jobs that are due, one after the other."""

    def __init__(self, store: Store, doing: JobRunner, terms: JobLimits) -> None:
        self._store = store
        self._doing = doing
        self._terms = terms

    def run_next(self) -> bool:
        """Do one job that is due; whether there was one."""
        terms = self._terms
        if terms.rest_s() > 0:
            return False
        with self._store.read() as tx:
            if jobs.due(tx, terms.clock(), terms.whose, terms.not_whose) is None:
                return False
        job = self._store.write(self._take, grows=False)
        if job is not None:
            self._do(job)
        return job is not None

    def next_due(self) -> int | None:
        """When the next job is due, and the model may be asked; None when nothing waits."""
        terms = self._terms
        with self._store.read() as tx:
            at = jobs.next_due(tx, terms.clock(), terms.whose, terms.not_whose)
        rest = terms.rest_s()
        return at if at is None or rest <= 0 else max(at, terms.clock() + round(rest * SECOND_US))

    def _take(self, tx: WriteTransaction) -> JobRow | None:
        job = jobs.due(tx, tx.now, self._terms.whose, self._terms.not_whose)
        until = tx.now + hold_s(self._terms.timeout_s) * SECOND_US
        return None if job is None else jobs.lease(tx, job, tx.now, until)

    def _do(self, job: JobRow) -> None:
        """Run a job as the principal and in the scope that left it, and settle what became of it."""
        scope = WireScope(
            owner_id=job.owner.removeprefix("space:"),
            agent_id=job.agent_id,
            channel=job.channel,
            chat_id=job.chat_id,
        )
        caller = self._terms.caller_of(job.principal)
        if caller is None:
            self._settle(job, lambda tx: drop(tx, job, "principal_gone"))
        elif job.kind != MAINTAIN or not self._doing.may(OPERATION, caller, scope):
            self._settle(job, lambda tx: drop(tx, job, "not_granted"))
        else:
            self._maintain(job, caller, scope)

    def _maintain(self, job: JobRow, caller: Caller, scope: WireScope) -> None:
        try:
            subject = convert_request(job.subject, Conversation, "$.subject")
        except InvalidRequest:
            self._settle(job, lambda tx: drop(tx, job, "conversation_gone"))  # damaged: nobody knows which it was
            return
        request = MemoryMaintainRequest(conversation=subject)
        try:
            report = self._doing.maintain(caller, scope, request)
        except ModelFailed as failure:
            code, counts = failure.code, failure.counts
            self._settle(job, lambda tx: retry_later(tx, job, self._terms.ids, code, counts=counts))
        except NotFound:
            self._settle(job, lambda tx: drop(tx, job, "conversation_gone"))
        except PrivacyDenied:
            self._settle(job, lambda tx: drop(tx, job, "not_granted"))
        except BeetleError as error:
            # What passes by itself is no attempt: a full queue, a mode that only reads, another call that was faster.
            key, passes = error.key, error.retryable or error.key in ("conflict", "forbidden", "services_unavailable")
            self._settle(job, lambda tx: retry_later(tx, job, self._terms.ids, key, counts=not passes))
        else:
            self._settle(job, lambda tx: done(tx, job, more=report.has_more))

    def _settle(self, job: JobRow, settle: Callable[[WriteTransaction], object]) -> None:
        """Write what became of a job, unless its lease was lost meanwhile."""

        def apply(tx: WriteTransaction) -> None:
            if jobs.holds(tx, job):
                settle(tx)

        try:
            self._store.write(apply, grows=False)
        except BeetleError as error:
            # The lease ends by itself, and the job is taken up again.
            log.warning(
                "the outcome of job %s could not be written: %s",
                job.job_id,
                error.message,
                extra={"event": "outcome_not_written"},
            )
