"""long_term.policy: pause, resume, suppress, list. A policy acts on what is asked to be remembered from now on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from beetle.contracts.codec import replace
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.governance import LongTermPolicyReport, LongTermPolicyRequest, PolicyView
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.governance import judging, queue
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.runtime.planes.long_term import topic_mac
from beetle.store import evidence, policies
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.policies import PolicyRow


def policy(invocation: Invocation, request: LongTermPolicyRequest) -> Apply:
    """Set or lift one policy. What a pause put off is judged again when it ends, in the same transaction."""
    if request.action != "resume":
        secrets.refuse(secrets.fields(request, "$.args", "topic", "reason"))
    judging.ready(invocation)
    receipts.ready(invocation)
    mac = None if request.topic is None else topic_mac(invocation.key, request.topic)
    if request.topic is not None and mac is None:
        # Without a digest it would act on every topic.
        raise InvalidRequest(reason="the topic is blank", path="$.args.topic")

    def apply(tx: WriteTransaction) -> LongTermPolicyReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        if request.action == "list":
            return _report(invocation, tx, space, changed=False)
        queue.drop_expired(invocation, tx, space)
        if request.action == "resume":
            alike = policies.named_alike(tx, space, request.kind, mac, request.chat_id)
            for key, _ in alike:
                policies.remove_policy(tx, key)
            changed = len(alike)
        else:
            changed = _set(invocation, tx, space, request, mac)
        if not changed:
            return _report(invocation, tx, space, changed=False)
        narrowed = [name for name in ("kind", "topic", "chat_id") if getattr(request, name) is not None]
        event = f"policy_{request.action}d" if request.action == "resume" else f"policy_{request.action}"
        seq = tx.log(invocation.event("memory", event, kind=request.kind, chat_id=request.chat_id, by=narrowed))
        rejudged = 0
        if request.action == "resume":
            rejudged = judging.judge_again(invocation, tx, space, reason="policy_paused")
        digests = [] if mac is None else [mac]
        receipt = receipts.make(
            invocation, tx, f"long_term.policy.{request.action}", seq, {"policies": changed}, digests
        )
        return _report(invocation, tx, space, changed=True, rejudged=rejudged, receipt=receipt)

    return apply


def _set(
    invocation: Invocation, tx: WriteTransaction, space: int, request: LongTermPolicyRequest, mac: bytes | None
) -> int:
    """How many policies were made: none when this very one holds."""
    alike = policies.named_alike(tx, space, request.kind, mac, request.chat_id)
    if any(action == request.action for _, action in alike):
        return 0
    row = PolicyRow(
        number=0,
        action=request.action,
        kind=request.kind,
        topic_mac=mac,
        chat_id=request.chat_id,
        principal=invocation.caller.name,
        at=tx.now,
        topic=request.topic,
        reason=request.reason,
    )
    policies.add_policy(tx, space, row)
    return 1


def _report(
    invocation: Invocation, tx: Reading, space: int, *, changed: bool, rejudged: int = 0, receipt: str | None = None
) -> LongTermPolicyReport:
    """The policies as they are now, and what else there is to tell."""
    room = Room(invocation)
    shown = room.fill(_views(tx, space))
    return LongTermPolicyReport(
        policies=shown, changed=changed, rejudged=rejudged, receipt=receipt, profile_budget_applied=room.full
    )


def _views(tx: Reading, space: int) -> Iterator[PolicyView]:
    return whole(policies.policies(tx, space), _view)


def _view(row: PolicyRow) -> PolicyView:
    return PolicyView(
        policy_id=row.number,
        action="pause" if row.action == "pause" else "suppress",
        kind=row.kind,
        topic=row.topic,
        reason=row.reason,
        chat_id=row.chat_id,
        at=shown_time(row.at, "policy", row.number),
        by=row.principal,
    )


def again(
    invocation: Invocation, request: LongTermPolicyRequest, tx: Reading, first: LongTermPolicyReport
) -> LongTermPolicyReport:
    """A first report with the policies as they are now."""
    del request
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return first
    room = Room(invocation)
    shown = room.fill(_views(tx, space))
    return replace(first, policies=shown, profile_budget_applied=room.full)


HANDLERS: Mapping[str, Handler] = {
    "long_term.policy": Write(policy, again=again),
}
