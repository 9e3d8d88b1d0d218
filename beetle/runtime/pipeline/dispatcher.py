"""One path for every operation and every caller: authorize, admit, handle, reveal, audit."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never, cast

from beetle.contracts import codec
from beetle.contracts.common import WireScope
from beetle.contracts.control import (
    BatchItem,
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
    InvalidRequest,
    NotFound,
    PrivacyDenied,
    Unauthorized,
)
from beetle.contracts.names import ViewName
from beetle.contracts.operations import BY_NAME, Operation
from beetle.runtime.host import sealing
from beetle.runtime.host.caller import Caller, resolve_scope
from beetle.runtime.host.chain_mirrors import ChainMirrors
from beetle.runtime.host.chunk_accesses import ChunkAccesses
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.history import History, gauges
from beetle.runtime.host.identity import Identity
from beetle.runtime.host.log_head import HeadSigner
from beetle.runtime.host.metrics import Metrics
from beetle.runtime.host.model_failure import open_model
from beetle.runtime.host.modes import RESTING_MODES, RESTORED, RuntimeLifecycle
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.host.profile import Profile
from beetle.runtime.host.replica import ReplicaBoard
from beetle.runtime.host.retention import policy_of
from beetle.runtime.host.scheduled_job import Job, Limits, Run
from beetle.runtime.host.scheduler import NAME as SCHEDULER
from beetle.runtime.host.scheduler import TOPIC as JOB_TOPIC
from beetle.runtime.host.scheduler import Scheduler
from beetle.runtime.host.sessions import Sessions, Subscriber
from beetle.runtime.host.skill_mounts import AgentSkills
from beetle.runtime.host.transfers import Transfers
from beetle.runtime.host.verified_chains import VerifiedChains
from beetle.runtime.pipeline import budgets, pieces
from beetle.runtime.pipeline.batch import BatchStep, KeyedBatch, read_batch
from beetle.runtime.pipeline.begun import BegunCall
from beetle.runtime.pipeline.capabilities import Catalog, view_for
from beetle.runtime.pipeline.crowd import BackgroundWork, BriefWork, Crowd, Work
from beetle.runtime.pipeline.failures import defect_of, note_call, unknown_operation
from beetle.runtime.pipeline.handlers import Handler, Plain, Read, Staged, Write
from beetle.runtime.pipeline.idempotency import KeyedWrite, KeyTurns
from beetle.runtime.pipeline.invocation import Call, Facilities, Invocation, Outcome, check_envelope, stamp
from beetle.runtime.pipeline.refusals import Refusals
from beetle.runtime.pipeline.subscriptions import TOPIC_CAPABILITIES, Hub, Inbox, Subscription, View
from beetle.runtime.pipeline.views import RawReport, RevealedReport, reveal_error
from beetle.store.engine.progress import Progress
from beetle.store.engine.steps import Steps
from beetle.store.engine.store import Store
from beetle.store.engine.turns import Full, Turns
from beetle.store.event_log import Logged

if TYPE_CHECKING:
    from beetle.contracts.memory import MemoryProjectionReport

REFUSED = (Unauthorized, Forbidden, CapabilityHidden, PrivacyDenied)
"""Errors that leave a row in the event log."""
PROJECTION = "memory.project"
"""Its report has an audit, which the metrics tell."""
HEAVY = Full("other heavy work runs", maximum="one at a time", retry_after_ms=1000)
REFUSALS_S = 1.0
"""For so long a read of the log waits for the refusals before it; a writer that is busy for longer holds no read up."""
LARGE_TURNS = 2
"""Large requests that are read together, and that are worked at together."""
LARGE = Full("other large requests run", maximum=str(LARGE_TURNS), retry_after_ms=500)


class Dispatcher:
    """Everything a transport may call."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        identity: Identity,
        dependencies: Dependencies,
        handlers: Mapping[str, Handler],
        jobs: Sequence[Job],
        *,
        version: str,
    ) -> None:
        self._handlers = handlers
        self._met: set[str] = set()
        """Operations whose handlers were asked for: to look one up for the first time may load its area."""
        self.hub = Hub()
        self.lifecycle = RuntimeLifecycle(immutable=store.settings.immutable)
        self.model = open_model(dependencies.model)
        sealing.begin(store, identity)
        self.sessions = Sessions(store, profile, dependencies.clock)
        self.metrics = Metrics()
        self.history = History(lambda: gauges(store))
        self.refusals = Refusals(store)
        self.crowd = Crowd()
        self.key_turns = KeyTurns()
        self.scheduler = Scheduler(store, jobs, self._limits(store, profile, dependencies))
        self.shared = Facilities(
            store=store,
            profile=profile,
            catalog=Catalog(profile),
            dependencies=dependencies,
            version=version,
            started_at=dependencies.clock(),
            begun=time.monotonic(),
            refusals=lambda: self.refusals.count,
            identity=identity,
            heads=HeadSigner(store, identity),
            agent_skills=AgentSkills(dependencies.skill_dirs, profile.budgets),
            model=self.model,
            lifecycle=self.lifecycle,
            sessions=self.sessions,
            metrics=self.metrics,
            history=self.history,
            scheduler=self.scheduler,
            subscriptions=lambda: self.hub.count,
            heavy_turns=Turns(1, each=1, full=HEAVY.error),
            large_turns=Turns(LARGE_TURNS, each=1, full=LARGE.error),
            transfers=Transfers(store.settings, profile.budgets),
            scan_turns=Turns(LARGE_TURNS, each=1, full=LARGE.error),
            verified_chains=VerifiedChains(),
            mirrors=ChainMirrors(store),
            chunk_accesses=ChunkAccesses(store),
            left_imports=set(),
            replica=ReplicaBoard(
                url=dependencies.replica_url,
                source=None if dependencies.replica is None else partial(dependencies.replica, store.settings.path),
            ),
        )
        # Of several reads of one principal only one is worked at then: the others would hold connections in vain.
        store.share_readers(self.crowd.is_crowded)
        store.writer.share(lambda by: self.crowd.is_asked(by, SCHEDULER))
        store.on_commit(self._committed)
        store.at_close(self.shared.heads.sign_last)
        store.before_close(self.shared.transfers.close)
        store.before_close(self.shared.mirrors.close)
        store.before_close(self.shared.chunk_accesses.close)
        self.shared.mirrors.begin()

    def _limits(self, store: Store, profile: Profile, dependencies: Dependencies) -> Limits:
        """When background jobs may run, and by which clock."""
        return Limits(
            begin=self._background,
            is_busy=lambda: self.crowd.is_asked(SCHEDULER) or store.writer.queued > 0,
            rests=lambda: self.lifecycle.mode in RESTING_MODES,
            share_percent=profile.budgets.background_share_percent,
            clock=dependencies.clock,
            schedules=dependencies.schedules,
            time_zone=dependencies.time_zone,
            zone_variable=dependencies.zone_variable,
            keep_snapshots=policy_of(profile.budgets, dependencies.snapshots),
        )

    def dispatch(self, call: Call) -> Outcome:
        """Run one operation.

        Raises:
            BeetleError: always one of ours; a defect becomes `internal` with a reference into the log.
        """
        return self.shared.store.complete(self._steps(call))

    def begin(self, call: Call) -> Outcome | BegunCall:
        """Run one operation that `is_brief` up to its write, which it does not wait for. Raises as `dispatch`."""
        steps = self._steps(call, brief=True)
        try:
            return BegunCall(self.shared.store, steps, next(steps))
        except StopIteration as ended:
            return ended.value

    def is_brief(self, call: Call) -> bool:
        """Whether a call waits for nothing but its write, and does little else: then `begin` may run on a thread that
        serves others too. Not while several principals ask: each has its turn then, which is waited for."""
        handler = self._handlers.get(call.operation) if call.operation in self._met else None
        if not isinstance(handler, Write) or not handler.brief or call.auth is not None:
            return False
        proven = call.connection is not None and call.connection.proof is not None
        return (
            not proven and self.sessions.transports.knows(call.caller) and not self.crowd.is_crowded(call.caller.name)
        )

    def _steps(self, call: Call, *, brief: bool = False) -> Steps[Outcome]:
        """One operation. It stops at its write where it is handled by one; others do theirs by themselves.

        Args:
            brief: it waits for no turn.
        """
        began = time.perf_counter()
        failed: str | None = None
        try:
            call = self._known(call)
            mine = BriefWork(self.crowd, call.caller.name) if brief else None
            with self._refusing(call), self.crowd.asking(call.caller.name, mine) as work:
                # In one piece: at each the turn is waited for.
                with work.going_on():
                    row, invocation = self._authorize(call, work)
                    if row.effect == "stream":
                        raise InvalidRequest(reason=f"{row.name} needs a connection that stays open", path="$.op")
                    request, clipped = self._admit(row, invocation, call.arguments, call.scanned)
                return (yield from self._run(call, row, invocation, request, clipped))
        except BeetleError as error:
            failed = error.key
            raise
        except Exception as defect:  # noqa: BLE001 - the boundary: what no one foresaw is logged and answered as internal
            told = defect_of(call, defect)
            failed = told.key
            raise told from None
        finally:
            took = time.perf_counter() - began
            self.metrics.note(call.operation, took, failed)
            self.history.note(call.operation, took)
            note_call(call, took, failed)

    def subscribe(self, call: Call, inbox: Inbox) -> tuple[RevealedReport, Subscription]:
        """Follow events; the transport begins the subscription in its inbox once it has told of it, and delivers what
        that hands over, while `follows` says that it may."""
        call = self._known(call)
        with self._refusing(call):
            row, invocation = self._authorize(call)
            request = cast(SubscribeRequest, _decode(row, call.arguments, call.scanned))
            for topic in request.topics:
                needed = TOPIC_CAPABILITIES[topic]
                if needed not in call.caller.capabilities:
                    raise Forbidden(reason=f"following {topic} needs the capability {needed!r}", capability=needed)
        matters = frozenset({"shared", "private"} if invocation.sees_private else {"shared"})
        subscription = self.hub.open(
            View(frozenset(request.topics), invocation.space_id, invocation.level, matters),
            self.shared.profile.budgets.subscription_events,
            inbox,
            Subscriber.of(call.caller, call.connection),
            by=call.caller.name,
        )
        report = SubscribeReport(sub=subscription.sub, topics=request.topics)
        return invocation.reveal(request, stamp(invocation, report, None)), subscription

    def follows(self, subscription: Subscription, peer: Caller) -> bool:
        """Whether who opened a subscription has the same rights still; `peer` is whom the transport takes it for."""
        return self.sessions.follows(cast(Subscriber, subscription.holder), peer)

    def unsubscribe(self, call: Call, held: dict[str, Subscription]) -> RevealedReport:
        """End one of the subscriptions that a connection holds, which has it no more."""
        call = self._known(call)
        with self._refusing(call):
            row, invocation = self._authorize(call)
            request = cast(UnsubscribeRequest, _decode(row, call.arguments, call.scanned))
            subscription = held.pop(request.sub, None)
            if subscription is None:
                raise NotFound(
                    kind="subscription", name=request.sub, listing="a connection ends its own subscriptions alone"
                )
        self.hub.close(subscription)
        return invocation.reveal(request, stamp(invocation, UnsubscribeReport(sub=request.sub), None))

    def _refusing(self, call: Call) -> AbstractContextManager[None]:
        """What becomes of an error: a refusal leaves a row in the event log (step 5), a deadline that passed is told
        in the call's own figure, and each is shown as its caller may see it (step 4).
        """
        return _Refusing(self, call)

    def judge(self, call: Call, error: BeetleError) -> None:
        """Raises what is answered in place of an error; nothing where that is the error itself."""
        if isinstance(error, DeadlineExceeded):
            if not error.lacks_its_figure:
                return
            told = DeadlineExceeded(what=error.details["what"], deadline_ms=self._wait(call), hint=error.hint)
            told.details = error.details | told.details
            raise told from None
        if isinstance(error, REFUSED):
            self.refusals.note(call.caller, call.operation, error.key)
        if (shown := reveal_error(error, call.caller, self.shared.store.settings.path)) is not error:
            raise shown from None

    def _committed(self, logged: list[Logged]) -> None:
        """On the writer's thread, before whoever wrote hears of it: what requests are judged by is read anew."""
        self.shared.heads.committed()
        self.shared.mirrors.committed(logged)
        restored = of_jobs = False
        for each in logged:
            restored = restored or each.event.event == RESTORED
            of_jobs = of_jobs or each.event.topic == JOB_TOPIC
        rights = self.sessions.committed(logged)
        self.hub.publish(logged)
        if rights:
            self.hub.nudge()
        if restored:
            self.scheduler.forget()
        elif of_jobs:
            self.scheduler.wake()

    @contextmanager
    def _background(self, run: Run) -> Generator[Invocation]:
        """The invocation of a job that nobody asked for: it sees what an operator sees, and takes turns with others."""
        caller = OPERATOR._replace(name=SCHEDULER, transport="in_process")
        row = BY_NAME["scheduler.run"]
        share = self.shared.profile.budgets.background_share_percent
        with self.crowd.asking(SCHEDULER, BackgroundWork(self.crowd, SCHEDULER, share, run.pause)) as work:
            yield Invocation(
                caller=caller,
                scope=resolve_scope(caller, None),
                operation=row,
                view=view_for(row, caller),
                now=self.shared.dependencies.clock(),
                deadline=run.deadline,
                shared=self.shared,
                progress=Progress(),
                work=work,
                is_abandoned=lambda: run.must_end,
            )

    def may(self, operation: str, caller: Caller, scope: WireScope) -> bool:
        """Whether a caller could use an operation in a scope now."""
        try:
            self.shared.catalog.check(BY_NAME[operation], caller)
            resolve_scope(caller, scope)
        except (CapabilityHidden, Forbidden):
            return False
        return True

    def _known(self, call: Call) -> Call:
        """The call as of whom it is from. A proof that is refused is logged under whom the transport knows."""
        with self._refusing(call):
            caller = self.sessions.identify(call.caller, call.auth, call.connection)
        return call if caller is call.caller else call._replace(caller=caller, auth=None)

    def _authorize(self, call: Call, work: Work | None = None) -> tuple[Operation, Invocation]:
        """Step 1, before the arguments are decoded: is there such an operation, may this caller, in this scope."""
        self.sessions.check(call.caller)
        row = BY_NAME.get(call.operation)
        if row is None:
            raise unknown_operation(call.operation)
        self.shared.catalog.check(row, call.caller)
        check_envelope(call, self.shared.profile.budgets.key_bytes)
        scope = resolve_scope(call.caller, call.scope)
        invocation = Invocation(
            caller=call.caller,
            scope=scope,
            operation=row,
            view=view_for(row, call.caller),
            now=self.shared.dependencies.clock(),
            deadline=time.monotonic() + self._wait(call) / 1000,
            shared=self.shared,
            progress=Progress(call.on_progress),
            work=work or Work(self.crowd, call.caller.name),
            is_abandoned=call.is_abandoned,
            connection=call.connection,
        )
        return row, invocation

    def _wait(self, call: Call) -> int:
        """Milliseconds that a call may take: its own, but never more than its operation's or the profile's."""
        row = BY_NAME.get(call.operation)
        most = (row and row.deadline_ms) or self.shared.profile.budgets.default_deadline_ms
        return min(call.deadline_ms or most, most)

    def _admit(self, row: Operation, invocation: Invocation, arguments: Any, scanned: bool) -> tuple[Any, bool]:
        """Step 2: decode strictly, hold the sizes to the budgets, check the view that the request names."""
        if isinstance(arguments, codec.Raw | bytes):
            budgets.foresee(row.request, arguments, self.shared.profile.budgets)
        given = pieces.joined(invocation, _decode(row, arguments, scanned))
        request, clipped = budgets.admit(given, self.shared.profile.budgets)
        view: ViewName | None = getattr(request, "view", None)
        if view is not None:
            self.shared.catalog.check_view(view, invocation.caller)
        if getattr(request, "include_private", False):
            self.shared.catalog.check_private(invocation.caller)
        self.lifecycle.admit(row, request)
        return request, clipped

    def _write_refusals(self, operations: Iterable[str]) -> None:
        """Before a read of the log: what was refused until now is to stand there. Nobody's turn is held meanwhile."""
        handlers = (self._handlers.get(each) for each in operations)
        if any(isinstance(each, Read) and each.refusals for each in handlers):
            self.refusals.flush(REFUSALS_S)

    def _run(self, call: Call, row: Operation, invocation: Invocation, request: Any, clipped: bool) -> Steps[Outcome]:
        if row.effect == "read":
            invocation.check("the read was begun")
        # A read is kept for no key; a store that was closed can be asked for none.
        key = None if row.effect == "read" or self.shared.store.closed else call.idempotency_key
        if row.name == "batch":
            # Each is authorized and admitted before the first one runs.
            with invocation.going_on():
                steps = [self._step(invocation, call, index, item) for index, item in enumerate(request.requests)]
            self._write_refusals(item.op for item in request.requests)
            if any(step.writes for step in steps):
                batch = KeyedBatch(key, invocation, request, steps)
                report, repeated = batch.run(), batch.repeated
            else:
                report, repeated = read_batch(invocation, steps), False
        else:
            self._write_refusals([row.name])
            # The key's turn first: who waits for it holds up no other heavy work.
            with self._key_turn(key, invocation), invocation.heavy_turn() if row.heavy else nullcontext():
                return (yield from self._handle(key, invocation, request, clipped))
        with invocation.going_on():
            return Outcome(invocation.reveal(request, report, clipped=clipped), repeated)

    def _key_turn(self, key: str | None, invocation: Invocation) -> AbstractContextManager[None]:
        """Of two calls of one key the second waits for the first, unless they are one transaction: that looks itself.

        Raises:
            Overloaded: the first ran until the deadline of this one.
            DeadlineExceeded: the client has gone meanwhile.
        """
        if key is None or not isinstance(self._handlers[invocation.operation.name], Plain | Staged):
            return nullcontext()
        return self.key_turns.held(key, invocation)

    def _handle(self, key: str | None, invocation: Invocation, request: Any, clipped: bool) -> Steps[Outcome]:
        """Step 3: what the operation's handler makes, and whether its idempotency key was answered that before."""

        def shown(report: RawReport, repeated: bool = False) -> Outcome:
            with invocation.going_on():
                revealed = invocation.reveal(request, report, clipped=clipped)
                return Outcome(pieces.parted(invocation, request, revealed), repeated)

        handler = self._handlers[invocation.operation.name]
        self._met.add(invocation.operation.name)
        match handler:
            case Read():
                # Shown before the reader is given back: so there are never more large reports at once than readers.
                with invocation.reading() as tx, invocation.going_on():
                    report = handler.answer(invocation, request, tx)
                    if invocation.operation.name == PROJECTION:
                        audit = cast("MemoryProjectionReport", report).audit
                        self.metrics.note_projection(invocation.asker, audit, invocation.now)
                    return shown(stamp(invocation, report, None))
            case Write(_, settle, again=again):
                with invocation.going_on():
                    apply = handler.within(invocation, request)
                write = KeyedWrite(key, invocation, request, again)
                report = yield from write.committing(apply)
                return shown(report if settle is None else settle(invocation, report), write.repeated)
            case Plain(_, again):
                write = KeyedWrite(key, invocation, request, again)
                return shown(write.once(lambda: handler.answer(invocation, request)), write.repeated)
            case Staged():
                from beetle.runtime.pipeline.staged_write import StagedWrite

                write = StagedWrite(key, invocation, request)
                report = handler.answer(invocation, request, write)
                write.check_rights()
                return shown(report if write.repeated else stamp(invocation, report, None), write.repeated)
            case _:
                assert_never(handler)

    def _step(self, batch: Invocation, call: Call, index: int, item: BatchItem) -> BatchStep:
        name = item.op
        try:
            step = Call(name, None, call.caller, call.scope, None, call.deadline_ms)
            row, invocation = self._authorize(step, batch.work)
            handler = self._handlers.get(name)
            if not row.batch or handler is None or isinstance(handler, Staged):
                raise InvalidRequest(reason=f"{name} cannot be part of a batch", path=f"$.args.requests[{index}].op")
            request, clipped = self._admit(row, invocation, item.args, call.scanned)
            apply = handler.within(invocation, request)
            again = None if isinstance(handler, Read) else handler.again
        except BeetleError as error:
            error.details["index"] = index
            raise
        return BatchStep(index, invocation, request, clipped, apply, isinstance(handler, Write), again)


class _Refusing(AbstractContextManager[None]):
    """A class, since a generator takes four times as long, twice for each request."""

    __slots__ = ("_call", "_dispatcher")

    def __init__(self, dispatcher: Dispatcher, call: Call) -> None:
        self._dispatcher = dispatcher
        self._call = call

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BeetleError):
            self._dispatcher.judge(self._call, error)


def _decode(row: Operation, arguments: Any, scanned: bool) -> Any:
    if isinstance(arguments, codec.Raw | bytes):
        return codec.decode_request(arguments, row.request, scanned=scanned)
    return codec.convert_request({} if arguments is None else arguments, row.request)
