"""Who is here, and as whom: connections, the devices that they proved to be, and the transports."""

from __future__ import annotations

from collections.abc import Callable

from beetle.contracts.envelope import Auth, DeviceAuth, PrincipalAuth
from beetle.contracts.errors import BeetleError, Forbidden, Unauthorized
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.devices import Devices
from beetle.runtime.host.modes import RESTORED
from beetle.runtime.host.profile import Profile
from beetle.runtime.host.transports import TRANSPORT_UPDATED, Connection, Connections, Proof, Transports
from beetle.store.engine.store import Store
from beetle.store.event_log import Logged

NOT_AS = "this caller may not act as the principal that it names"
NOT_AS_HINT = (
    "only an operator may, as a configured principal of lesser rights, on a connection that no other principal uses; "
    "see [principals.NAME] in beetle.toml"
)
"""The same words whether there is such a principal or not."""


class Subscriber(NamedTuple):
    """Who opened a subscription, what had been proved for it, and as whom an operator asked for it."""

    caller: Caller
    proof: Proof | None
    acting: str | None

    @classmethod
    def of(cls, caller: Caller, connection: Connection | None) -> Subscriber:
        """The one who asks over a connection now."""
        if connection is None:
            return cls(caller, None, None)
        return cls(caller, connection.proof, connection.acting)


class Sessions:
    """What one runtime knows of its callers beyond the configuration."""

    def __init__(self, store: Store, profile: Profile, clock: Callable[[], int]) -> None:
        self.connections = Connections()
        self.transports = Transports(store, profile)
        self.devices = Devices(store, self.connections, clock)
        self.act_as: Callable[[Caller, str], Caller | None] = lambda peer, name: None
        """Who an operator is that names a principal; set by the transport that knows the configuration."""

    def identify(self, peer: Caller, auth: Auth | None, connection: Connection | None) -> Caller:
        """Whom a request is from: the device that it proves, or that its connection has proved; the principal as which
        an operator asks, or has asked on this connection; else `peer`.

        Raises:
            Unauthorized: a proof that holds no more, or never did; a principal that the peer may not be.
        """
        caller = peer
        if isinstance(auth, PrincipalAuth) or (connection is not None and connection.acting is not None):
            caller = self._acting(peer, auth, connection)
        elif auth is not None:
            caller = self.devices.prove(auth, peer.transport, connection)
        elif connection is not None and connection.proof is not None:
            caller = self.devices.still(connection.proof, peer.transport)
        if connection is not None:
            connection.principal = caller.name
        return caller

    def _acting(self, peer: Caller, auth: Auth | None, connection: Connection | None) -> Caller:
        """The principal as which a connection acts from its first request that names one, until it is closed: whoever
        is handed the connection can become nobody else."""
        before = None if connection is None else connection.acting
        wanted = auth.principal if isinstance(auth, PrincipalAuth) else before
        bound = (before is not None and wanted != before) or (connection is not None and connection.proof is not None)
        caller = None if wanted is None else self.act_as(peer, wanted)
        if caller is None or bound or isinstance(auth, DeviceAuth):
            raise Unauthorized(reason=NOT_AS, hint=NOT_AS_HINT)
        if connection is not None:
            connection.acting = wanted
        return caller if caller.transport == peer.transport else caller._replace(transport=peer.transport)

    def takes_turns_as(self, peer: Caller, auth: Auth | None, connection: Connection | None) -> str:
        """The name as which a request takes turns before it is dispatched: whom it or its connection has proved to be
        from. What is merely claimed counts as nothing, and is refused when it is dispatched."""
        try:
            return self.identify(peer, auth, connection).name
        except BeetleError:
            return peer.name if connection is None else connection.principal or peer.name

    def check(self, caller: Caller) -> None:
        """Whether there is such a caller, and the way that it came is open to it.

        Raises:
            Unauthorized: it is no principal here.
            Forbidden: an operator has closed the way.
        """
        if caller.kind == "unknown":
            raise Unauthorized(reason=f"{caller.name} is not a principal of this daemon")
        self.transports.check(caller)

    def is_nobody(self, peer: Caller, connection: Connection) -> bool:
        """Whether nobody stands behind a connection now: no device that it has proved, and else no principal."""
        if connection.proof is None:
            return peer.kind == "unknown"
        return not self.devices.holds(connection.proof)

    def follows(self, holder: Subscriber, peer: Caller) -> bool:
        """Whether who opened a subscription has the same rights still; `peer` is whom the transport takes it for."""
        try:
            caller = self._still(holder, peer)
            if caller is not None:
                self.check(caller)
        except (Unauthorized, Forbidden):
            return False
        return caller == holder.caller

    def _still(self, holder: Subscriber, peer: Caller) -> Caller | None:
        if holder.acting is not None:
            return self.act_as(peer, holder.acting)
        return peer if holder.proof is None else self.devices.still(holder.proof, peer.transport)

    def committed(self, logged: list[Logged]) -> bool:
        """Have what was changed read anew; whether anybody's rights may have changed. Quick: on the writer's thread."""
        devices = transports = False
        for each in logged:
            event = each.event
            # A restore carries today's rights into the store that took the place of the other.
            restored = event.event == RESTORED
            devices = devices or restored or event.topic == "device"
            transports = transports or restored or event.event == TRANSPORT_UPDATED
        if devices:
            self.devices.changed()
        if transports:
            self.transports.changed()
        return devices or transports
