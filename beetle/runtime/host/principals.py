"""Who a peer of the Unix socket is: its credentials from the kernel, mapped by the configuration; and who a name is."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from beetle.contracts.capabilities import CAPABILITIES
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import OPERATOR_VIEWS, Caller
from beetle.runtime.host.config import Principal
from beetle.runtime.host.devices import NAME, Devices

OPERATOR_CAPABILITIES = frozenset(each.name for each in CAPABILITIES) | {"admin"}
"""All but transcript.raw and private.read, which only the configuration gives."""


class Peer(NamedTuple):
    """What the kernel says of the other end: its user, its groups (the first is its primary one), its process."""

    uid: int
    gids: tuple[int, ...]
    pid: int


class Principals:
    """The principals of a daemon. `replace` takes effect on the next request of connections that are open."""

    def __init__(self, own_uid: int, configured: Mapping[str, Principal], devices: Devices | None = None) -> None:
        self._own_uid = own_uid
        self._devices = devices
        self._guard = threading.Lock()
        self.replace(configured)

    def replace(self, configured: Mapping[str, Principal]) -> None:
        """Use another configuration from now on."""
        callers = {name: _caller(name, principal) for name, principal in configured.items()}
        by_uid = {p.uid: callers[name] for name, p in configured.items() if p.uid is not None}
        by_gid = {p.gid: callers[name] for name, p in configured.items() if p.gid is not None}
        with self._guard:
            self._by_uid, self._by_gid, self._by_name = by_uid, by_gid, callers
            self._nobodys = frozenset(n for n, p in configured.items() if p.uid is None and p.gid is None)

    def identify(self, peer: Peer) -> Caller:
        """The principal of a peer: a configured uid first, then the operator's own uids, then a configured gid."""
        with self._guard:
            by_uid, by_gid = self._by_uid, self._by_gid
        if peer.uid in by_uid:
            return by_uid[peer.uid]
        if peer.uid in (0, self._own_uid):
            return OPERATOR
        for gid in peer.gids:
            if gid in by_gid:
                return by_gid[gid]
        return Caller(f"uid:{peer.uid}", "unknown", frozenset(), (), "unix_socket")

    def act_as(self, peer: Caller, name: str) -> Caller | None:
        """The configured principal of that name, if `peer` is an operator who has all of its rights; else None.

        The private messages of an agent are its own principal's: an operator does not come by them as a principal that
        is somebody else's user, only as one that the configuration made for operators, without uid and gid.
        """
        with self._guard:
            wanted, made_for_it = self._by_name.get(name), name in self._nobodys
        if wanted is None or not peer.is_operator or wanted.is_operator:
            return None
        lesser = (
            wanted.capabilities <= peer.capabilities
            and set(wanted.views) <= set(peer.views)
            and peer.owner_id in (None, wanted.owner_id)
            and peer.agent_id in (None, wanted.agent_id)
        )
        sees_own = wanted.agent_id is not None and "model_context" in wanted.views
        return wanted if lesser and (made_for_it or not sees_own or peer.agent_id is not None) else None

    def named(self, name: str) -> Caller | None:
        """The configured principal of that name; None where the configuration has none."""
        with self._guard:
            return self._by_name.get(name)

    def by_name(self, name: str) -> Caller | None:
        """Who a name stands for, with the rights that it has now; None for who is no principal and no active device."""
        with self._guard:
            configured = self._by_name.get(name)
        if configured is not None:
            return configured
        if name == OPERATOR.name:
            return OPERATOR
        if self._devices is not None and name.startswith(NAME):
            return self._devices.by_id(name.removeprefix(NAME))
        return None


OPERATOR = Caller(
    name="operator",
    kind="operator",
    capabilities=OPERATOR_CAPABILITIES,
    views=OPERATOR_VIEWS,
    transport="unix_socket",
)


def _caller(name: str, principal: Principal) -> Caller:
    """A configured principal; one that is granted `admin` answers for the daemon, as its own uid does."""
    return Caller(
        name=name,
        kind="operator" if "admin" in principal.capabilities else "principal",
        capabilities=frozenset(principal.capabilities),
        views=principal.views,
        transport="unix_socket",
        owner_id=principal.owner_id,
        agent_id=principal.agent_id,
    )
