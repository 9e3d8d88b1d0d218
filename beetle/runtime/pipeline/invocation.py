"""One call: what a transport hands over, what a handler gets of it, and what the caller gets back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from beetle.contracts.codec import check_values, convert_request, format_us, replace
from beetle.contracts.common import Lifecycle, Report, WireScope
from beetle.contracts.envelope import Auth
from beetle.contracts.errors import DeadlineExceeded, InvalidRequest
from beetle.contracts.names import ViewName
from beetle.contracts.operations import Operation
from beetle.contracts.progress import OnProgress
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller, Scope
from beetle.runtime.host.chain_mirrors import ChainMirrors
from beetle.runtime.host.chunk_accesses import ChunkAccesses
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.history import History
from beetle.runtime.host.identity import Identity
from beetle.runtime.host.log_head import HeadSigner
from beetle.runtime.host.metrics import Metrics
from beetle.runtime.host.modes import RuntimeLifecycle
from beetle.runtime.host.profile import Profile
from beetle.runtime.host.sessions import Sessions
from beetle.runtime.host.skill_mounts import AgentSkills
from beetle.runtime.host.transfers import Transfers
from beetle.runtime.host.transports import Connection
from beetle.runtime.host.verified_chains import VerifiedChains
from beetle.runtime.pipeline.capabilities import Catalog
from beetle.runtime.pipeline.crowd import Work
from beetle.runtime.pipeline.views import RawReport, RevealedReport, Viewer, reveal, visible_kinds
from beetle.store.engine.progress import Progress
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.turns import IsAbandoned, Turns
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event, Logged
from beetle.store.event_places import Level, Matter
from beetle.store.sight import Sight

if TYPE_CHECKING:
    from beetle.runtime.host.model import ModelClient
    from beetle.runtime.host.replica import ReplicaBoard
from beetle.runtime.host.scheduler import Scheduler

R = TypeVar("R", bound=Report)


class Call(NamedTuple):
    """One request as a transport hands it over.

    `arguments` are undecoded MessagePack (`codec.Raw`), a request struct, or a mapping of its fields; `scanned` says
    that the transport has looked them through for values that no request may hold. `caller` is whom the transport
    takes the peer for; a device that proves itself by `auth`, or has done so on this `connection`, is that device
    instead, and an operator who names a principal there is that one. `is_abandoned` says whether the client has gone:
    then a read is stopped. `on_progress` is called with the progress of the work, on the thread that does it.
    """

    operation: str
    arguments: Any
    caller: Caller
    scope: WireScope | None = None
    idempotency_key: str | None = None
    deadline_ms: int | None = None
    auth: Auth | None = None
    scanned: bool = False
    connection: Connection | None = None
    is_abandoned: IsAbandoned | None = None
    on_progress: OnProgress | None = None


class Outcome(NamedTuple):
    """The report as the caller may see it; `repeated` when it was answered to this idempotency key before."""

    report: RevealedReport
    repeated: bool = False


class Facilities(NamedTuple):
    """What every operation of one runtime shares. `started_at` is in microseconds, `begun` in monotonic seconds."""

    store: Store
    profile: Profile
    catalog: Catalog
    dependencies: Dependencies
    version: str
    started_at: int
    begun: float
    refusals: Callable[[], int]
    identity: Identity
    heads: HeadSigner
    agent_skills: AgentSkills
    model: ModelClient | None
    lifecycle: RuntimeLifecycle
    sessions: Sessions
    metrics: Metrics
    history: History
    scheduler: Scheduler
    subscriptions: Callable[[], int]
    heavy_turns: Turns
    """One place, for what looks through the whole store."""
    large_turns: Turns
    """A few places, for requests of so many bytes that only few fit into memory decoded."""
    transfers: Transfers
    scan_turns: Turns
    """A few places, for who looks through a part of a large frame."""
    verified_chains: VerifiedChains
    mirrors: ChainMirrors
    chunk_accesses: ChunkAccesses
    left_imports: set[str]
    """Imports of chunks that were begun, and that the opening of the store could not finish."""
    replica: ReplicaBoard

    @property
    def uptime_s(self) -> float:
        """Seconds since the runtime began, whatever the clock was set to meanwhile."""
        return round(time.monotonic() - self.begun, 3)


class Behalf(NamedTuple):
    """For whom something is judged that the caller may not know of: what is seen at least, and whose word it is."""

    level: Level
    principal: str


class Invocation(NamedTuple):
    """One call: who asks, for what scope, through which view, and when (microseconds, monotonic seconds)."""

    caller: Caller
    scope: Scope
    operation: Operation
    view: ViewName
    now: int
    deadline: float | None
    shared: Facilities
    progress: Progress
    work: Work
    is_abandoned: IsAbandoned | None = None
    """See Call. What writes is done all the same."""
    connection: Connection | None = None
    """The connection that it came by; None in process."""
    behalf: Behalf | None = None
    """See `on_behalf`."""
    checks: bool = False
    """Whether each value that it reads is looked at."""

    @property
    def must_end(self) -> bool:
        """Whether its deadline has passed, or nobody waits for its answer any more."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        return late or (self.is_abandoned is not None and self.is_abandoned())

    def check(self, what: str) -> None:
        """A look between two pieces of work, which ends here when it must.

        Raises:
            DeadlineExceeded: the deadline passed before `what`, or the client has gone.
        """
        if self.must_end:
            raise DeadlineExceeded.before(what)

    def reading(self, *, heavy: bool | None = None) -> AbstractContextManager[Reading]:
        """A read of the store until the call must end; `heavy` as the operation's row, unless it is told."""
        reading = self.shared.store.read(
            self.deadline,
            self.is_abandoned,
            by=self.caller.name,
            heavy=self.operation.heavy if heavy is None else heavy,
            breathe=self.work.breathe,
        )
        if not self.checks:
            return reading
        from beetle.store.checked_reading import checked

        return checked(reading)

    def going_on(self) -> AbstractContextManager[None]:
        """A piece of work, by turns with the principal's other requests; heavy work has a lane of its own."""
        return nullcontext() if self.operation.heavy else self.work.going_on()

    def heavy_turn(self) -> AbstractContextManager[None]:
        """Alone among what looks through the whole store; principals take turns. Raises as `Turns.held`."""
        return self.shared.heavy_turns.held(self.caller.name, self.deadline, self.is_abandoned)

    @property
    def space_id(self) -> str:
        """The memory space of the call."""
        return self.scope.memory_space_id

    @property
    def key(self) -> bytes:
        """The store's key."""
        return self.shared.store.key

    def new_id(self, prefix: str) -> str:
        """A record's id: the prefix, a dash and 16 hex digits."""
        return f"{prefix}-{self.shared.dependencies.ids(8).hex()}"

    def viewer(self, view: ViewName | None = None, *, include_private: bool = False) -> Viewer:
        """Through what the report is seen; the view is the call's own unless a request named another.

        The space's own agent is a principal, never a device, that is bound to the scope's agent.
        """
        own = self.caller.kind != "device" and self.caller.agent_id == self.scope.agent_id
        return Viewer(view or self.view, own, self.caller.is_operator, include_private)

    def reveal(self, request: Any, report: RawReport, *, clipped: bool = False) -> RevealedReport:
        """Step 4: the one gate that every report passes; `clipped` when a budget has lowered what was asked for."""
        viewer = self.viewer(getattr(request, "view", None), include_private=getattr(request, "include_private", False))
        if clipped:
            report = replace(report, profile_budget_applied=True)
        budgets = self.shared.profile.budgets
        return reveal(report, viewer, budgets.redaction_items, budgets.host_refs_per_turn)

    @property
    def viewers(self) -> tuple[Viewer, ...]:
        """Through all that the caller may see the scope: each of its views."""
        catalog = self.shared.catalog
        own = self.reads_private
        return tuple(
            self.viewer(view, include_private=own) for view in self.caller.views if catalog.grants(view, self.caller)
        )

    @property
    def sees_private(self) -> bool:
        """Whether any view of the caller shows private material of the scope."""
        if self.behalf is not None and self.behalf.level != "shared":
            return True
        return any("private" in visible_kinds(self.viewer(view)) for view in self.caller.views)

    @property
    def reads_private(self) -> bool:
        """Whether the caller may read the private plane, and take private material out."""
        if self.behalf is not None and self.behalf.level == "sealed":
            return True
        return self.shared.catalog.grants("raw_owner", self.caller) and "private.read" in self.caller.capabilities

    @property
    def sight(self) -> Sight:
        """What of the scope's derived material the caller may know of, in counts too."""
        return Sight(private=self.sees_private, sealed=self.reads_private)

    @property
    def level(self) -> Level | None:
        """Of which events the caller may know, and by whose numbers; None for an operator, who sees the whole log."""
        if self.caller.is_operator:
            return None
        return "sealed" if self.reads_private else "private" if self.sees_private else "shared"

    def on_behalf(self, level: Level, principal: str) -> Invocation:
        """The call as it judges what waits unknown to its caller: with the sight of who may know of it, as the word of
        who left it there, and aside from what the call is answered.
        """
        return self._replace(behalf=Behalf(level, principal))

    @property
    def author(self) -> str:
        """Whose word is written down."""
        return self.caller.name if self.behalf is None else self.behalf.principal

    def number_of(self, logged: Sequence[Logged]) -> int | None:
        """The number by which the caller knows the last of some events; None if it may know of none of them."""
        numbers = (each.number_for(self.level, self.space_id) for each in reversed(logged) if not each.event.aside)
        return next((each for each in numbers if each is not None), None)

    def bound(self, *filters: Any) -> tuple[Any, ...]:
        """What a cursor of this call is bound to: the operation, the whole scope, the view that follows the caller, and
        the request's own filters, its view among them where it names one.
        """
        return (self.operation.name, *self.scope, self.view, *filters)

    def remembered_by(self, space: int) -> tuple[str, int, str, str, str]:
        """The key under which this caller's last conversation is remembered."""
        scope = self.scope
        return (self.caller.name, space, scope.agent_id, scope.channel, scope.chat_id)

    @property
    def asker(self) -> tuple[str, ...]:
        """Who asks, and from where."""
        scope = self.scope
        return (self.caller.name, scope.owner_id, scope.agent_id, scope.channel, scope.chat_id)

    def event(self, topic: str, event: str, matter: Matter = "shared", /, **subject: Any) -> Event:
        """An event of this call; the subject holds ids, kinds and counts. `matter` is not logged: see Event."""
        aside = self.behalf is not None
        return Event(topic, event, self.operation.name, self.caller.name, self.space_id, subject, matter, aside)

    def own_event(self, topic: str, event: str, **subject: Any) -> Event:
        """An event of the daemon's own, which belongs to no space."""
        return Event(topic, event, self.operation.name, self.caller.name, None, subject)


