"""Maintenance: what the configured model notes of a conversation, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from beetle.contracts.codec import replace
from beetle.contracts.common import Conversation, ConversationRef, DerivedMemoryRef
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound, PrivacyDenied
from beetle.contracts.governance import GovernanceOutcome
from beetle.contracts.maintain import (
    Maintained,
    MemoryFinalizeTurnReport,
    MemoryFinalizeTurnRequest,
    MemoryMaintainReport,
    MemoryMaintainRequest,
    SessionCommit,
    TurnCommit,
    decode_answer,
)
from beetle.contracts.operations import BY_NAME
from beetle.contracts.refs import format_ref
from beetle.contracts.transcript import MemoryTranscriptCommitReport, MemoryTranscriptCommitRequest
from beetle.domain.governance import evidence_trouble, extraction_privacy
from beetle.domain.maintenance import Noted, Shown, Sifted, prompt_of, sift
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.evidence import transcript
from beetle.runtime.areas.evidence.alias import current_conversation, remember
from beetle.runtime.areas.governance import judging as governance
from beetle.runtime.areas.governance import queue
from beetle.runtime.areas.governance.targets import claim_of_item
from beetle.runtime.host import jobs
from beetle.runtime.host.devices import is_still
from beetle.runtime.host.jobs import EnqueuedJob
from beetle.runtime.host.model_failure import ModelFailed
from beetle.runtime.pipeline.handlers import Handler, Staged
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import withheld
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence, maintenance, transcripts
from beetle.store import jobs as job_store
from beetle.store.damaged_rows import is_time, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event
from beetle.store.maintenance import MessageRow

STEPS = ("gather", "ask_model", "judge")
"""Of maintaining: the model is asked in the second one."""
TURNS_AT_ONCE = 50
"""Most turns that the maintenance of one finalised turn looks at; a job goes on with the rest."""


def maintain_now(invocation: Invocation, request: MemoryMaintainRequest, writes: KeyedWrite) -> MemoryMaintainReport:
    """Read, ask, judge. Without a model, and when it gives no answer, nothing is changed.

    Raises:
        ServicesUnavailable: no model, or no answer that can be used.
        NotFound: there is no such conversation, or no current one that can be trusted.
        PrivacyDenied: this caller may not see what a model would be shown.
        Conflict: another call maintained the conversation meanwhile.
    """
    invocation.shared.catalog.check_view("model_context", invocation.caller)
    if invocation.shared.model is None:
        raise ModelFailed("not_configured")
    earlier = writes.earlier()
    if earlier is not None:
        return earlier
    governance.ready(invocation)
    invocation.progress.plan(STEPS)
    invocation.progress.step("gather")
    with invocation.reading() as tx:
        gathered = gather(invocation, tx, find_conversation(invocation, tx, request.conversation), request.limit)
    invocation.progress.step("ask_model")
    sifted = ask(invocation, gathered)

    def apply(tx: WriteTransaction) -> MemoryMaintainReport:
        invocation.progress.step("judge", of=len(sifted.noted))
        report = keep(invocation, tx, gathered, sifted)
        if report is None:
            raise Conflict(
                reason="another call maintained this conversation while the model was asked",
                hint="nothing of this answer was kept; ask again for what is left",
            )
        left = job_store.same(tx, gathered.space, jobs.job_for(invocation, gathered.ref))
        if left is None:
            return report
        if report.has_more:
            return replace(report, job_id=left.job_id)
        if left.state == "waiting":
            jobs.done(tx, left, more=False)
        return report

    return writes.commit(apply, begun=True)


class StartedTurn(NamedTuple):
    """The first half of finalising a turn: its report, and the job that was left for the second."""

    report: MemoryFinalizeTurnReport
    left: EnqueuedJob | None


def finalize_turn(
    invocation: Invocation, request: MemoryFinalizeTurnRequest, writes: KeyedWrite
) -> MemoryFinalizeTurnReport:
    """Commit the turn and leave the job in one transaction; then, where a model is there, do the job at once.

    Raises:
        Conflict: the turn is there already with other content.
    """
    model = invocation.shared.model
    wanted = _wanted(invocation, request)
    # A model that has just failed is left alone: an agent's next turn does not wait for it again.
    hold_s = jobs.hold_s(model.timeout_s) if model is not None and model.rest_s == 0 else None
    begin = _beginning(invocation, request, wanted, hold_s)
    begun: list[StartedTurn] = []

    def first(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
        begun[:] = [begin(tx)]
        return begun[0].report

    report = writes.commit(first)
    if writes.repeated or begun[0].left is None or not begun[0].left.held:
        return report
    return _go_on(invocation, request, writes, report, begun[0].left)


def _wanted(invocation: Invocation, request: MemoryFinalizeTurnRequest) -> Maintained:
    """Whether to maintain at all: `deferred` until it is done."""
    if not request.maintain:
        return "not_asked"
    catalog = invocation.shared.catalog
    if not catalog.visible(BY_NAME["memory.maintain"], invocation.caller):
        return "not_granted"
    try:
        catalog.check_view("model_context", invocation.caller)
    except PrivacyDenied:
        return "not_granted"
    return "deferred"


def _beginning(
    invocation: Invocation, request: MemoryFinalizeTurnRequest, wanted: Maintained, hold_s: float | None
) -> Callable[[WriteTransaction], StartedTurn]:
    """The first transaction: the turn, the alias, and the job in case this process ends before the second one."""
    where = request.conversation
    commit = transcript.commit(invocation, MemoryTranscriptCommitRequest(conversation=where, turns=(request.turn,)))
    governance.ready(invocation)

    def begin(tx: WriteTransaction) -> StartedTurn:
        known = evidence.find_space(tx, invocation.space_id)
        # What the scope's chat id stood for with this caller.
        own = None if known is None else transcripts.remembered(tx, invocation.remembered_by(known))
        committed = commit(tx)
        assert isinstance(committed, MemoryTranscriptCommitReport)
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        row = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
        assert row is not None
        remember(invocation, tx, space, row.conversation)
        turn = committed.turns[0]
        report = MemoryFinalizeTurnReport(
            transcript_commit=TurnCommit(turn_id=turn.turn_id, sequence=turn.sequence, outcome=turn.outcome),
            session_commit=_session_commit(invocation, tx, own and own[0], row.conversation),
            maintained=wanted,
        )
        if wanted != "deferred":
            return StartedTurn(report, None)
        if not is_still(tx, invocation.caller):
            # A job runs in its principal's name, which may be another's by now.
            return StartedTurn(replace(report, maintained="not_granted"), None)
        if maintenance.watermark(tx, row.conversation) >= row.last_sequence:
            # The turn was there already, and so was what was learned from it.
            return StartedTurn(replace(report, maintained="done"), None)
        ref = ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id)
        left = jobs.enqueue(invocation, tx, space, ref, hold_s)
        reason = left.job.reason or _reason(invocation, left)
        return StartedTurn(replace(report, deferred_job_id=left.job.job_id, deferred_reason=reason), left)

    return begin


def _reason(invocation: Invocation, left: EnqueuedJob) -> str:
    if invocation.shared.model is None:
        return "not_configured"
    return "interrupted" if left.held else "running" if left.job.state == "leased" else "resting"


def _session_commit(invocation: Invocation, tx: Reading, before: int | None, conversation: int) -> SessionCommit:
    space = evidence.find_space(tx, invocation.space_id)
    unnamed = invocation._replace(scope=invocation.scope._replace(conversation_id=None))
    if current_conversation(unnamed, tx, space, None).conversation is None:
        return "alias_untrusted"
    return "alias_current" if before == conversation else "alias_updated"


def _go_on(
    invocation: Invocation,
    request: MemoryFinalizeTurnRequest,
    writes: KeyedWrite,
    report: MemoryFinalizeTurnReport,
    left: EnqueuedJob,
) -> MemoryFinalizeTurnReport:
    """The second half. Whatever ends it before its write leaves the job, whose lease ends by itself."""
    try:
        with invocation.shared.store.read(by=invocation.caller.name) as tx:
            gathered = gather(invocation, tx, find_conversation(invocation, tx, request.conversation), TURNS_AT_ONCE)
        sifted = ask(invocation, gathered)
    except ModelFailed as failure:
        code, counts = failure.code, failure.counts

        def fail(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
            if job_store.holds(tx, left.job):
                # What is told as deferred must wait: the last attempt is the job loop's.
                ids = invocation.shared.dependencies.ids
                jobs.retry_later(tx, left.job, ids, code, counts=counts, last_counts=False)
            return replace(report, deferred_reason=code)

        return writes.commit(fail)

    def finish(tx: WriteTransaction) -> MemoryFinalizeTurnReport:
        return _finished(tx, report, left, gathered, keep(invocation, tx, gathered, sifted))

    return writes.commit(finish)


def _finished(
    tx: WriteTransaction,
    report: MemoryFinalizeTurnReport,
    left: EnqueuedJob,
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


SHOWN_KINDS = frozenset({"shared", "private"})
"""What a model may ever be shown, whoever asks; soul, backend and operator material stays here."""
SHOWN_ROLES = frozenset({"user", "assistant", "tool", "tool_use", "tool_result"})
"""Whose words may become memory; a host's own instructions are no evidence of anything."""
NOTHING = Sifted((), 0, 0)


