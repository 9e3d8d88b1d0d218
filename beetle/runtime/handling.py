"""What a handler gets and what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from beetle.contracts.common import Report
from beetle.contracts.fields import ViewName
from beetle.contracts.operations import Operation
from beetle.runtime.caller import Caller, Scope
from beetle.runtime.capabilities import Catalog
from beetle.runtime.identity import Identity
from beetle.runtime.profile import Profile
from beetle.runtime.surroundings import Surroundings
from beetle.runtime.views import Viewer
from beetle.store.event_log import Event
from beetle.store.store import Store
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction


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


class Context(NamedTuple):
    """One call: who asks, for what scope, through which view, and when (microseconds, monotonic seconds)."""

    caller: Caller
    scope: Scope
    operation: Operation
    view: ViewName
    now: int
    deadline: float | None
    shared: Facilities

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

    def bound(self, *filters: Any) -> tuple[Any, ...]:
        """What a cursor of this call is bound to: the operation, the whole scope, and the request's own filters."""
        return (self.operation.name, *self.scope, *filters)

    def remembered_by(self, space: int) -> tuple[str, int, str, str, str]:
        """The key under which this caller's last conversation is remembered."""
        scope = self.scope
        return (self.caller.name, space, scope.agent_id, scope.channel, scope.chat_id)

    def event(self, topic: str, event: str, **subject: Any) -> Event:
        """An event of this call; the subject holds ids, kinds and counts."""
        return Event(topic, event, self.operation.name, self.caller.name, self.space_id, subject)


Apply = Callable[[WriteTransaction], Report]
ReadHandler = Callable[[Context, Any, Reading], Report]
WriteHandler = Callable[[Context, Any], Apply]
PlainHandler = Callable[[Context, Any], Report]
Settle = Callable[[Context, Any], Report]


class Handler(NamedTuple):
    """How one operation is handled; one of the first three is set.

    A `write` does its pure work first, on the caller's thread, and returns what runs in the transaction. `settle` runs
    after the commit, also for a repeated report.
    """

    read: ReadHandler | None = None
    write: WriteHandler | None = None
    plain: PlainHandler | None = None
    settle: Settle | None = None
