"""memory.maintain and memory.finalize_turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from beetle.contracts.codec import replace
from beetle.contracts.common import ConversationRef
from beetle.contracts.errors import Conflict, PrivacyDenied
from beetle.contracts.maintain import (
    Maintained,
    MemoryFinalizeTurnReport,
    MemoryFinalizeTurnRequest,
    MemoryMaintainReport,
    MemoryMaintainRequest,
    SessionCommit,
    TurnCommit,
)
from beetle.contracts.operations import BY_NAME
from beetle.contracts.transcript import MemoryTranscriptCommitReport, MemoryTranscriptCommitRequest
from beetle.runtime import jobs, maintain
from beetle.runtime.alias import current_conversation
from beetle.runtime.handlers import transcript
from beetle.runtime.handling import Context
from beetle.runtime.jobs import Left
from beetle.runtime.maintain import Gathered, find_conversation, gather, keep
from beetle.runtime.model_failure import ModelFailed
from beetle.runtime.stages import Stages
from beetle.store import evidence, maintenance, transcripts
from beetle.store import jobs as job_store
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

STEPS = ("gather", "ask_model", "judge")
"""Of maintaining: the model is asked in the second one."""
TURNS_AT_ONCE = 50
"""Most turns that the maintenance of one finalised turn looks at; a job goes on with the rest."""


def maintain_now(context: Context, request: MemoryMaintainRequest, stages: Stages) -> MemoryMaintainReport:
    """Read, ask, judge. Without a model, and when it gives no answer, nothing is changed.

    Raises:
        ServicesUnavailable: no model, or no answer that can be used.
        NotFound: there is no such conversation, or no current one that can be trusted.
        PrivacyDenied: this caller may not see what a model would be shown.
        Conflict: another call maintained the conversation meanwhile.
    """
    context.shared.catalog.check_view("model_context", context.caller)
    if context.shared.model is None:
        raise ModelFailed("not_configured")
    earlier = stages.earlier()
    if earlier is not None:
        return earlier
    maintain.ready(context)
    context.progress.plan(STEPS)
    context.progress.step("gather")
    with context.shared.store.read(context.deadline) as tx:
        gathered = gather(context, tx, find_conversation(context, tx, request.conversation), request.limit)
    context.progress.step("ask_model")
    sifted = maintain.ask(context, gathered)

    def apply(tx: WriteTransaction) -> MemoryMaintainReport:
        context.progress.step("judge", of=len(sifted.noted))
        report = keep(context, tx, gathered, sifted)
        if report is None:
            raise Conflict(
                reason="another call maintained this conversation while the model was asked",
                hint="nothing of this answer was kept; ask again for what is left",
            )
        left = job_store.same(tx, gathered.space, jobs.left_by(context, gathered.ref))
        if left is None:
            return report
        if report.has_more:
            return replace(report, job_id=left.job_id)
        if left.state == "waiting":
            jobs.done(tx, left, more=False)
        return report

    return stages.commit(apply, begun=True)


class Begun(NamedTuple):
    """The first half of finalising a turn: its report, and the job that was left for the second."""

    report: MemoryFinalizeTurnReport
    left: Left | None


def finalize_turn(context: Context, request: MemoryFinalizeTurnRequest, stages: Stages) -> MemoryFinalizeTurnReport:
    """Commit the turn and leave the job in one transaction; then, where a model is there, do the job at once.

    Raises:
        Conflict: the turn is there already with other content.
    """
    model = context.shared.model
    wanted = _wanted(context, request)
    # A model that has just failed is left alone: an agent's next turn does not wait for it again.
    hold_s = jobs.hold_s(model.timeout_s) if model is not None and model.rest_s == 0 else None
    begin = _beginning(context, request, wanted, hold_s)
    begun: list[Begun] = []

    def first(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
        begun[:] = [begin(tx)]
        return begun[0].report

    report = stages.commit(first)
    if stages.repeated or begun[0].left is None or not begun[0].left.held:
        return report
    return _go_on(context, request, stages, report, begun[0].left)


def _wanted(context: Context, request: MemoryFinalizeTurnRequest) -> Maintained:
    """Whether to maintain at all: `deferred` until it is done."""
    if not request.maintain:
        return "not_asked"
    catalog = context.shared.catalog
    if not catalog.visible(BY_NAME["memory.maintain"], context.caller):
        return "not_granted"
    try:
        catalog.check_view("model_context", context.caller)
    except PrivacyDenied:
        return "not_granted"
    return "deferred"


def _beginning(
    context: Context, request: MemoryFinalizeTurnRequest, wanted: Maintained, hold_s: float | None
) -> Callable[[WriteTransaction], Begun]:
    """The first transaction: the turn, the alias, and the job in case this process ends before the second one."""
    where = request.conversation
    commit = transcript.commit(context, MemoryTranscriptCommitRequest(conversation=where, turns=(request.turn,)))
    maintain.ready(context)

    def begin(tx: WriteTransaction) -> Begun:
        before = _alias(context, tx)
        committed = commit(tx)
        assert isinstance(committed, MemoryTranscriptCommitReport)
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        row = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
        assert row is not None
        evidence.remember_conversation(tx, context.remembered_by(space), row.conversation)
        turn = committed.turns[0]
        report = MemoryFinalizeTurnReport(
            transcript_commit=TurnCommit(turn_id=turn.turn_id, sequence=turn.sequence, outcome=turn.outcome),
            session_commit=_session_commit(context, tx, before, row.conversation),
            maintained=wanted,
        )
        if wanted != "deferred":
            return Begun(report, None)
        if maintenance.watermark(tx, row.conversation) >= row.last_sequence:
            # The turn was there already, and so was what was learned from it.
            return Begun(replace(report, maintained="done"), None)
        ref = ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id)
        left = jobs.leave(context, tx, space, ref, hold_s)
        reason = left.job.reason or _reason(context, left)
        return Begun(replace(report, deferred_job_id=left.job.job_id, deferred_reason=reason), left)

    return begin


def _reason(context: Context, left: Left) -> str:
    if context.shared.model is None:
        return "not_configured"
    return "interrupted" if left.held else "running" if left.job.state == "leased" else "resting"


def _alias(context: Context, tx: Reading) -> int | None:
    """What the scope's chat id stood for with this caller."""
    space = evidence.find_space(tx, context.space_id)
    own = None if space is None else transcripts.remembered(tx, context.remembered_by(space))
    return None if own is None else own[0]