class Gathered(NamedTuple):
    """What is to be asked about: the turns of a conversation behind `before` up to `upto`, as far as they are shown.

    `clipped` says that a message was too long to be shown whole.
    """

    space: int
    conversation: int
    ref: ConversationRef
    before: int
    upto: int
    turns: int
    shown: tuple[Shown, ...]
    withheld: int
    clipped: bool


def find_conversation(
    invocation: Invocation, tx: Reading, named: Conversation | None
) -> tuple[int, int, ConversationRef]:
    """The conversation that is named, else the current one: the keys of its space and itself, its ref.

    Raises:
        NotFound: there is none, or the scope's chat id stands for none that can be trusted.
    """
    space = evidence.find_space(tx, invocation.space_id)
    current = current_conversation(invocation, tx, space, named)
    if space is None or current.conversation is None or current.ref is None:
        name = invocation.scope.chat_id if named is None else f"{named.channel_id}/{named.conversation_id}"
        listing = "name one of those that `beetle transcript conversations` lists"
        raise NotFound(kind="conversation", name=name, listing=listing)
    return space, current.conversation, current.ref


def gather(invocation: Invocation, tx: Reading, found: tuple[int, int, ConversationRef], limit: int) -> Gathered:
    """The next turns to ask about, as the model may see them for this caller.

    Turns are taken whole, as many as the profile's projection_chars hold; of the first one alone, what is too long is
    shown in part.
    """
    room = invocation.shared.profile.budgets.projection_chars
    _, conversation, ref = found
    before = upto = maintenance.watermark(tx, conversation)
    shown: list[Shown] = []
    hidden = turns = 0
    clipped = False
    for turn in maintenance.turns_after(tx, conversation, before, limit):
        rows = maintenance.messages_of(tx, turn.turn)
        visible = [row for row in rows if _may_show(invocation, row) and is_time(row.at)]
        if shown and sum(len(row.content or "") for row in visible) > room:
            break
        most = max(1, room // max(1, len(visible)))
        texts = [(row, (row.content or "")[:most] if not shown else row.content or "") for row in visible]
        clipped |= any(len(text) < len(row.content or "") for row, text in texts)
        named = (ref.channel_id, ref.conversation_id, turn.turn_id)
        made = [
            Shown(
                row.message_id, format_ref("evidence", *named, row.message_id), row.role, row.speaker,
                shown_time(row.at, "message", row.message_id), text,
            )
            for row, text in texts
        ]  # fmt: skip
        shown += made
        hidden += len(rows) - len(visible)
        room -= sum(len(each.text) for each in made)
        turns += 1
        upto = turn.sequence
    return Gathered(*found, before, upto, turns, tuple(shown), hidden, clipped)


def _may_show(invocation: Invocation, row: MessageRow) -> bool:
    """Through the model's view of this caller; private material only to a model on this machine."""
    if row.content is None or not row.content.strip() or row.role not in SHOWN_ROLES:
        return False
    if not is_whole(invocation.key, row):
        return False  # damaged: nobody said it
    if row.visibility not in SHOWN_KINDS or withheld(row.visibility, row.state, invocation.viewer("model_context")):
        return False
    model = invocation.shared.model
    return row.visibility == "shared" or (model is not None and model.local)


def ask(invocation: Invocation, gathered: Gathered) -> Sifted:
    """What the model notes, as far as its messages say it. No transaction may be open: this can take minutes.

    Raises:
        ModelFailed: there is no model, or no answer that can be used.
    """
    model = invocation.shared.model
    if model is None:
        raise ModelFailed("not_configured")
    if not gathered.shown:
        return NOTHING
    text = model.ask(prompt_of(gathered.shown))
    try:
        return sift(decode_answer(text), gathered.shown)
    except InvalidRequest:
        # Its message may quote the answer.
        model.failed()
        raise ModelFailed("wrong_answer") from None


def keep(
    invocation: Invocation, tx: WriteTransaction, gathered: Gathered, sifted: Sifted
) -> MemoryMaintainReport | None:
    """Judge what the model noted, and move the watermark; None, with nothing changed, when it was moved meanwhile."""
    model = invocation.shared.model
    assert model is not None
    if maintenance.watermark(tx, gathered.conversation) != gathered.before:
        return None
    outcomes: list[GovernanceOutcome] = []
    refs: list[DerivedMemoryRef] = []
    if sifted.noted:
        queue.drop_expired(invocation, tx, gathered.space)
    for index, noted in enumerate(sifted.noted):
        outcome, made = _judge(invocation, tx, gathered.space, index, noted, f"maintain {model.name}"[:256])
        outcomes.append(outcome)
        refs.extend(made)
    items = len(sifted.noted) + sifted.unsupported + sifted.refused
    if gathered.upto > gathered.before:
        maintenance.set_watermark(tx, gathered.conversation, gathered.upto, tx.now)
        tx.log(_event(invocation, gathered, sifted, outcomes))
    most = invocation.shared.profile.budgets.derived_refs
    return MemoryMaintainReport(
        conversation=gathered.ref,
        asked=bool(gathered.shown),
        model=model.name,
        turns=gathered.turns,
        shown=len(gathered.shown),
        withheld=gathered.withheld,
        items=items,
        outcomes=tuple(outcomes),
        unsupported=sifted.unsupported,
        refused=sifted.refused,
        derived_refs=tuple(refs[:most]),
        watermark_before=gathered.before,
        watermark=gathered.upto,
        has_more=maintenance.last_sequence(tx, gathered.conversation) > gathered.upto,
        profile_budget_applied=gathered.clipped or len(refs) > most,
    )


def _judge(
    invocation: Invocation, tx: WriteTransaction, space: int, index: int, noted: Noted, extractor: str
) -> tuple[GovernanceOutcome, tuple[DerivedMemoryRef, ...]]:
    """Judge one note. Its evidence is looked at anew: a message may have been masked while the model was asked."""
    cited = governance.cited(tx, space, noted.evidence)
    privacy = extraction_privacy(cited)
    if (trouble := evidence_trouble(cited, privacy)) is not None:
        # Before a policy could have it wait: what quotes an erased message must not be kept at all.
        return GovernanceOutcome(index=index, outcome="rejected", reason=trouble), ()
    chat_id = invocation.scope.chat_id
    claim = claim_of_item(invocation, noted.item, noted.evidence, noted.authority, privacy, chat_id, extractor)
    return governance.consider(invocation, tx, space, index, claim)


def _event(invocation: Invocation, gathered: Gathered, sifted: Sifted, outcomes: list[GovernanceOutcome]) -> Event:
    return invocation.event(
        "memory",
        "maintained",
        channel_id=gathered.ref.channel_id,
        conversation_id=gathered.ref.conversation_id,
        first_sequence=gathered.before + 1,
        last_sequence=gathered.upto,
        shown=len(gathered.shown),
        accepted=sum(each.outcome == "accepted" for each in outcomes),
        judged=len(outcomes),
        unsupported=sifted.unsupported,
        refused=sifted.refused,
    )


HANDLERS: Mapping[str, Handler] = {
    "memory.maintain": Staged(maintain_now),
    "memory.finalize_turn": Staged(finalize_turn),
}
