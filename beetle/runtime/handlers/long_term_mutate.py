"""long_term.mutate: correct, supersede, delete, forget by a query, mark stale, change who may see."""

from __future__ import annotations

import base64
import hmac
from typing import NamedTuple

from beetle.contracts.codec import pack
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import Conflict, Forbidden, InvalidRequest, StoreBudgetExceeded
from beetle.contracts.long_term import FactOutcome, LongTermMutateReport, LongTermMutateRequest
from beetle.memory.digest import keyed
from beetle.memory.governance import FITTING, STRENGTH, VISIBILITY, normalised
from beetle.memory.lexical import all_words
from beetle.runtime import evolve, facts, governance, receipts
from beetle.runtime.facts import Change, Draft, fact_ref
from beetle.runtime.handlers.long_term import Eyes, derived_refs, existing, eyes, saying
from beetle.runtime.handling import Apply, Context
from beetle.store import candidates, evidence, long_term
from beetle.store.connection import PAGE_SIZE
from beetle.store.long_term import BodyRow, FactRow, WaitingText
from beetle.store.proposals import ProposalRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

TOKEN_BYTES = 24
REFS_SHOWN = 10_000

SHARED = frozenset(privacy for privacy, visibility in VISIBILITY.items() if visibility == "shared")

Text = tuple[str, str, tuple[str, ...]]


class Step(NamedTuple):
    """What a request comes to: the records it touches as they stand before, and its outcome.

    `waiting` and `proposed`: the deferred candidates and the open proposals that go with them.
    """

    outcome: FactOutcome
    rows: list[FactRow]
    text: Text | None = None
    visibility: str | None = None
    waiting: tuple[WaitingText, ...] = ()
    proposed: tuple[ProposalRow, ...] = ()


class Done(NamedTuple):
    """What a step did: the event that tells of it, the record after it, digests of what it touched."""

    seq: int
    after: FactRow | None
    digests: list[bytes]


def mutate(context: Context, request: LongTermMutateRequest) -> Apply:
    """One change in one transaction. A dry run judges the same and writes nothing."""
    receipts.ready(context)

    def apply(tx: WriteTransaction) -> LongTermMutateReport:
        seen = eyes(context, request.view)
        if request.action == "forget_by_query":
            return _forget(context, tx, request, seen)
        assert request.ref is not None
        space, row = existing(context, tx, request.ref, seen)
        _expect(request, row)
        step = _judge(context, tx, space, request, row, seen)
        if request.dry_run or step.outcome == "unchanged":
            return _report(context, tx, space, request, step, seen)
        return _report(context, tx, space, request, step, seen, _carry_out(context, tx, space, request, step))

    return apply


def foresee(context: Context, tx: Reading, request: LongTermMutateRequest) -> FactOutcome:
    """What a change of one record would come to now; nothing is changed.

    Raises:
        NotFound, Conflict, Forbidden: as the change itself.
    """
    assert request.ref is not None
    seen = eyes(context, request.view)
    space, row = existing(context, tx, request.ref, seen)
    return _judge(context, tx, space, request, row, seen).outcome


def _expect(request: LongTermMutateRequest, row: FactRow) -> None:
    if request.expected_revision not in (None, row.revision):
        raise Conflict(
            reason=f"{fact_ref(row)} is at revision {row.revision}, not {request.expected_revision}",
            hint=f"read it again (`beetle long-term show --ref {fact_ref(row)}`), then change that revision",
            revision=row.revision,
        )


def _judge(context: Context, tx: Reading, space: int, request: LongTermMutateRequest, row: FactRow, seen: Eyes) -> Step:
    """What would come of it.

    Raises:
        Conflict: the record is in a state that does not take this action.
        Forbidden: what the record says is the word of a stronger authority.
    """
    action, state = request.action, row.state
    if action == "delete":
        return Step("unchanged" if state == "deleted" else "deleted", [row])
    if state == "deleted" or (state == "superseded" and action != "change_scope"):
        raise _left_behind(tx, space, row, seen)
    if action == "mark_stale":
        return Step("unchanged" if state == "stale" else "stale", [row])
    visibility = row.visibility if request.privacy is None else _visibility(request, row)
    if action == "change_scope":
        return Step("unchanged" if visibility == row.visibility else "scope_changed", [row], visibility=visibility)
    _check_authority(context, row)
    key = long_term.shown_body(tx, row)
    assert key is not None, "a record that is not deleted says something"
    before = long_term.body_of(tx, key)
    text = _text(request, before)
    same = text == (before.topic, before.content, before.keywords)
    if action == "supersede":
        unchanged = same and visibility == row.visibility and state == "current"
        return Step("unchanged" if unchanged else "superseded", [row], text, visibility)
    if same:
        return Step("restored" if state == "stale" else "unchanged", [row])
    return Step("corrected", [row], text)