def _session_commit(context: Context, tx: Reading, before: int | None, conversation: int) -> SessionCommit:
    space = evidence.find_space(tx, context.space_id)
    unnamed = context._replace(scope=context.scope._replace(conversation_id=None))
    if current_conversation(unnamed, tx, space, None).conversation is None:
        return "alias_untrusted"
    return "alias_current" if before == conversation else "alias_updated"


def _go_on(
    context: Context,
    request: MemoryFinalizeTurnRequest,
    stages: Stages,
    report: MemoryFinalizeTurnReport,
    left: Left,
) -> MemoryFinalizeTurnReport:
    """The second half. Whatever ends it before its write leaves the job, whose lease ends by itself."""
    try:
        with context.shared.store.read() as tx:
            gathered = gather(context, tx, find_conversation(context, tx, request.conversation), TURNS_AT_ONCE)
        sifted = maintain.ask(context, gathered)
    except ModelFailed as failure:
        return stages.commit(_failing(context, report, left, failure))

    def finish(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
        return _finished(tx, report, left, gathered, keep(context, tx, gathered, sifted))

    return stages.commit(finish)


def _failing(
    context: Context, report: MemoryFinalizeTurnReport, left: Left, failure: ModelFailed
) -> Callable[[WriteTransaction], MemoryFinalizeTurnReport]:
    def apply(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
        if job_store.holds(tx, left.job):
            ids = context.shared.surroundings.ids
            # What is told as deferred must wait: the last attempt is the job loop's.
            jobs.not_done(tx, left.job, ids, failure.code, counts=failure.counts, last_counts=False)
        return replace(report, deferred_reason=failure.code)

    return apply


def _finished(
    tx: WriteTransaction,
    report: MemoryFinalizeTurnReport,
    left: Left,
    gathered: Gathered,
    maintained: MemoryMaintainReport | None,
) -> MemoryFinalizeTurnReport:
    """What became of the turn and its job; `maintained` is None when another call was faster."""
    looked_through = maintenance.watermark(tx, gathered.conversation)
    more = maintenance.last_sequence(tx, gathered.conversation) > looked_through
    if job_store.holds(tx, left.job):
        jobs.done(tx, left.job, more=more, quiet=left.new)
    if maintained is None:
        if more:
            return replace(report, deferred_reason="overtaken")
        return replace(report, maintained="done", deferred_job_id=None, deferred_reason=None)
    if more:
        maintained = replace(maintained, job_id=left.job.job_id)
    return replace(report, maintained="done", maintenance=maintained, deferred_job_id=None, deferred_reason=None)
