"""Idempotency: the first report of a key, kept in the transaction of its change and answered again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beetle.contracts import codec
from beetle.contracts.common import Report
from beetle.contracts.errors import Conflict
from beetle.contracts.operations import Operation
from beetle.memory.digest import request_digest
from beetle.runtime.call import Call, Outcome, stamp
from beetle.runtime.handling import Apply, Context
from beetle.runtime.stages import Stages
from beetle.runtime.views import without_secrets
from beetle.store import idempotency
from beetle.store.store import Store
from beetle.store.writer import WriteTransaction


class Repeats:
    """Runs writes so that a key which was used before changes nothing again; `most` keys are kept."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most

    def commit(
        self,
        call: Call,
        context: Context,
        request: Any,
        run: Apply,
        *,
        grows: bool,
        kept: Callable[[Report], Report] = lambda report: report,
        again: Callable[[WriteTransaction, Report], Report] = lambda _, first: first,
    ) -> Outcome:
        """Steps 3 and 5 of a write: the change, its event-log rows and its first report in one transaction.

        Args:
            kept: what of a report is kept for its idempotency key.
            again: the answer to a key that was used before, from the report that was kept.
        """
        key = call.idempotency_key
        digest = b"" if key is None else _digest(call, context, request)

        def job(tx: WriteTransaction) -> Outcome:
            if key is not None:
                first = idempotency.find(tx, context.caller.name, context.space_id, key)
                if first is not None:
                    return Outcome(again(tx, _first_report(first, digest, context.operation)), repeated=True)
            before = len(tx.logged)
            report = stamp(context, run(tx), tx, before)
            if key is not None:
                self._keep(tx, key, context, digest, kept(report))
            return Outcome(report)

        return self._store.write(job, deadline=context.deadline, grows=grows)

    def once(self, call: Call, context: Context, request: Any, handle: Callable[[], Report]) -> Outcome:
        """Run what opens its own transactions, but not twice for one idempotency key, where it changes something.

        A store that was closed can be asked for no key; what closed it says by itself that it had been closed before.
        """
        known = context.operation.effect == "admin" and not self._store.closed
        key = call.idempotency_key if known else None
        first = None if key is None else self._first(key, call, context, request)
        if first is not None:
            return Outcome(first, repeated=True)
        report = stamp(context, handle(), None)
        if key is not None:
            who = (context.caller.name, context.space_id, key)
            digest = _digest(call, context, request)

            def keep(tx: WriteTransaction) -> None:
                if idempotency.find(tx, *who) is None:
                    self._keep(tx, key, context, digest, report)

            self._store.write(keep, grows=False)
        return Outcome(report)

    def _first(self, key: str, call: Call, context: Context, request: Any) -> Report | None:
        with self._store.read(context.deadline) as tx:
            first = idempotency.find(tx, context.caller.name, context.space_id, key)
        return first and _first_report(first, _digest(call, context, request), context.operation)

    def stages(self, call: Call, context: Context, request: Any) -> Stages:
        """The transactions of a call that works between them, so that none of them waits for that."""
        key = call.idempotency_key
        grows = context.operation.grows

        def earlier() -> Report | None:
            return None if key is None else self._first(key, call, context, request)

        def commit(apply: Apply, begun: bool) -> Outcome:
            asked = context._replace(deadline=None) if begun else context
            return self.commit(call, asked, request, apply, grows=grows)

        def again(apply: Apply) -> Report:
            return self._store.write(lambda tx: restated(tx, apply), grows=grows)

        def restated(tx: WriteTransaction, apply: Apply) -> Report:
            before = len(tx.logged)
            report = stamp(context, apply(tx), tx, before)
            if key is not None:
                kept = codec.pack(without_secrets(report))
                idempotency.restate(tx, context.caller.name, context.space_id, key, kept)
            return report

        return Stages(earlier, commit, again)

    def _keep(self, tx: WriteTransaction, key: str, context: Context, digest: bytes, report: Report) -> None:
        first = idempotency.FirstReport(digest, codec.pack(without_secrets(report)))
        most = self._most
        idempotency.keep(tx, context.caller.name, context.space_id, key, first, tx.now, most)


def _digest(call: Call, context: Context, request: Any) -> bytes:
    if getattr(request, "passphrase", None) is not None:
        # A digest of it would let it be guessed without the work that sealing asks for.
        request = codec.replace(request, passphrase=None)
    scope = context.scope
    named = (scope.owner_id, scope.agent_id, scope.channel, scope.chat_id, scope.conversation_id)
    return request_digest(context.key, call.operation, named, request)


def _first_report(first: idempotency.FirstReport, digest: bytes, row: Operation) -> Report:
    if first.request != digest:
        raise Conflict(
            reason="this idempotency key was used for another request",
            hint="use a new key for a new request; the same key only repeats the same request",
        )
    return codec.unpack(first.report, row.report)
