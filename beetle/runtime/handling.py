"""What a handler gets and what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from beetle.contracts.codec import format_us
from beetle.contracts.common import Lifecycle, Report
from beetle.contracts.fields import ViewName
from beetle.contracts.operations import Operation
from beetle.runtime.caller import Caller, Scope
from beetle.runtime.capabilities import Catalog
from beetle.runtime.identity import Identity
from beetle.runtime.lifecycle import RuntimeLifecycle
from beetle.runtime.metrics import Metrics
from beetle.runtime.presence import Presence
from beetle.runtime.profile import Profile
from beetle.runtime.skill_mounts import AgentSkills
from beetle.runtime.surroundings import Surroundings
from beetle.runtime.views import Viewer, visible_kinds
from beetle.store.event_log import Event, Matter
from beetle.store.progress import Progress
from beetle.store.readers import Gone
from beetle.store.store import Store
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

if TYPE_CHECKING:
    from beetle.runtime.model import ModelClient


class Facilities(NamedTuple):
    """What every operation of one runtime shares."""

    store: Store
    profile: Profile
    catalog: Catalog
    surroundings: Surroundings
    version: str
    started_at: int
    refusals: Callable[[], int]
    identity: Identity
    agent_skills: AgentSkills
    model: ModelClient | None
    lifecycle: RuntimeLifecycle
    presence: Presence
    metrics: Metrics
    subscriptions: Callable[[], int]


class Context(NamedTuple):
    """One call: who asks, for what scope, through which view, and when (microseconds, monotonic seconds)."""

    caller: Caller
    scope: Scope
    operation: Operation
    view: ViewName
    now: int
    deadline: float | None
    shared: Facilities
    progress: Progress
    gone: Gone | None = None
    """See Call; of what only reads."""

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
        return f"{prefix}-{self.shared.surroundings.ids(8).hex()}"

    def viewer(self, view: ViewName | None = None, *, include_private: bool = False) -> Viewer:
        """Through what the report is seen; the view is the call's own unless a request named another.

        The space's own agent is a principal, never a device, that is bound to the scope's agent.
        """
        own = self.caller.kind != "device" and self.caller.agent_id == self.scope.agent_id
        return Viewer(view or self.view, own, self.caller.is_operator, include_private)

    @property
    def sees_private(self) -> bool:
        """Whether any view of the caller shows private material of the scope."""
        return any("private" in visible_kinds(self.viewer(view)) for view in self.caller.views)

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
        return Event(topic, event, self.operation.name, self.caller.name, self.space_id, subject, matter)

    def own_event(self, topic: str, event: str, **subject: Any) -> Event:
        """An event of the daemon's own, which belongs to no space."""
        return Event(topic, event, self.operation.name, self.caller.name, None, subject)


def stamped(context: Context, tx: WriteTransaction, seq: int) -> Lifecycle:
    """`lifecycle` of an operation that opens its own transactions, filled in the one that logged its event."""
    return Lifecycle(operation=context.operation.name, changed=True, at=format_us(tx.now), event_id=seq)


Apply = Callable[[WriteTransaction], Report]
ReadHandler = Callable[[Context, Any, Reading], Report]
WriteHandler = Callable[[Context, Any], Apply]
PlainHandler = Callable[[Context, Any], Report]
Settle = Callable[[Context, Any], Report]
StagedHandler = Callable[[Context, Any, Any], Report]


class Handler(NamedTuple):
    """How one operation is handled; one of the first three, or `staged`, is set.

    A `write` does its pure work first, on the caller's thread, and returns what runs in the transaction. `settle` runs
    after the commit, also for a repeated report. A `staged` one is given the `Stages` in which it reads, works and
    writes.
    """

    read: ReadHandler | None = None
    write: WriteHandler | None = None
    plain: PlainHandler | None = None
    settle: Settle | None = None
    staged: StagedHandler | None = None