def _left_behind(tx: Reading, space: int, row: FactRow, seen: Eyes) -> Conflict:
    by = long_term.record_id_of(tx, row.superseded_by)
    newer = None if by is None else long_term.find_fact(tx, space, by)
    hint = f"change {fact_ref(newer)} instead" if newer is not None and seen.see(newer) else "it is changed no more"
    return Conflict(reason=f"{fact_ref(row)} is {row.state}", hint=hint, state=row.state)


def _visibility(request: LongTermMutateRequest, row: FactRow) -> str:
    assert request.privacy is not None
    if any(row.target == target and request.privacy not in takes for target, takes in FITTING.items()):
        raise InvalidRequest(
            reason=f"a {row.target} cannot be {request.privacy}",
            hint="delete it, and have it remembered as long_term",
            path="$.args.privacy",
        )
    return VISIBILITY[request.privacy]


def _authority(context: Context) -> str:
    return "operator" if context.caller.is_operator else "user_asserted"


def _check_authority(context: Context, row: FactRow) -> None:
    mine = _authority(context)
    if STRENGTH[mine] < STRENGTH[row.authority]:
        raise Forbidden(
            reason=f"{fact_ref(row)} is the word of {row.authority}, which {mine} does not overwrite",
            hint="an operator may; deleting it, marking it stale and changing its scope are open to you",
            authority=row.authority,
        )


def _text(request: LongTermMutateRequest, before: BodyRow) -> Text:
    """What the request leaves out stays."""
    return (
        before.topic if request.topic is None else request.topic,
        before.content if request.content is None else request.content,
        before.keywords if request.keywords is None else request.keywords,
    )


def _carry_out(context: Context, tx: WriteTransaction, space: int, request: LongTermMutateRequest, step: Step) -> Done:
    row = step.rows[0]
    digests = long_term.digests_of(tx, row.fact)
    if step.text is not None:
        check_room(context, tx)
    if step.outcome == "deleted":
        (after,) = facts.forget(context, tx, space, [row])
        seq = tx.logged[-1].seq
    elif step.outcome == "superseded":
        after = _supersede(context, tx, space, request, step)
        seq = tx.logged[-1].seq
    else:
        after = _restate(context, tx, space, request, step)
        seq = facts.log_change(context, tx, f"fact_{step.outcome}", after, was=row)
    if row.state == "current" and (after.state, after.topic_mac) != ("current", row.topic_mac):
        judge_again(context, tx, space, row)
    return Done(seq, after, [*digests, *long_term.digests_of(tx, after.fact)])


def check_room(context: Context, tx: WriteTransaction) -> None:
    """What erases may pass the store's ceiling, and with it the operation; new words may not.

    Raises:
        StoreBudgetExceeded: the store is at its ceiling.
    """
    ceiling = context.shared.store.settings.store_bytes
    if (tx.value("PRAGMA page_count") - tx.value("PRAGMA freelist_count")) * PAGE_SIZE >= ceiling:
        raise StoreBudgetExceeded(maximum=ceiling)


def _restate(context: Context, tx: WriteTransaction, space: int, request: LongTermMutateRequest, step: Step) -> FactRow:
    row, reason, chat = step.rows[0], request.reason, context.scope.chat_id
    if step.text is not None:
        change = Change("corrected", _authority(context), chat, None, reason)
        return facts.reword(context, tx, space, row, step.text, change)
    stands = row
    if step.outcome == "stale":
        stands = row._replace(state="stale")
    elif step.outcome == "restored":
        stands = row._replace(state="current", authority=_authority(context))
    elif step.visibility is not None:
        stands = row._replace(visibility=step.visibility)
    change = Change(step.outcome, stands.authority, chat, None, reason)
    return facts.restate(context, tx, space, stands, change)


def _supersede(
    context: Context, tx: WriteTransaction, space: int, request: LongTermMutateRequest, step: Step
) -> FactRow:
    assert step.text is not None and step.visibility is not None
    row, (topic, content, keywords) = step.rows[0], step.text
    draft = Draft(
        target=row.target,
        kind=row.kind,
        topic=topic,
        content=content,
        keywords=keywords,
        authority=_authority(context),
        visibility=step.visibility,
        confidence=None,
        evidence=(),
        source_chat_id=context.scope.chat_id,
        extractor=None,
    )
    return facts.replace(context, tx, space, row, draft, reason=request.reason).row


def judge_again(context: Context, tx: WriteTransaction, space: int, row: FactRow) -> None:
    """What waited behind a record that is current no more is judged anew."""
    topic = (row.target, row.kind, row.topic_mac)
    governance.judge_again(context, tx, space, reason="weaker_authority", topic=topic)


