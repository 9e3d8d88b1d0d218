"""Who is asking: the principal behind a request, and the scope that the request is for."""

from __future__ import annotations

from typing import Literal

from beetle.contracts.common import DEFAULT_AGENT, DEFAULT_CHANNEL, DEFAULT_CHAT, DEFAULT_OWNER, WireScope
from beetle.contracts.errors import Forbidden
from beetle.contracts.names import ViewName
from beetle.named_tuple import NamedTuple

CallerKind = Literal["operator", "principal", "device", "embedded", "unknown"]

OPERATOR_VIEWS: tuple[ViewName, ...] = ("host_ui", "model_context", "operator_audit", "export")
"""What an operator may look through, in order of preference; raw_owner only where the configuration grants it."""
OWNER_VIEWS: tuple[ViewName, ...] = (*OPERATOR_VIEWS, "raw_owner")


class Caller(NamedTuple):
    """An authenticated caller. `owner_id` and `agent_id` are set where the principal is bound to them.

    `views` is in order of preference: the first one is used where an operation takes no view. An unknown caller may do
    nothing, and is named so that its refusals can be logged. `added_at` is when a device was added, in
    microseconds: its name may have been another's before, and may be again.
    """

    name: str
    kind: CallerKind
    capabilities: frozenset[str]
    views: tuple[ViewName, ...]
    transport: str
    owner_id: str | None = None
    agent_id: str | None = None
    added_at: int | None = None

    @property
    def is_operator(self) -> bool:
        """Whether this caller answers for the daemon: its own uid, root, or the process that opened the store."""
        return self.kind in ("operator", "embedded")


class Scope(NamedTuple):
    """Where a request works. `conversation_id` is None when the request left it to what is remembered."""

    owner_id: str
    agent_id: str
    channel: str
    chat_id: str
    conversation_id: str | None

    @property
    def memory_space_id(self) -> str:
        """The id that every row of this owner carries."""
        return f"space:{self.owner_id}"


def resolve_scope(caller: Caller, wanted: WireScope | None) -> Scope:
    """The scope of a request: what it names, else the caller's own owner and agent, else the defaults.

    Raises:
        Forbidden: the request names another owner or agent than the caller is bound to.
    """
    wanted = wanted or WireScope()
    for kind, bound, asked in (
        ("owner", caller.owner_id, wanted.owner_id),
        ("agent", caller.agent_id, wanted.agent_id),
    ):
        if bound is not None and asked is not None and asked != bound:
            raise Forbidden(
                reason=f"principal {caller.name} is bound to {kind} {bound!r}, the request names {asked!r}",
                hint=f"leave {kind}_id out of the scope, or ask as another principal",
            )
    return Scope(
        owner_id=wanted.owner_id or caller.owner_id or DEFAULT_OWNER,
        agent_id=wanted.agent_id or caller.agent_id or DEFAULT_AGENT,
        channel=wanted.channel or DEFAULT_CHANNEL,
        chat_id=wanted.chat_id or DEFAULT_CHAT,
        conversation_id=wanted.conversation_id,
    )
