"""Who is here, and as whom: connections, the devices that they proved to be, and the transports."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import Forbidden, Unauthorized
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.devices import Devices
from beetle.runtime.host.modes import RESTORED
from beetle.runtime.host.profile import Profile
from beetle.runtime.host.transports import TRANSPORT_UPDATED, Connection, Connections, Proof, Transports
from beetle.store.engine.store import Store
from beetle.store.event_log import Logged


class Subscriber(NamedTuple):
    """Who opened a subscription, and what had been proved for it."""

    caller: Caller
    proof: Proof | None


class Sessions:
    """What one runtime knows of its callers beyond the configuration."""

    def __init__(self, store: Store, profile: Profile, clock: Callable[[], int]) -> None:
        self.connections = Connections()
        self.transports = Transports(store, profile)
        self.devices = Devices(store, self.connections, clock)

    def identify(self, peer: Caller, auth: DeviceAuth | None, connection: Connection | None) -> Caller:
        """Whom a request is from: the device that it proves, or that its connection has proved; else `peer`.

        Raises:
            Unauthorized: a proof that holds no more, or never did.
        """
        caller = peer
        if auth is not None:
            caller = self.devices.prove(auth, peer.transport, connection)
        elif connection is not None and connection.proof is not None:
            caller = self.devices.still(connection.proof, peer.transport)
        if connection is not None:
            connection.principal = caller.name
        return caller

    def check(self, caller: Caller) -> None:
        """Whether there is such a caller, and the way that it came is open to it.

        Raises:
            Unauthorized: it is no principal here.
            Forbidden: an operator has closed the way.
        """
        if caller.kind == "unknown":
            raise Unauthorized(reason=f"{caller.name} is no principal of this daemon")
        self.transports.check(caller)

    def is_nobody(self, peer: Caller, connection: Connection) -> bool:
        """Whether nobody stands behind a connection now: no device that it has proved, and else no principal."""
        if connection.proof is None:
            return peer.kind == "unknown"
        return not self.devices.holds(connection.proof)

    def follows(self, holder: Subscriber, peer: Caller) -> bool:
        """Whether who opened a subscription has the same rights still; `peer` is whom the transport takes it for."""
        try:
            caller = peer if holder.proof is None else self.devices.still(holder.proof, peer.transport)
            self.check(caller)
        except (Unauthorized, Forbidden):
            return False
        return caller == holder.caller

    def committed(self, logged: list[Logged]) -> bool:
        """Have what was changed read anew; whether anybody's rights may have changed. Quick: on the writer's thread."""
        # A restore carries today's rights into the store that took the place of the other.
        restored = any(each.event.event == RESTORED for each in logged)
        devices = restored or any(each.event.topic == "device" for each in logged)
        transports = restored or any(each.event.event == TRANSPORT_UPDATED for each in logged)
        if devices:
            self.devices.changed()
        if transports:
            self.transports.changed()
        return devices or transports
