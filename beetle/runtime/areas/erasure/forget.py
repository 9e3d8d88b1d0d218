"""memory.forget: look, answer with a token, and erase what was shown."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Any

from beetle.contracts.codec import pack, replace
from beetle.contracts.errors import Conflict, Forbidden
from beetle.contracts.forgetting import MemoryForgetReport, MemoryForgetRequest, RetainedRecords
from beetle.domain.digest import keyed
from beetle.runtime.areas import receipts
from beetle.runtime.areas.erasure import plans, slices
from beetle.runtime.areas.erasure.kinds import select
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.areas.erasure.terms import Terms, terms_of
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.handlers import Handler, Staged
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunks import CHUNK
from beetle.runtime.planes.forgetting import Selection, sight_of
from beetle.runtime.planes.query_words import QueryWords
from beetle.store import chunk_imports, evidence, evidence_lifecycle
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure, Part
from beetle.store.event_log import read_head

STEPS = ("look", "erase", "cut_log")
REFS_OF_KEPT = 20
TOKEN_BYTES = 24


def forget(invocation: Invocation, request: MemoryForgetRequest, write: KeyedWrite) -> MemoryForgetReport:
    """A dry run looks and changes nothing; with its token the very same is erased, in slices."""
    _check_space(invocation, request)
    receipts.ready(invocation)
    invocation.progress.plan(("look",) if request.dry_run else STEPS)
    invocation.progress.step("look")
    if (earlier := write.earlier()) is not None:
        begun = None if earlier.erasure is None else slices.resume(invocation, write, earlier)
        if begun is not None:
            return _erase(invocation, write, begun, earlier)
        return earlier if earlier.erasure is None else settle(invocation, earlier)
    with invocation.reading() as tx:
        if request.query is not None:
            QueryWords(tx, request.query).check("$.args.query")
        coming = _coming(invocation, tx, request)
        seen, head = select(invocation, tx, request), read_head(tx)
    if request.dry_run:
        token = None if seen.hidden else _token(invocation, request, seen, coming)
        report = _report(invocation, request, seen, token=token)
        return write.commit(lambda tx: report)
    records: list[OpenErasure] = []

    def begin(tx: WriteTransaction) -> MemoryForgetReport:
        records.clear()
        coming = _coming(invocation, tx, request)
        # No event tells of a slice of an import.
        is_seen = tx.head == head and not chunk_imports.are_left(tx)
        found = seen if is_seen else select(invocation, tx, request)
        _check(invocation, request, found, coming)
        if request.whole_space:
            chunk_imports.call_off(tx, found.space)
        if found.counts:
            records.append(_begin(invocation, tx, found, write))
        report = _report(invocation, request, found)
        return replace(report, erasure="pending" if found.counts else None)

    report = write.commit(begin)
    return report if write.repeated or not records else _erase(invocation, write, records[0], report)


def _erase(
    invocation: Invocation, write: KeyedWrite, record: OpenErasure, first: MemoryForgetReport
) -> MemoryForgetReport:
    """Do what was begun, whose report says what it was to be."""

    def end(tx: WriteTransaction, total: Tally) -> MemoryForgetReport:
        counts = _counted(first, total)
        seq = tx.log(invocation.event("memory", "forgotten", terms_of(record).matter, **counts))
        return ended(invocation, tx, first, total, seq)

    return settle(invocation, slices.complete(invocation, write, record, end))


def _check_space(invocation: Invocation, request: MemoryForgetRequest) -> None:
    """A whole space holds what is private and sealed, whatever it holds now.

    Raises:
        Forbidden: the caller may not see all of a space. Nothing was looked at.
    """
    if request.whole_space and not invocation.caller.is_operator and not sight_of(invocation).all:
        raise Forbidden(
            reason="forgetting a whole space takes a caller that may see all of it",
            hint="forget conversations, subjects or words; or ask the owner, or an operator",
            capability="private.read",
        )


def _coming(invocation: Invocation, tx: Reading, request: MemoryForgetRequest) -> tuple[str, ...]:
    """The imports of chunk files into the space that have some left to bring.

    Raises:
        Conflict: what they bring may be what is to be forgotten. The whole space calls them off; a subject is that of
            no chunk.
    """
    space = evidence.find_space(tx, invocation.space_id)
    coming = () if space is None else chunk_imports.coming(tx, space)
    if coming and (request.query is not None or request.conversation is not None):
        raise Conflict(
            reason="an import of chunk files runs in this space: what it has left to bring would not be forgotten",
            hint="ask again when it has ended; one that a restart has left goes on when the store is opened;"
            " forgetting the whole space calls it off",
        )
    return coming


def _check(invocation: Invocation, request: MemoryForgetRequest, found: Selection, coming: tuple[str, ...]) -> None:
    """Whether what is there now is what the dry run has shown.

    Raises:
        Forbidden: an operator would erase what it may not see.
        Conflict: it is not.
    """
    if found.hidden:
        raise Forbidden(
            reason=f"{found.hidden} records that this caller may not see would go too; nothing was changed",
            hint="the owner may forget them: a caller with the view raw_owner and the capability private.read",
            hidden=found.hidden,
        )
    assert request.token is not None, "a request without dry_run needs it"
    if not hmac.compare_digest(request.token.encode(), _token(invocation, request, found, coming).encode()):
        raise Conflict(
            reason="what would be forgotten is not what its dry run has shown, or the token is of another request",
            hint="run it again with dry_run, look at the counts, and give the new token",
        )


def _token(invocation: Invocation, request: MemoryForgetRequest, found: Selection, coming: tuple[str, ...]) -> str:
    """Stands for the caller, the request and all that it finds, by names that the caller's space alone gave. While
    imports bring chunks, these stand for the chunks."""
    asked = (request.conversation, request.subject, request.query, request.whole_space)
    bound: tuple[Any, ...] = (invocation.space_id, invocation.caller.name, asked)
    if coming:
        bound += ([each for each in found.names if each[0] != CHUNK.name], coming)
    else:
        bound += (found.names,)
    return base64.urlsafe_b64encode(keyed(invocation.key, "forget", pack(bound))[:TOKEN_BYTES]).decode()


def _begin(invocation: Invocation, tx: WriteTransaction, found: Selection, write: KeyedWrite) -> OpenErasure:
    parts = plans.records_of(found)
    for conversation, turns in found.turns.items():
        messages = sum(each != "" for turn in turns for each in turn.messages.split(","))
        step = evidence_lifecycle.add_lifecycle(
            tx, conversation, "forget", "", invocation.caller.name, tx.now, len(turns), messages
        )
        sequences = sorted(turn.sequence for turn in turns)
        parts += [Part(plans.TURNS, first, last, conversation, step) for first, last in plans.runs(sequences)]
        parts.append(Part(plans.SPEAKERS, conversation, conversation))
    kinds = None if found.sight.all else found.sight.kinds
    terms = Terms(kinds, "operator" if invocation.caller.is_operator else "user_asserted", matter=found.matter)
    return plans.begin(invocation, tx, found.space, terms, [*parts, *plans.resting(parts)], write=write)


def _counted(first: MemoryForgetReport, total: Tally) -> dict[str, int]:
    """What went, by what it is called: of all that was to go, and of what was found behind it."""
    gone = {"turns": total.impact.changed, "messages": total.impact.changed_messages, **total.counts}
    return {name: number for name, number in gone.items() if number or name in first.counts} | {
        name: 0 for name in first.counts if name not in gone
    }


def ended(
    invocation: Invocation, tx: WriteTransaction, first: MemoryForgetReport, total: Tally, seq: int | None
) -> MemoryForgetReport:
    """The report of all that was done.

    Args:
        first: what was to be done.
        seq: number of the event that tells; None where nothing was done.
    """
    counts = _counted(first, total)
    report = replace(first, counts=counts, stays=_staying(first, total), hidden=total.hidden)
    if seq is None:
        return replace(report, erasure=None)
    number = invocation.number_of(tx.logged[-1:])
    receipt = receipts.make(invocation, tx, "memory.forget", seq, counts, [*total.impact.digests, *total.digests])
    return replace(report, changed=True, erasure="pending", audit_event_id=number, receipt=receipt)


def _staying(first: MemoryForgetReport, total: Tally) -> tuple[RetainedRecords, ...]:
    """What was to stay, and what stays besides: it was changed meanwhile, or was found behind all."""
    found = {(each.plane, each.reason): each for each in first.stays}
    told = {ref for each in first.stays for ref in each.refs}
    for plane, reasons in total.stays.items():
        for reason, refs in reasons.items():
            before = found.get((plane, reason), RetainedRecords(plane=plane, reason=reason, count=0))
            # Of a list that ended at its bound nobody can say any more what is new.
            ended = before.count > len(before.refs) and before.count > REFS_OF_KEPT
            new = [] if ended else [each for each in refs if each not in told]
            if new:
                shown = (*before.refs, *filter(None, new))[:REFS_OF_KEPT]
                found[plane, reason] = replace(before, count=before.count + len(new), refs=shown)
    return tuple(found[each] for each in sorted(found))


def _report(
    invocation: Invocation, request: MemoryForgetRequest, found: Selection, token: str | None = None
) -> MemoryForgetReport:
    most = invocation.shared.profile.budgets.derived_refs
    stays = tuple(
        RetainedRecords(
            plane=plane, reason=reason, count=len(refs), refs=tuple(each for each in refs if each)[:REFS_OF_KEPT]
        )
        for (plane, reason), refs in sorted(found.stays.items())
    )
    return MemoryForgetReport(
        dry_run=request.dry_run,
        changed=False,
        counts=dict(found.counts),
        stays=stays,
        refs=tuple(found.refs[:most]),
        hidden=found.hidden,
        token=token,
        profile_budget_applied=len(found.refs) > most or any(len(each) > REFS_OF_KEPT for each in found.stays.values()),
    )


HANDLERS: Mapping[str, Handler] = {
    "memory.forget": Staged(forget),
}
