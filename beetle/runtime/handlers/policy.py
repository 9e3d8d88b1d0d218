"""long_term.policy: pause, resume, suppress, list. A policy acts on what is asked to be remembered from now on."""

from __future__ import annotations

from beetle.contracts.codec import format_us
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.governance import LongTermPolicyReport, LongTermPolicyRequest, PolicyView
from beetle.runtime import governance, receipts
from beetle.runtime.facts import topic_mac
from beetle.runtime.handling import Apply, Context
from beetle.store import evidence, policies
from beetle.store.policies import PolicyRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction


def policy(context: Context, request: LongTermPolicyRequest) -> Apply:
    """Set or lift one policy. What a pause put off is judged again when it ends, in the same transaction."""
    governance.ready(context)
    receipts.ready(context)
    mac = None if request.topic is None else topic_mac(context.key, request.topic)
    if request.topic is not None and mac is None:
        # Without a digest it would act on every topic.
        raise InvalidRequest(reason="the topic is blank", path="$.args.topic")

    def apply(tx: WriteTransaction) -> LongTermPolicyReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        if request.action == "list":
            return LongTermPolicyReport(policies=_views(tx, space), changed=False)
        governance.drop_expired(context, tx, space)
        if request.action == "resume":
            changed = _lift(tx, space, request, mac)
        else:
            changed = _set(context, tx, space, request, mac)
        if not changed:
            return LongTermPolicyReport(policies=_views(tx, space), changed=False)
        narrowed = [name for name in ("kind", "topic", "chat_id") if getattr(request, name) is not None]
        event = f"policy_{request.action}d" if request.action == "resume" else f"policy_{request.action}"
        seq = tx.log(context.event("memory", event, kind=request.kind, chat_id=request.chat_id, by=narrowed))
        rejudged = 0
        if request.action == "resume":
            rejudged = governance.judge_again(context, tx, space, reason="policy_paused")
        digests = [] if mac is None else [mac]
        receipt = receipts.make(context, tx, f"long_term.policy.{request.action}", seq, {"policies": changed}, digests)
        return LongTermPolicyReport(policies=_views(tx, space), changed=True, rejudged=rejudged, receipt=receipt)

    return apply


def _set(context: Context, tx: WriteTransaction, space: int, request: LongTermPolicyRequest, mac: bytes | None) -> int:
    """How many policies were made: none when this very one holds."""
    alike = policies.named_alike(tx, space, request.kind, mac, request.chat_id)
    if any(action == request.action for _, action in alike):
        return 0
    row = PolicyRow(
        policy=0,
        action=request.action,
        kind=request.kind,
        topic_mac=mac,
        chat_id=request.chat_id,
        principal=context.caller.name,
        at=tx.now,
        topic=request.topic,
        reason=request.reason,
    )
    policies.add_policy(tx, space, row)
    return 1


def _lift(tx: WriteTransaction, space: int, request: LongTermPolicyRequest, mac: bytes | None) -> int:
    """How many policies over exactly this were lifted."""
    alike = policies.named_alike(tx, space, request.kind, mac, request.chat_id)
    for key, _ in alike:
        policies.remove_policy(tx, key)
    return len(alike)


def _views(tx: Reading, space: int) -> tuple[PolicyView, ...]:
    return tuple(
        PolicyView(
            policy_id=row.policy,
            action="pause" if row.action == "pause" else "suppress",
            kind=row.kind,
            topic=row.topic,
            reason=row.reason,
            chat_id=row.chat_id,
            at=format_us(row.at),
            by=row.principal,
        )
        for row in policies.policies(tx, space)
    )