def check_envelope(call: Call, key_bytes: int) -> None:
    """What stands beside the arguments; a frame's was decoded strictly but for the key, whose bound is in bytes.

    Raises:
        InvalidRequest: something of it is not what it must be; with the path.
    """
    key: Any = call.idempotency_key
    if key is not None:
        _check_key(key, key_bytes)
    deadline: Any = call.deadline_ms
    if deadline is not None and not (isinstance(deadline, int) and deadline >= 1):
        raise InvalidRequest(reason="a deadline is a whole number of milliseconds from 1 on", path="$.deadline_ms")
    if call.scope is not None and not call.scanned:
        convert_request(call.scope, WireScope, "$.scope")


def _check_key(key: Any, key_bytes: int) -> None:
    path = "$.idempotency_key"
    if not isinstance(key, str):
        raise InvalidRequest(reason=f"an idempotency key is a text - at {path}", path=path)
    check_values(key, path)
    if not 0 < len(key.encode()) <= key_bytes:
        raise InvalidRequest(reason=f"an idempotency key has 1 to {key_bytes} bytes", path=path)


def stamp(invocation: Invocation, report: R, tx: WriteTransaction | None, before: int = 0) -> R:
    """Fill `lifecycle`: changed when the operation logged an event; the last one's number, as its caller
    knows it.

    What opens its own transactions has filled it itself, if it changed anything.
    """
    if tx is None and report.lifecycle is not None:
        return report
    logged = [] if tx is None else tx.logged[before:]
    lifecycle = Lifecycle(
        operation=invocation.operation.name,
        changed=any(not each.event.aside for each in logged),
        at=format_us(invocation.now if tx is None else tx.now),
        event_id=invocation.number_of(logged),
    )
    return replace(report, lifecycle=lifecycle)


def log_apart(
    invocation: Invocation,
    event: Event,
    also: Callable[[WriteTransaction], None] = lambda tx: None,
    *,
    deadline: float | None = None,
) -> Lifecycle:
    """Log the event of an operation that opens its own transactions, and write what goes with it; its `lifecycle`.

    What is done already waits for the writer without a deadline.
    """

    def write(tx: WriteTransaction) -> Lifecycle:
        also(tx)
        tx.log(event)
        number = invocation.number_of(tx.logged[-1:])
        return Lifecycle(operation=invocation.operation.name, changed=True, at=format_us(tx.now), event_id=number)

    return invocation.shared.store.write(write, deadline=deadline, grows=False, by=invocation.caller.name)
