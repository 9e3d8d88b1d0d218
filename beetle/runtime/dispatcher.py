"""One path for every operation and every caller: authorize, admit, handle, reveal, audit."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from beetle.contracts import codec
from beetle.contracts.common import Report, WireScope
from beetle.contracts.control import (
    BatchReport,
    BatchRequest,
    SubscribeReport,
    SubscribeRequest,
    UnsubscribeReport,
    UnsubscribeRequest,
)
from beetle.contracts.errors import (
    BeetleError,
    CapabilityHidden,
    DeadlineExceeded,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    PrivacyDenied,
    Unauthorized,
    UnknownOperation,
)
from beetle.contracts.fields import ViewName
from beetle.contracts.memory import MemoryProjectionReport
from beetle.contracts.operations import BY_NAME, Operation
from beetle.runtime import budgets
from beetle.runtime.call import Call, Outcome, check_envelope, stamp
from beetle.runtime.caller import Caller, resolve_scope
from beetle.runtime.capabilities import Catalog
from beetle.runtime.handlers import HANDLERS
from beetle.runtime.handling import Apply, Context, Facilities, Handler, PlainHandler, StagedHandler
from beetle.runtime.hub import TOPIC_CAPABILITIES, Hub, Subscription
from beetle.runtime.identity import Identity
from beetle.runtime.lifecycle import RESTORED, RuntimeLifecycle
from beetle.runtime.metrics import Metrics
from beetle.runtime.model_failure import open_model
from beetle.runtime.presence import Holder, Presence
from beetle.runtime.profile import Profile
from beetle.runtime.refusals import Refusals
from beetle.runtime.repeats import Repeats
from beetle.runtime.skill_mounts import AgentSkills
from beetle.runtime.surroundings import Surroundings
from beetle.runtime.views import reveal
from beetle.store.event_log import Logged
from beetle.store.progress import Progress
from beetle.store.store import Store
from beetle.store.writer import WriteTransaction

log = logging.getLogger("beetle.dispatcher")

REFUSED = (Unauthorized, Forbidden, CapabilityHidden, PrivacyDenied)
"""Errors that leave a row in the event log."""


class Dispatcher:
    """Everything a transport may call."""

    def __init__(
        self, store: Store, profile: Profile, identity: Identity, surroundings: Surroundings, *, version: str
    ) -> None:
        self.hub = Hub()
        self.profile = profile
        self.lifecycle = RuntimeLifecycle(sealed=store.settings.sealed)
        self.model = open_model(surroundings.model)
        self._store = store
        self._catalog = Catalog(profile)
        self.presence = Presence(store, profile, surroundings.clock)
        self.metrics = Metrics()
        self._refusals = Refusals(store)
        self._repeats = Repeats(store, profile.budgets.idempotency_keys)
        self._clock = surroundings.clock
        self.on_job: Callable[[], None] | None = None
        self._shared = Facilities(
            store=store,
            profile=profile,
            catalog=self._catalog,
            surroundings=surroundings,
            version=version,
            started_at=surroundings.clock(),
            refusals=lambda: self._refusals.count,
            identity=identity,
            agent_skills=AgentSkills(surroundings.skill_dirs, profile.budgets),
            model=self.model,
            lifecycle=self.lifecycle,
            presence=self.presence,
            metrics=self.metrics,
            subscriptions=lambda: self.hub.count,
        )
        store.on_commit(self._committed)

    def dispatch(self, call: Call) -> Outcome:
        """Run one operation.

        Raises:
            BeetleError: always one of ours; a defect becomes `internal` with a reference into the log.
        """
        began = time.perf_counter()
        failed: str | None = None
        try:
            call = self._known(call)
            with self._refusing(call):
                row, context = self._authorize(call)
                return self._run(call, row, context)
        except BeetleError as error:
            failed = error.key
            raise
        except Exception as defect:  # noqa: BLE001 - the boundary: what no one foresaw is logged and answered as internal
            failed = Internal.key
            raise self._defect(call, defect) from None
        finally:
            self.metrics.note(call.operation, time.perf_counter() - began, failed)

    def subscribe(self, call: Call) -> tuple[SubscribeReport, Subscription]:
        """Follow events; the transport delivers what the subscription hands over, while `follows` says that it may."""
        call = self._known(call)
        with self._refusing(call):
            row, context = self._authorize(call)
            request = cast(SubscribeRequest, self._decode(row, call.arguments, call.scanned))
            for topic in request.topics:
                needed = TOPIC_CAPABILITIES[topic]
                if needed not in call.caller.capabilities:
                    raise Forbidden(reason=f"following {topic} needs the capability {needed!r}", capability=needed)
        subscription = self.hub.open(
            frozenset(request.topics),
            context.space_id,
            call.caller.is_operator,
            self.profile.budgets.subscription_events,
            Holder(call.caller, None if call.line is None else call.line.proof),
            private=context.sees_private,
        )
        report = SubscribeReport(sub=subscription.sub, topics=request.topics)
        return stamp(context, report, None), subscription

    def follows(self, subscription: Subscription, peer: Caller) -> bool:
        """Whether who opened a subscription has the same rights still; `peer` is whom the transport takes it for."""
        return self.presence.follows(cast(Holder, subscription.holder), peer)

    def unsubscribe(self, call: Call, held: Mapping[str, Subscription]) -> UnsubscribeReport:
        """End one of the subscriptions that a connection holds."""
        call = self._known(call)
        with self._refusing(call):
            row, context = self._authorize(call)
            request = cast(UnsubscribeRequest, self._decode(row, call.arguments, call.scanned))
            subscription = held.get(request.sub)
            if subscription is None:
                raise NotFound(
                    kind="subscription", name=request.sub, listing="a connection ends its own subscriptions alone"
                )
        self.hub.close(subscription)
        return stamp(context, UnsubscribeReport(sub=request.sub), None)

    @contextmanager
    def _refusing(self, call: Call) -> Generator[None]:
        """Step 5 of a refusal: a row of the event log. A deadline that passed is told in the call's own figure."""
        try:
            yield
        except DeadlineExceeded as error:
            raise DeadlineExceeded(what=error.details["what"], deadline_ms=self._wait(call)) from None
        except REFUSED as error:
            self._refusals.note(call.caller, call.operation, error.key)
            raise

    def _committed(self, logged: list[Logged]) -> None:
        """On the writer's thread, before whoever wrote hears of it: what requests are judged by is read anew."""
        restored = any(each.event.event == RESTORED for each in logged)
        rights = self.presence.committed(logged)
        self.hub.publish(logged)
        if rights:
            self.hub.nudge()
        if self.on_job is not None and (restored or any(each.event.topic == "job" for each in logged)):
            self.on_job()

    def may(self, operation: str, caller: Caller, scope: WireScope) -> bool:
        """Whether a caller could use an operation in a scope now."""
        try:
            self._catalog.check(BY_NAME[operation], caller)
            resolve_scope(caller, scope)
        except (CapabilityHidden, Forbidden):
            return False
        return True

    def _known(self, call: Call) -> Call:
        """The call as of whom it is from. A proof that is refused is logged under whom the transport knows."""
        with self._refusing(call):
            caller = self.presence.identify(call.caller, call.auth, call.line)
        return call if caller is call.caller else call._replace(caller=caller, auth=None)

    def _authorize(self, call: Call) -> tuple[Operation, Context]:
        """Step 1, before the arguments are decoded: is there such an operation, may this caller, in this scope."""
        self.presence.check(call.caller)
        row = BY_NAME.get(call.operation)
        if row is None:
            raise _unknown(call.operation)
        self._catalog.check(row, call.caller)
        check_envelope(call, self.profile.budgets.key_bytes)
        scope = resolve_scope(call.caller, call.scope)
        context = Context(
            caller=call.caller,
            scope=scope,
            operation=row,
            view=self._view(row, call.caller),
            now=self._clock(),
            deadline=time.monotonic() + self._wait(call) / 1000,
            shared=self._shared,
            progress=Progress(call.tell),
            gone=call.gone if row.effect == "read" else None,
        )
        return row, context

    def _wait(self, call: Call) -> int:
        """Milliseconds that a call may take before its work begins: its own, its operation's, the profile's."""
        row = BY_NAME.get(call.operation)
        default = self.profile.budgets.default_deadline_ms
        return call.deadline_ms or (row and row.deadline_ms) or default

    def _view(self, row: Operation, caller: Caller) -> ViewName:
        """What an operation without a view of its own is seen through: only what the caller was granted.

        What is meant for a model takes the model's view where the caller has it; who has no view sees an audit's.
        Who may use an operation for the owner was granted the owner's view: the catalog has checked it.
        """
        if row.view == "owner":
            return "raw_owner"
        if row.view == "model" and "model_context" in caller.views:
            return "model_context"
        for view in caller.views:
            if view != "raw_owner":
                return view
        return "operator_audit"

    def _decode(self, row: Operation, arguments: Any, scanned: bool) -> Any:
        if isinstance(arguments, codec.Raw | bytes):
            return codec.decode_request(arguments, row.request, scanned=scanned)
        return codec.convert_request({} if arguments is None else arguments, row.request)

    def _admit(self, row: Operation, context: Context, arguments: Any, scanned: bool) -> tuple[Any, bool]:
        """Step 2: decode strictly, hold the sizes to the budgets, check the view that the request names."""
        request, clipped = budgets.admit(self._decode(row, arguments, scanned), self.profile.budgets)
        view: ViewName | None = getattr(request, "view", None)
        if view is not None:
            self._catalog.check_view(view, context.caller)
        if getattr(request, "include_private", False):
            self._catalog.check_private(context.caller)
        self.lifecycle.admit(row, request)
        return request, clipped

    def _run(self, call: Call, row: Operation, context: Context) -> Outcome:
        if row.effect == "stream":
            raise InvalidRequest(reason=f"{row.name} needs a connection that stays open", path="$.op")
        request, clipped = self._admit(row, context, call.arguments, call.scanned)
        if row.name == "batch":
            return self._batch(call, context, request)
        handler = HANDLERS[row.name]
        if handler.write is not None:
            apply = handler.write(context, request)
            return self._write(call, row, context, request, apply, handler, clipped)
        if handler.plain is not None:
            return self._plain(call, context, request, handler.plain, clipped)
        if handler.staged is not None:
            return self._staged(call, context, request, handler.staged, clipped)
        assert handler.read is not None
        with self._store.read(context.deadline, context.gone) as tx:
            report = handler.read(context, request, tx)
        if isinstance(report, MemoryProjectionReport):
            self.metrics.note_projection(context.asker, report.audit, context.now)
        return Outcome(self._reveal(context, request, stamp(context, report, None), clipped))

    def _plain(self, call: Call, context: Context, request: Any, handle: PlainHandler, clipped: bool) -> Outcome:
        report, repeated = self._repeats.once(call, context, request, lambda: handle(context, request))
        return Outcome(self._reveal(context, request, report, clipped), repeated)

    def _staged(self, call: Call, context: Context, request: Any, handle: StagedHandler, clipped: bool) -> Outcome:
        stages = self._repeats.stages(call, context, request)
        report = handle(context, request, stages)
        if not stages.repeated:
            report = stamp(context, report, None)
        return Outcome(self._reveal(context, request, report, clipped), stages.repeated)

    def _write(
        self, call: Call, row: Operation, context: Context, request: Any, apply: Apply, handler: Handler, clipped: bool
    ) -> Outcome:
        report, repeated = self._repeats.commit(call, context, request, apply, grows=row.grows)
        if handler.settle is not None:
            report = handler.settle(context, report)
        return Outcome(self._reveal(context, request, report, clipped), repeated)

    def _batch(self, call: Call, context: Context, request: BatchRequest) -> Outcome:
        """Several operations in one transaction. Each is authorized and admitted before the first one runs."""
        steps = [self._prepare(call, index, item.op, item.args) for index, item in enumerate(request.requests)]

        def run(tx: WriteTransaction) -> BatchReport:
            return BatchReport(reports=tuple(step.run(tx) for step in steps))

        def with_reads(report: Report, read: Callable[[_Step], dict[str, Any]]) -> Report:
            shown = zip(cast(BatchReport, report).reports or (), steps, strict=True)
            return codec.replace(report, reports=tuple(each if step.writes else read(step) for each, step in shown))

        def kept(report: Report) -> Report:
            # What was read is not kept: an idempotency row never holds content.
            return with_reads(report, lambda _: {})

        def again(tx: WriteTransaction, first: Report) -> Report:
            # What was written is answered as it was; what was read was not kept, and is read again.
            return with_reads(first, lambda step: step.run(tx))

        return self._repeats.commit(
            call, context, request, run, grows=any(step.grows for step in steps), kept=kept, again=again
        )

    def _prepare(self, call: Call, index: int, name: str, arguments: Any) -> _Step:
        try:
            row, context = self._authorize(_with(call, operation=name))
            if not row.batch:
                raise InvalidRequest(reason=f"{name} cannot stand in a batch", path=f"$.args.requests[{index}].op")
            request, clipped = self._admit(row, context, arguments, call.scanned)
            handler = HANDLERS[name]
            apply = None if handler.write is None else handler.write(context, request)
        except BeetleError as error:
            error.details["index"] = index
            raise

        def run(tx: WriteTransaction) -> dict[str, Any]:
            before = len(tx.logged)
            try:
                if apply is not None:
                    report = apply(tx)
                elif handler.plain is not None:
                    report = handler.plain(context, request)
                else:
                    assert handler.read is not None
                    report = handler.read(context, request, tx)
            except BeetleError as error:
                error.details["index"] = index
                raise
            return codec.to_plain(self._reveal(context, request, stamp(context, report, tx, before), clipped))

        return _Step(run, apply is not None, row.grows and row.effect == "write")

    def _reveal(self, context: Context, request: Any, report: Report, clipped: bool) -> Report:
        """Step 4: the one gate that every report passes."""
        viewer = context.viewer(
            getattr(request, "view", None), include_private=getattr(request, "include_private", False)
        )
        budgets = self.profile.budgets
        shown = reveal(report, viewer, budgets.redaction_items, budgets.host_refs_per_turn)
        return codec.replace(shown, profile_budget_applied=True) if clipped else shown

    def _defect(self, call: Call, error: Exception) -> Internal:
        reference = f"E{os.urandom(4).hex()}"
        import traceback

        # The frames name code, never values; the error's own text might hold content, and is left out.
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s: %s in %s\n%s", reference, type(error).__name__, call.operation, frames)
        return Internal(reference=reference)


class _Step(NamedTuple):
    """One prepared operation of a batch."""

    run: Callable[[WriteTransaction], dict[str, Any]]
    writes: bool
    grows: bool


def _with(call: Call, *, operation: str) -> Call:
    return Call(operation, None, call.caller, call.scope, None, call.deadline_ms)


def _unknown(name: str) -> UnknownOperation:
    from difflib import get_close_matches

    close = get_close_matches(name, BY_NAME, n=3)
    nearest = f"did you mean {', '.join(close)}?" if close else "`hello` lists the operations"
    return UnknownOperation(operation=name[:128], nearest=nearest)