def _forget(context: Context, tx: WriteTransaction, request: LongTermMutateRequest, seen: Eyes) -> LongTermMutateReport:
    assert request.query is not None
    space = evidence.find_space(tx, context.space_id)
    rows = saying(tx, space, request.query, seen, ("current", "stale", "superseded"), ever=True)
    waiting = () if space is None else _waiting(tx, space, request.query, seen)
    proposed = () if space is None else _proposed(tx, space, request.query, seen)
    token = _token(context, request.query, rows, (*waiting, *proposed))
    outcome = "forgotten" if rows or waiting or proposed else "unchanged"
    step = Step(outcome, rows, waiting=waiting, proposed=proposed)
    if request.dry_run:
        return _report(context, tx, space, request, step, seen, token=token)
    if request.confirm is None:
        raise InvalidRequest(
            reason="forgetting by a query needs the confirm_token of its dry run",
            hint="run it with dry_run first, look at the refs, then repeat it with confirm",
            path="$.args.confirm",
        )
    if not hmac.compare_digest(request.confirm.encode(), token.encode()):
        raise Conflict(
            reason="what the query finds is not what its dry run found, or the token is of another request",
            hint="run it again with dry_run, look at the refs, and confirm with the new token",
        )
    if space is None or step.outcome == "unchanged":
        return _report(context, tx, space, request, step, seen)
    digests = [each for row in rows for each in long_term.digests_of(tx, row.fact)]
    evolve.drop(context, tx, proposed, "forgotten")
    facts.forget(context, tx, space, rows)
    for each in waiting:
        candidates.remove(tx, each.candidate)
    seq = tx.log(context.event("memory", "facts_forgotten", facts=len(rows), candidates=len(waiting)))
    for row in rows:
        if row.state == "current":
            judge_again(context, tx, space, row)
    return _report(context, tx, space, request, step, seen, Done(seq, None, digests))


def _waiting(tx: WriteTransaction, space: int, query: str, seen: Eyes) -> tuple[WaitingText, ...]:
    """The deferred candidates that hold every word of a query: what is to be forgotten must not come back from them."""
    words = [normalised(word) for word in all_words(query)]
    found: list[WaitingText] = []
    for each in long_term.waiting_texts(tx, space) if words else ():
        text = normalised(f"{each.topic}\n{each.content}\n{each.keywords}")
        if (seen.private or each.privacy in SHARED) and all(word in text for word in words):
            found.append(each)
    return tuple(found)


def _proposed(tx: WriteTransaction, space: int, query: str, seen: Eyes) -> tuple[ProposalRow, ...]:
    """The open proposals that hold every word of a query, for the same reason."""
    found = evolve.saying(tx, space, [normalised(word) for word in all_words(query)])
    return tuple(row for row in found if evolve.is_seen(tx, space, row, private=seen.private))


def _token(context: Context, query: str, rows: list[FactRow], beside: tuple[WaitingText | ProposalRow, ...]) -> str:
    """Stands for the caller, the query and all that it finds, each record at its revision."""
    found = sorted((row.record_id, row.revision) for row in rows)
    data = pack((context.space_id, context.caller.name, query, found, [each[:2] for each in beside]))
    return base64.urlsafe_b64encode(keyed(context.key, "forget", data)[:TOKEN_BYTES]).decode()


def _report(
    context: Context,
    tx: WriteTransaction,
    space: int | None,
    request: LongTermMutateRequest,
    step: Step,
    seen: Eyes,
    done: Done | None = None,
    token: str | None = None,
) -> LongTermMutateReport:
    rows = [] if step.outcome == "unchanged" else step.rows
    after = done.after if done is not None else None if request.ref is None else step.rows[0]
    touched = {row.fact: row for row in (*rows, *(() if after is None else (after,)))}
    most = context.shared.profile.budgets.derived_refs
    derived: list[DerivedMemoryRef] = []
    for row in touched.values():
        if space is not None and len(derived) <= most:
            derived.extend(derived_refs(tx, space, row, seen, most + 1 - len(derived)))
    receipt = None
    if done is not None:
        counts = {"facts": len(rows)} | ({"candidates": len(step.waiting)} if step.waiting else {})
        counts |= {"proposals": len(step.proposed)} if step.proposed else {}
        receipt = receipts.make(context, tx, f"long_term.{request.action}", done.seq, counts, done.digests)
    return LongTermMutateReport(
        action=request.action,
        dry_run=request.dry_run,
        changed=done is not None,
        outcome=step.outcome,
        affected=len(rows),
        waiting=len(step.waiting),
        proposals=len(step.proposed),
        refs=tuple(fact_ref(row) for row in rows[:REFS_SHOWN]),
        ref=None if after is None else fact_ref(after),
        revision=None if after is None else after.revision,
        derived_refs=tuple(derived[:most]),
        confirm_token=token,
        erasure="pending" if done is not None and step.outcome in ("deleted", "forgotten") else None,
        audit_event_id=None if done is None else done.seq,
        receipt=receipt,
        profile_budget_applied=len(derived) > most or len(rows) > REFS_SHOWN,
    )
