"""Temporary stores: each with a recorded clock and ids, so that the same requests give the same records."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beetle.contracts.capabilities import CAPABILITIES
from beetle.contracts.codec import pack, unpack_any
from beetle.contracts.common import DEFAULT_AGENT, DEFAULT_CHANNEL, DEFAULT_CHAT, WireScope
from beetle.contracts.errors import BeetleError
from beetle.contracts.harness import AskerName
from beetle.contracts.names import BackendName
from beetle.open import Opened, open_store, state_fingerprint
from beetle.runtime.host.caller import OPERATOR_VIEWS, OWNER_VIEWS, Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.pipeline.invocation import Call

PROFILE = "profile-server-linux-dev-full"
"""It allows every backend and every capability."""
LOGGED_S = 5.0
OWNER = "owner-harness"
STRANGER = "owner-stranger"
ORDINARY = frozenset(each.name for each in CAPABILITIES)


def _principal(name: str, agent: str | None, *views: Any, owner: str = OWNER) -> Caller:
    return Caller(name, "principal", ORDINARY, views, "unix_socket", owner, agent)


ASKERS: Mapping[AskerName, Caller] = {
    "owner": Caller(
        name=f"embedded:{DEFAULT_AGENT}",
        kind="embedded",
        capabilities=ORDINARY | {"admin", "transcript.raw", "private.read"},
        views=OWNER_VIEWS,
        transport="in_process",
        owner_id=OWNER,
        agent_id=DEFAULT_AGENT,
    ),
    "operator": Caller("operator", "operator", ORDINARY | {"admin"}, OPERATOR_VIEWS, "unix_socket"),
    "agent": _principal("agent", DEFAULT_AGENT, "model_context", "host_ui"),
    "panel": _principal("panel", None, "host_ui", "model_context"),
    "auditor": _principal("auditor", None, "operator_audit"),
    "exporter": _principal("exporter", None, "export"),
    "stranger": _principal("stranger", DEFAULT_AGENT, "model_context", "host_ui", owner=STRANGER),
}
"""Who may ask in a fixture. The agent is the space's own; a panel shows memory to people; a stranger has a space of
its own."""


class Recorded:
    """A clock that moves when it is told to, and an id source that gives the same ids in the same order."""

    def __init__(self, name: str, start: int) -> None:
        self.now = start
        self._name = name
        self._given = 0

    def clock(self) -> int:
        return self.now

    def ids(self, count: int) -> bytes:
        self._given += 1
        made = b""
        while len(made) < count:
            made += hashlib.sha256(f"{self._name}/{self._given}/{len(made)}".encode()).digest()
        return made[:count]


class FixtureStore:
    """One temporary store while it is open."""

    def __init__(self, opened: Opened, recorded: Recorded) -> None:
        self._opened = opened
        self._recorded = recorded

    def wait(self, seconds: float) -> None:
        """Let time go by: at least a millisecond, so that what is asked later is later."""
        self._recorded.now += max(1000, round(seconds * 1_000_000))

    def call(self, op: str, args: Any, asker: AskerName = "owner", scope: WireScope | None = None) -> dict[str, Any]:
        """One request's report as builtins.

        Raises:
            BeetleError: the request was refused.
        """
        caller = ASKERS[asker]
        given = scope or WireScope()
        where = WireScope(
            owner_id=given.owner_id or caller.owner_id or OWNER,
            agent_id=given.agent_id or caller.agent_id or DEFAULT_AGENT,
            channel=given.channel or DEFAULT_CHANNEL,
            chat_id=given.chat_id or DEFAULT_CHAT,
            conversation_id=given.conversation_id,
        )
        dispatcher = self._opened.dispatcher
        try:
            return unpack_any(pack(dispatcher.dispatch(Call(op, args, caller, where)).report))
        except BeetleError:
            # A refusal is logged behind its answer: what number the next event has would depend on the machine.
            dispatcher.refusals.flush(LOGGED_S)
            raise

    def fingerprint(self) -> str:
        """The state fingerprint of what the owner's space holds."""
        return state_fingerprint(self._opened, OWNER)


@contextmanager
def temporary_store(name: str, backend: BackendName, start: int) -> Iterator[FixtureStore]:
    """A store on a backend, gone when the block ends.

    Args:
        name: of the fixture; its ids come from it.
        start: what its clock shows first, in microseconds since the epoch.
    """
    recorded = Recorded(name, start)
    around = Dependencies(clock=recorded.clock, ids=recorded.ids, elapsed=recorded.clock)
    with tempfile.TemporaryDirectory(prefix="beetle-harness-") as folder:
        opened = open_store(str(Path(folder) / "fixture.db"), PROFILE, backend, dependencies=around, env={})
        try:
            yield FixtureStore(opened, recorded)
        finally:
            opened.store.close()
