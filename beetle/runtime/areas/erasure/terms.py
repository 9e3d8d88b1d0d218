"""The terms of a plan, as they are written down: on whose behalf it is done, what, and what was done."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from beetle.contracts import codec
from beetle.contracts.errors import IntegrityViolation, InvalidRequest
from beetle.contracts.names import ViewName
from beetle.runtime.areas.erasure import states
from beetle.runtime.areas.erasure.tally import Done
from beetle.runtime.host.caller import Caller, CallerKind, Scope
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store.erasures import OpenErasure
from beetle.store.event_places import Matter

MERGE = "merge"
"""The action of what has hidden turns in the index and erased them otherwise."""
UNREADABLE_HINT = "`beetle verify` names it, `beetle memory recover` drops it; then ask for what is left again"
Authority = Literal["operator", "user_asserted"]


class Asker(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who has begun it, and how: so that the rest is done as its own, and for nobody else."""

    kind: CallerKind
    capabilities: tuple[str, ...]
    views: tuple[ViewName, ...]
    owner_id: str | None
    agent_id: str | None
    added_at: int | None
    scope: tuple[str, str, str, str, str | None]
    view: ViewName

    def caller(self, name: str) -> Caller:
        """The caller as it was."""
        own = (self.owner_id, self.agent_id, self.added_at)
        return Caller(name, self.kind, frozenset(self.capabilities), self.views, "in_process", *own)


class Terms(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """On whose behalf, and what.

    Attributes:
        kinds: the visibilities of messages that go; None for all.
        authority: the caller's.
        action: what is done to turns that stay; empty for an erasure, `MERGE` for what was erased otherwise.
        id: tells this plan from any other that has its number later.
        key, request: the idempotency key of the request, and the digest of that, in hex, as its first report has it.
        asker: see Asker; None in plans of earlier builds.
        matter: whose matter its events are.
        lifecycle: the record of the step, where there is one for all of it.
        paused: it was called off, and goes on when it is asked for again.
        replaced: part of it was struck off by a restore.
        done: what was done.
    """

    kinds: tuple[str, ...] | None
    authority: Authority
    action: Literal["", "merge", "archive", "mask", "unmask", "review"] = ""
    id: str = ""
    key: str | None = None
    request: str | None = None
    asker: Asker | None = None
    matter: Matter = "shared"
    lifecycle: int | None = None
    paused: bool = False
    replaced: bool = False
    done: Done | None = None

    @property
    def erases(self) -> bool:
        """Whether content goes."""
        return self.action not in states.DONE

    @property
    def step(self) -> str:
        """The step of progress that it is."""
        return "erase" if self.erases else "change"

    @property
    def past(self) -> str:
        """What has been done to a turn at the end."""
        return states.DONE.get(self.action, "erased")

    @property
    def named(self) -> str:
        """What it is called."""
        return "an erasure" if self.erases else f"a step of transcripts ({self.action})"

    @property
    def event(self) -> str:
        """What its events begin with."""
        return "erasure" if self.erases else self.action


def terms_of(record: OpenErasure) -> Terms:
    """On whose behalf it is done, what, and what was.

    Raises:
        IntegrityViolation: another program, or another build, has written them.
    """
    try:
        return codec.decode_json(record.terms.encode(), Terms)
    except InvalidRequest:
        raise unreadable(record) from None


def readable(record: OpenErasure) -> Terms | None:
    """The terms; None where they cannot be read: nothing is done of such a plan."""
    try:
        return terms_of(record)
    except IntegrityViolation:
        return None


def unreadable(record: OpenErasure) -> IntegrityViolation:
    """What is written down of a plan is no plan."""
    return IntegrityViolation(
        reason=f"what is left of {record.operation} (row {record.erasure} of erasure) cannot be read",
        hint=UNREADABLE_HINT,
    )


def asker_of(invocation: Invocation) -> Asker:
    """Who calls, and how."""
    caller, scope = invocation.caller, invocation.scope
    named = (scope.owner_id, scope.agent_id, scope.channel, scope.chat_id, scope.conversation_id)
    own = (caller.owner_id, caller.agent_id, caller.added_at)
    return Asker(caller.kind, tuple(sorted(caller.capabilities)), tuple(caller.views), *own, named, invocation.view)


def asked_by(record: OpenErasure) -> tuple[Caller, Scope, ViewName]:
    """Who has begun a plan, for what scope, through which view. Raises as `terms_of`."""
    if (asker := terms_of(record).asker) is not None:
        return asker.caller(record.principal), Scope(*asker.scope), asker.view
    owner = record.memory_space_id.removeprefix("space:")
    caller = Caller(record.principal, "unknown", frozenset(), ("operator_audit",), "in_process")
    return caller, Scope(owner, "", "", "", None), "operator_audit"
