"""memory.forget: look, answer with a token, and erase what was shown."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from beetle.contracts.codec import pack, replace
from beetle.contracts.errors import Conflict, Forbidden
from beetle.contracts.forgetting import MemoryForgetReport, MemoryForgetRequest, RetainedRecords
from beetle.domain.digest import keyed
from beetle.runtime.areas import receipts
from beetle.runtime.areas.erasure import slices
from beetle.runtime.areas.erasure.kinds import by_name, select
from beetle.runtime.areas.erasure.slices import Tally
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.handlers import Handler, Staged
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Selection, sight_of
from beetle.store import chunk_imports, evidence_lifecycle
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
        return earlier if earlier.erasure is None else settle(invocation, earlier)
    with invocation.reading() as tx:
        seen, head = select(invocation, tx, request), read_head(tx)
    if request.dry_run:
        report = _report(invocation, request, seen, token=None if seen.hidden else _token(invocation, request, seen))
        return write.commit(lambda tx: report)
    begun: list[tuple[OpenErasure, Selection]] = []

    def begin(tx: WriteTransaction) -> MemoryForgetReport:
        begun.clear()
        found = seen if tx.head == head else select(invocation, tx, request)
        _check(invocation, request, found)
        if found.counts:
            if request.whole_space:
                chunk_imports.call_off(tx, found.space)
            begun.append((_begin(invocation, tx, found), found))
        report = _report(invocation, request, found)
        return replace(report, erasure="pending" if found.counts else None)

    report = write.commit(begin)
    if write.repeated or not begun:
        return report
    record, found = begun[0]
    tally = slices.run(invocation, record, _records(found))
    return settle(invocation, write.commit(lambda tx: _end(invocation, tx, request, record, found, tally)))


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


def _check(invocation: Invocation, request: MemoryForgetRequest, found: Selection) -> None:
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
    if not hmac.compare_digest(request.token.encode(), _token(invocation, request, found).encode()):
        raise Conflict(
            reason="what would be forgotten is not what its dry run has shown, or the token is of another request",
            hint="run it again with dry_run, look at the counts, and give the new token",
        )


def _token(invocation: Invocation, request: MemoryForgetRequest, found: Selection) -> str:
    """Stands for the caller, the request and all that it finds, by names that the caller's space alone gave."""
    asked = (request.conversation, request.subject, request.query, request.whole_space)
    data = pack((invocation.space_id, invocation.caller.name, asked, found.names))
    return base64.urlsafe_b64encode(keyed(invocation.key, "forget", data)[:TOKEN_BYTES]).decode()


def _records(found: Selection) -> int:
    """How much the slices count: turns and other records."""
    return sum(map(len, found.turns.values())) + sum(map(len, found.keys.values()))


def _begin(invocation: Invocation, tx: WriteTransaction, found: Selection) -> OpenErasure:
    parts = [Part(plane, key, key) for plane in by_name() for key in found.keys.get(plane, ())]
    for conversation, turns in found.turns.items():
        messages = sum(each != "" for turn in turns for each in turn.messages.split(","))
        step = evidence_lifecycle.add_lifecycle(
            tx, conversation, "forget", "", invocation.caller.name, tx.now, len(turns), messages
        )
        sequences = sorted(turn.sequence for turn in turns)
        parts += [Part(slices.TURNS, first, last, conversation, step) for first, last in slices.runs(sequences)]
        parts.append(Part(slices.SPEAKERS, conversation, conversation))
    kinds = None if found.sight.all else found.sight.kinds
    terms = slices.Terms(kinds, "operator" if invocation.caller.is_operator else "user_asserted")
    return slices.begin(invocation, tx, found.space, terms, parts)


def _end(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryForgetRequest,
    record: OpenErasure,
    found: Selection,
    tally: Tally,
) -> MemoryForgetReport:
    slices.close(invocation, tx, record)
    gone = {"turns": tally.impact.changed, "messages": tally.impact.changed_messages, **tally.counts}
    counts = {name: gone.get(name, 0) for name in found.counts}
    seq = tx.log(invocation.event("memory", "forgotten", found.matter, **counts))
    number = invocation.number_of(tx.logged[-1:])
    receipt = receipts.make(invocation, tx, "memory.forget", seq, counts, [*tally.impact.digests, *tally.digests])
    report = replace(_report(invocation, request, found), counts=counts)
    return replace(report, changed=True, erasure="pending", audit_event_id=number, receipt=receipt)


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
