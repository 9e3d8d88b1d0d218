"""long_term.mutate: correct, supersede, delete, forget by a query, mark stale, change who may see."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping

from beetle.contracts.codec import pack
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import Conflict, InvalidRequest, StoreBudgetExceeded, WeakerAuthority
from beetle.contracts.long_term import FactOutcome, LongTermMutateReport, LongTermMutateRequest
from beetle.domain.digest import keyed
from beetle.domain.governance import FITTING, SEALED, STRENGTH, VISIBILITY
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.areas.evolve import proposals as evolve
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.facts.facts import Change, Draft
from beetle.runtime.areas.facts.long_term import LIVING, Eyes, derived_refs, existing, eyes, saying
from beetle.runtime.areas.governance import judging, queue
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.long_term import fact_ref
from beetle.runtime.planes.query_words import QueryWords
from beetle.store import candidates, evidence, long_term
from beetle.store.candidates import Waiting
from beetle.store.damaged_rows import DamagedRow
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.long_term import FactRow
from beetle.store.proposals import ProposalRow

TOKEN_BYTES = 24
REFS_SHOWN = 10_000

SHARED = frozenset(privacy for privacy, visibility in VISIBILITY.items() if visibility == "shared")

PROPOSED_AS = {
    "correct": "fact_correct", "supersede": "fact_correct", "delete": "fact_forget", "mark_stale": "fact_stale",
}  # fmt: skip
"""The kind of proposal that asks for an action."""

Text = tuple[str, str, tuple[str, ...]]


class PlannedMutation(NamedTuple):
    """What a request comes to: the records it touches as they stand before, and its outcome.

    `waiting` and `proposed`: the deferred candidates and the open proposals that go with them.
    """

    outcome: FactOutcome
    rows: list[FactRow]
    text: Text | None = None
    visibility: str | None = None
    waiting: tuple[Waiting, ...] = ()
    proposed: tuple[ProposalRow, ...] = ()


class AppliedMutation(NamedTuple):
    """What a step did: the event that tells of it, its number for the caller, the record after it, digests of what it
    touched.
    """

    seq: int
    number: int | None
    after: FactRow | None
    digests: list[bytes]


def mutate(invocation: Invocation, request: LongTermMutateRequest) -> Apply:
    """One change in one transaction. A dry run judges the same and writes nothing."""
    secrets.refuse(secrets.fields(request, "$.args", "topic", "content", "keywords", "reason"))
    receipts.ready(invocation)
    judging.ready(invocation)

    def apply(tx: WriteTransaction) -> LongTermMutateReport:
        seen = eyes(invocation, request.view)
        if request.action == "forget_by_query":
            return _forget(invocation, tx, request, seen)
        assert request.ref is not None
        space, row = existing(invocation, tx, request.ref, seen)
        if request.expected_revision not in (None, row.revision):
            raise Conflict(
                reason=f"{fact_ref(row)} is at revision {row.revision}, not {request.expected_revision}",
                hint=f"read it again (`beetle long-term show --ref {fact_ref(row)}`), then change that revision",
                revision=row.revision,
            )
        planned = _judge(invocation, tx, space, request, row, seen)
        if request.dry_run or planned.outcome == "unchanged":
            return _report(invocation, tx, space, request, planned, seen)
        return _report(
            invocation, tx, space, request, planned, seen, _carry_out(invocation, tx, space, request, planned)
        )

    return apply


def foresee(invocation: Invocation, tx: Reading, request: LongTermMutateRequest) -> FactOutcome:
    """What a change of one record would come to now; nothing is changed.

    Raises:
        NotFound, Conflict, Forbidden: as the change itself.
    """
    assert request.ref is not None
    seen = eyes(invocation, request.view)
    space, row = existing(invocation, tx, request.ref, seen)
    return _judge(invocation, tx, space, request, row, seen).outcome


def _judge(
    invocation: Invocation, tx: Reading, space: int, request: LongTermMutateRequest, row: FactRow, seen: Eyes
) -> PlannedMutation:
    """What would come of it.

    Raises:
        Conflict: the record is in a state that does not take this action.
        Forbidden: what the record says is the word of a stronger authority.
    """
    action, state = request.action, row.state
    if action == "delete" and state == "deleted":
        return PlannedMutation("unchanged", [row])
    if state == "deleted" or (state == "superseded" and action not in ("change_scope", "delete")):
        raise _left_behind(tx, space, row, seen)
    _check_authority(invocation, action, row)
    if action == "delete":
        return PlannedMutation("deleted", [row])
    if action == "mark_stale":
        return PlannedMutation("unchanged" if state == "stale" else "stale", [row])
    visibility = row.visibility if request.privacy is None else _visibility(request, row)
    if action == "change_scope":
        return PlannedMutation(
            "unchanged" if visibility == row.visibility else "scope_changed", [row], visibility=visibility
        )
    key = long_term.shown_body(tx, row)
    if key is None:
        raise DamagedRow("fact", fact_ref(row))
    before = long_term.body_of(tx, row.fact, key)
    # What the request leaves out stays.
    text = (
        before.topic if request.topic is None else request.topic,
        before.content if request.content is None else request.content,
        before.keywords if request.keywords is None else request.keywords,
    )
    same = text == (before.topic, before.content, before.keywords)
    if action == "supersede":
        unchanged = same and visibility == row.visibility and state == "current"
        return PlannedMutation("unchanged" if unchanged else "superseded", [row], text, visibility)
    if same:
        return PlannedMutation("restored" if state == "stale" else "unchanged", [row])
    return PlannedMutation("corrected", [row], text)


def _left_behind(tx: Reading, space: int, row: FactRow, seen: Eyes) -> Conflict:
    by = long_term.record_id_of(tx, row.superseded_by)
    newer = None if by is None else long_term.find_fact(tx, space, by)
    hint = f"change {fact_ref(newer)} instead" if newer is not None and seen.see(tx, newer) else "it is changed no more"
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


def authority_of(invocation: Invocation) -> str:
    """By what authority a caller changes what is believed."""
    return "operator" if invocation.caller.is_operator else "user_asserted"


def _check_authority(invocation: Invocation, action: str, row: FactRow) -> None:
    mine = authority_of(invocation)
    if STRENGTH[mine] < STRENGTH[row.authority]:
        raise WeakerAuthority(
            f"{fact_ref(row)} is the word of {row.authority}, which {mine} does not {action}",
            hint=_instead(action),
            authority=row.authority,
        )


def _instead(action: str) -> str:
    """What a caller of weaker authority can do."""
    if (kind := PROPOSED_AS.get(action)) is None:
        return "ask an operator, who may"
    return f"an operator may; propose it to one (`beetle evolve propose`, a proposal of kind {kind})"


def _check_authority_over_all(invocation: Invocation, rows: Iterable[FactRow], waiting: Iterable[Waiting]) -> None:
    """All that a query finds is forgotten, or nothing.

    Raises:
        Forbidden: some of it is the word of a stronger authority.
    """
    mine = STRENGTH[authority_of(invocation)]
    stronger = [row for row in rows if STRENGTH[row.authority] > mine]
    kept = [each for each in waiting if STRENGTH[each.authority] > mine]
    if stronger or kept:
        raise WeakerAuthority(
            f"the query finds {len(stronger)} facts and {len(kept)} waiting candidates of stronger authority",
            hint=f"choose words that only yours have, or delete yours by their refs; {_instead('delete')}",
            facts=len(stronger),
            waiting=len(kept),
        )


def _carry_out(
    invocation: Invocation, tx: WriteTransaction, space: int, request: LongTermMutateRequest, planned: PlannedMutation
) -> AppliedMutation:
    row = planned.rows[0]
    digests = long_term.digests_of(tx, row.fact)
    if planned.text is not None:
        check_room(invocation, tx)
    if planned.outcome == "deleted":
        (after,) = facts.forget(invocation, tx, space, [row], authority_of(invocation))
    elif planned.outcome == "superseded":
        after = _supersede(invocation, tx, space, request, planned)
    else:
        after = _restate(invocation, tx, space, request, planned)
        facts.log_change(invocation, tx, f"fact_{planned.outcome}", after, was=row)
    told = tx.logged[-1]
    if row.state == "current" and (after.state, after.topic_mac) != ("current", row.topic_mac):
        _judge_again(invocation, tx, space, [row])
    number = invocation.number_of((told,))
    return AppliedMutation(told.seq, number, after, [*digests, *long_term.digests_of(tx, after.fact)])


def check_room(invocation: Invocation, tx: WriteTransaction) -> None:
    """What erases may pass the store's ceiling, and with it the operation; new words may not.

    Raises:
        StoreBudgetExceeded: the store is at its ceiling.
    """
    ceiling = invocation.shared.store.settings.store_bytes
    if (tx.value("PRAGMA page_count") - tx.value("PRAGMA freelist_count")) * PAGE_SIZE >= ceiling:
        raise StoreBudgetExceeded(maximum=ceiling)


def _restate(
    invocation: Invocation, tx: WriteTransaction, space: int, request: LongTermMutateRequest, planned: PlannedMutation
) -> FactRow:
    row, reason, chat = planned.rows[0], request.reason, invocation.scope.chat_id
    if planned.text is not None:
        change = Change("corrected", authority_of(invocation), chat, None, reason)
        return facts.reword(invocation, tx, space, row, planned.text, change)
    stands = row
    if planned.outcome == "stale":
        stands = row._replace(state="stale")
    elif planned.outcome == "restored":
        stands = row._replace(state="current", authority=authority_of(invocation))
    elif planned.visibility is not None:
        stands = row._replace(visibility=planned.visibility)
    change = Change(planned.outcome, stands.authority, chat, None, reason)
    return facts.restate(invocation, tx, space, stands, change)


def _supersede(
    invocation: Invocation, tx: WriteTransaction, space: int, request: LongTermMutateRequest, planned: PlannedMutation
) -> FactRow:
    assert planned.text is not None and planned.visibility is not None
    row, (topic, content, keywords) = planned.rows[0], planned.text
    draft = Draft(
        target=row.target,
        kind=row.kind,
        topic=topic,
        content=content,
        keywords=keywords,
        authority=authority_of(invocation),
        visibility=planned.visibility,
        source_chat_id=invocation.scope.chat_id,
    )
    return facts.replace(invocation, tx, space, row, draft, reason=request.reason).row


def _judge_again(invocation: Invocation, tx: WriteTransaction, space: int, rows: Iterable[FactRow]) -> None:
    """What waited behind records that are current no more is judged anew."""
    topics = [(row.target, row.kind, row.topic_mac) for row in rows if row.state == "current"]
    judging.judge_again(invocation, tx, space, reason="weaker_authority", topics=topics)


def _forget(
    invocation: Invocation, tx: WriteTransaction, request: LongTermMutateRequest, seen: Eyes
) -> LongTermMutateReport:
    assert request.query is not None
    QueryWords(tx, request.query).check("$.args.query")
    space = evidence.find_space(tx, invocation.space_id)
    rows = saying(tx, space, request.query, seen, LIVING, ever=True)
    waiting = () if space is None else _waiting(invocation, tx, space, request.query, seen)
    proposed = () if space is None else _proposed(tx, space, request.query, seen)
    _check_authority_over_all(invocation, rows, waiting)
    token = _token(invocation, request.query, rows, (*waiting, *proposed))
    outcome = "forgotten" if rows or waiting or proposed else "unchanged"
    planned = PlannedMutation(outcome, rows, waiting=waiting, proposed=proposed)
    if request.dry_run:
        return _report(invocation, tx, space, request, planned, seen, token=token)
    if request.confirm is None:
        raise InvalidRequest(
            reason="forgetting by a query needs the confirm_token of its dry run",
            hint="run it with dry_run first, look at the refs, then repeat it with confirm",
            path="$.args.confirm",
        )
    if not hmac.compare_digest(request.confirm.encode(), token.encode()):
        raise Conflict(
            reason="the query's results differ from its dry run, or the token belongs to another request",
            hint="run it again with dry_run, look at the refs, and confirm with the new token",
        )
    if space is None or planned.outcome == "unchanged":
        return _report(invocation, tx, space, request, planned, seen)
    digests = [each for row in rows for each in long_term.digests_of(tx, row.fact)]
    evolve.drop(invocation, tx, proposed, "forgotten")
    facts.forget(invocation, tx, space, rows, authority_of(invocation))
    for each in waiting:
        if (row := candidates.by_key(tx, space, each.candidate)) is not None:
            queue.drop(invocation, tx, space, row, "forgotten")
    shared = all(row.visibility == "shared" for row in rows) and all(each.privacy in SHARED for each in waiting)
    matter: Matter = "shared" if shared else "private"
    seq = tx.log(invocation.event("memory", "facts_forgotten", matter, facts=len(rows), candidates=len(waiting)))
    number = invocation.number_of(tx.logged[-1:])
    _judge_again(invocation, tx, space, rows)
    return _report(invocation, tx, space, request, planned, seen, AppliedMutation(seq, number, None, digests))


def _hidden(invocation: Invocation, tx: Reading, space: int | None, seen: Eyes) -> int:
    """How many facts an operator may not see, whatever they say; nobody else is told of any."""
    if not invocation.caller.is_operator:
        return 0
    every = long_term.count_facts(tx, space, LIVING, None, private=True, writer=None)
    return every - long_term.count_facts(tx, space, LIVING, None, private=seen.private, writer=seen.writer)


def _waiting(invocation: Invocation, tx: WriteTransaction, space: int, query: str, seen: Eyes) -> tuple[Waiting, ...]:
    """The deferred candidates that hold every word of a query: what is to be forgotten must not come back from them."""
    words = QueryWords(tx, query)
    found: list[Waiting] = []
    for row in candidates.every(tx, space) if words else ():
        known = row.level == "shared" or (row.level == "private" and (seen.private or row.principal == seen.writer))
        if row.target in SEALED or not (known or (row.level == "sealed" and invocation.reads_private)):
            continue
        body = queue.body_of(invocation, tx, space, row)
        if body is not None and words.are_in(body.topic, body.content, *body.keywords):
            found.append(row)
    return tuple(found)


def _proposed(tx: WriteTransaction, space: int, query: str, seen: Eyes) -> tuple[ProposalRow, ...]:
    """The open proposals that hold every word of a query, for the same reason."""
    found = evolve.saying(tx, space, QueryWords(tx, query))
    return tuple(row for row in found if evolve.is_seen(tx, space, row, private=seen.private))


def _token(invocation: Invocation, query: str, rows: list[FactRow], beside: tuple[Waiting | ProposalRow, ...]) -> str:
    """Stands for the caller, the query and all that it finds, each record at its revision."""
    found = sorted((row.record_id, row.revision) for row in rows)
    # By names that the space alone gave: the keys of rows count those of all owners.
    named = [
        evolve.given_name(invocation, each.proposal_id) if isinstance(each, ProposalRow) else each.waiting_id
        for each in beside
    ]
    data = pack((invocation.space_id, invocation.caller.name, query, found, named))
    return base64.urlsafe_b64encode(keyed(invocation.key, "forget", data)[:TOKEN_BYTES]).decode()


def _report(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int | None,
    request: LongTermMutateRequest,
    planned: PlannedMutation,
    seen: Eyes,
    done: AppliedMutation | None = None,
    token: str | None = None,
) -> LongTermMutateReport:
    rows = [] if planned.outcome == "unchanged" else planned.rows
    after = done.after if done is not None else None if request.ref is None else planned.rows[0]
    touched = {row.fact: row for row in (*rows, *(() if after is None else (after,)))}
    most = invocation.shared.profile.budgets.derived_refs
    derived: list[DerivedMemoryRef] = []
    for row in touched.values():
        if space is not None and len(derived) <= most:
            derived.extend(derived_refs(tx, space, row, seen, most + 1 - len(derived)))
    receipt = None
    if done is not None:
        counts = {"facts": len(rows)} | ({"candidates": len(planned.waiting)} if planned.waiting else {})
        counts |= {"proposals": len(planned.proposed)} if planned.proposed else {}
        receipt = receipts.make(invocation, tx, f"long_term.{request.action}", done.seq, counts, done.digests)
    return LongTermMutateReport(
        action=request.action,
        dry_run=request.dry_run,
        changed=done is not None,
        outcome=planned.outcome,
        affected=len(rows),
        waiting=len(planned.waiting),
        proposals=len(planned.proposed),
        hidden=_hidden(invocation, tx, space, seen) if request.action == "forget_by_query" else 0,
        refs=tuple(fact_ref(row) for row in rows[:REFS_SHOWN]),
        ref=None if after is None else fact_ref(after),
        revision=None if after is None else after.revision,
        derived_refs=tuple(derived[:most]),
        confirm_token=token,
        erasure="pending" if done is not None and planned.outcome in ("deleted", "forgotten") else None,
        audit_event_id=None if done is None else done.number,
        receipt=receipt,
        profile_budget_applied=len(derived) > most or len(rows) > REFS_SHOWN,
    )


HANDLERS: Mapping[str, Handler] = {
    "long_term.mutate": Write(mutate, settle),
}
