"""The transports: which are open, what waits for callers where, and who is connected over them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from beetle.contracts.errors import CapabilityHidden, Forbidden, InvalidRequest
from beetle.contracts.names import TRANSPORT_NAMES, TransportName
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.built_transports import built_transports
from beetle.runtime.host.cached_rows import CachedRows
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.profile import Profile
from beetle.store.damaged_rows import known_time
from beetle.store.engine.store import Store
from beetle.store.transports import TransportRow, by_name

if TYPE_CHECKING:
    from beetle.contracts.devices import TransportEntry

OWN_PROCESS = frozenset({"in_process", "cli"})
"""Whoever comes in this way has opened the store itself, and could not be kept out."""
TRANSPORT_UPDATED = "transport_updated"
"""The event that tells of a change."""
CONFIGURABLE_ENDPOINTS = frozenset({"http", "grpc"})
"""What listens where an operator says; the Unix socket's path is the daemon's command line's and configuration's."""


class Proof(NamedTuple):
    """That a connection had a device's key. It holds while the device has this generation and this digest of it."""

    device_id: str
    generation: int
    verifier: bytes


class Connection:
    """One open connection as the runtime knows it: who asked last over it, what it has proved, as whom it acts."""

    __slots__ = ("acting", "principal", "proof", "transport")

    def __init__(self, transport: str) -> None:
        self.transport = transport
        self.principal = ""
        self.proof: Proof | None = None
        self.acting: str | None = None


class Connections:
    """The connections that are open now."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: set[Connection] = set()

    def open(self, transport: str) -> Connection:
        """A connection has come; whoever took it calls `close`."""
        connection = Connection(transport)
        with self._guard:
            self._open.add(connection)
        return connection

    def close(self, connection: Connection) -> None:
        """It has ended. A second call does nothing."""
        with self._guard:
            self._open.discard(connection)

    def proofs(self) -> Counter[Proof]:
        """How many connections have proved what."""
        with self._guard:
            return Counter(connection.proof for connection in self._open if connection.proof is not None)

    def connected(self) -> Counter[tuple[str, str]]:
        """Connections by principal and transport."""
        with self._guard:
            return Counter((connection.principal, connection.transport) for connection in self._open)


class Transports:
    """The transports of one runtime: the profile's word, the build's, and the operator's."""

    def __init__(self, store: Store, profile: Profile) -> None:
        self._allowed = frozenset(profile.transports.allowed)
        self._rows = CachedRows(store, by_name)
        self._guard = threading.Lock()
        self._listening: dict[str, str] = {}
        self.changed = self._rows.changed

    def knows(self, caller: Caller) -> bool:
        """Whether `check` reads no store for a caller."""
        return caller.is_operator or self._rows.are_read

    def check(self, caller: Caller) -> None:
        """Whether the way that a caller came is open to it.

        Raises:
            Forbidden: an operator has closed it.
        """
        if caller.is_operator:
            return  # without a look at the store: who answers for it can ask why it cannot be read
        row = self._rows.get().get(caller.transport)
        if row is None or row.enabled:
            return
        raise Forbidden(
            reason=f"the operator has closed {caller.transport}",
            hint=f"an operator opens it again: `beetle transport update {caller.transport} --enabled`",
            transport=caller.transport,
        )

    def listens(self, name: TransportName, endpoint: str) -> None:
        """A transport waits for callers from now on."""
        with self._guard:
            self._listening[name] = endpoint

    def configured_endpoint(self, name: TransportName) -> str | None:
        """The address that an operator gave it; None without one."""
        row = self._rows.get().get(name)
        return None if row is None else row.endpoint

    def ended(self, name: TransportName) -> None:
        """A transport waits for callers no more."""
        with self._guard:
            self._listening.pop(name, None)

    def may_change(self, name: TransportName, enabled: bool | None, endpoint: str | None) -> None:
        """Whether an operator may change this of a transport.

        Raises:
            CapabilityHidden: the profile leaves it out, or this build does not serve it.
            InvalidRequest: it cannot be closed, or its endpoint is not the operator's to say.
        """
        if name not in self._allowed:
            raise CapabilityHidden(operation=name, reason="this profile does not allow it")
        if name not in built_transports():
            hint = "`beetle transport list` lists the transports of this build"
            raise CapabilityHidden(operation=name, reason="this build does not serve it", hint=hint)
        if enabled is not None and name in OWN_PROCESS:
            raise InvalidRequest(
                reason=f"{name} cannot be closed: its callers open the store themselves",
                hint="the permissions of the store's file and folder decide which users may open it",
                path="$.args.enabled",
            )
        if endpoint is None:
            return
        if name not in CONFIGURABLE_ENDPOINTS:
            hint = "set the socket's path with --socket, or with [daemon] socket in the configuration"
            reason = f"the endpoint of {name} cannot be changed here"
            raise InvalidRequest(reason=reason, hint=hint, path="$.args.endpoint")

    def entries(self, connections: Connections, rows: Mapping[str, TransportRow]) -> tuple[TransportEntry, ...]:
        """Every transport; `rows` are what a transaction sees of what was changed."""
        open_now: Counter[str] = Counter()
        for (_, transport), count in connections.connected().items():
            open_now[transport] += count
        with self._guard:
            listening = dict(self._listening)
        return tuple(self._entry(name, rows.get(name), listening.get(name), open_now[name]) for name in TRANSPORT_NAMES)

    def _entry(
        self, name: TransportName, row: TransportRow | None, endpoint: str | None, connections: int
    ) -> TransportEntry:
        allowed, built = name in self._allowed, name in built_transports()
        from beetle.contracts.devices import TransportEntry

        return TransportEntry(
            name=name,
            allowed=allowed,
            built=built,
            enabled=allowed and built and (row is None or row.enabled),
            configurable=self._configurable(name),
            listening=endpoint is not None,
            endpoint=endpoint or (None if row is None else row.endpoint),
            connections=connections,
            updated_at=None if row is None else known_time(row.updated_at),
        )

    def _configurable(self, name: TransportName) -> tuple[Literal["enabled", "endpoint"], ...]:
        if name not in self._allowed & built_transports() or name in OWN_PROCESS:
            return ()
        return ("enabled", "endpoint") if name in CONFIGURABLE_ENDPOINTS else ("enabled",)
