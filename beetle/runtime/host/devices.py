"""Devices: what proves one, and what a proof is worth from one request to the next.

A key is 32 random bytes, so one salted SHA-256 of it is enough, and it is computed for every proof: no key is held
in memory longer than the request that brought it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable

from beetle.contracts.capabilities import CAPABILITIES
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import Unauthorized
from beetle.domain.digest import encode
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.cached_rows import CachedRows
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.transports import Connection, Connections, Proof
from beetle.store.devices import DeviceRow, KeyDigest, all_devices, find_device, mark_seen
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading

KEY_BYTES = 32
SALT_BYTES = 16
FINGERPRINT_DIGITS = 16
PREFIX = b"beetle app_key 1\0"
"""Keeps the fingerprint apart from every other digest of the same bytes."""
SEEN_SECONDS = 60.0
"""How often at most it is written down that a device was seen."""
GRANTABLE = frozenset(each.name for each in CAPABILITIES)
"""What a device may be granted: nothing of what stands apart in the catalog."""
NAME = "device:"
"""What the name of a device's principal begins with; no configured principal's holds a colon."""


class Known(NamedTuple):
    """A device and the caller that it is."""

    row: DeviceRow
    caller: Caller


def _verifier(salt: bytes, key: str) -> bytes:
    return hashlib.sha256(salt + key.encode(errors="surrogatepass")).digest()


def new_key() -> tuple[str, KeyDigest]:
    """A key, and what is kept of it."""
    key = encode(os.urandom(KEY_BYTES))
    salt = os.urandom(SALT_BYTES)
    fingerprint = hashlib.sha256(PREFIX + key.encode()).hexdigest()[:FINGERPRINT_DIGITS]
    return key, KeyDigest(salt, _verifier(salt, key), fingerprint)


NOBODY = new_key()[1]
"""Stands for a device that is not known, so that it takes as long to refuse as a wrong key."""


class Devices:
    """The devices of one runtime."""

    def __init__(self, store: Store, connections: Connections, clock: Callable[[], int]) -> None:
        self._store = store
        self._connections = connections
        self._clock = clock
        self._rows = CachedRows(store, _by_id)
        self._guard = threading.Lock()
        self._seen: dict[tuple[str, int], int] = {}
        self._written: dict[tuple[str, int], float] = {}
        self.changed = self._rows.changed

    def prove(self, auth: DeviceAuth, transport: str, connection: Connection | None) -> Caller:
        """The device whose key this is; `connection` remembers it for the connection's later requests.

        Raises:
            Unauthorized: no such device, another key (told alike), or the device may not be used now.
        """
        known = self._rows.get().get(auth.device_id)
        digest = NOBODY if known is None else known.row.digest
        right = hmac.compare_digest(_verifier(digest.salt, auth.app_key), digest.verifier)
        if known is None or not right:
            raise Unauthorized(
                reason="the credentials match no known device",
                hint="check device_id and app_key; an operator makes another key with `beetle device rotate-key`",
            )
        if known.row.state != "active":
            raise Unauthorized(
                reason=f"the device {known.row.device_id!r} is {known.row.state}",
                hint="an operator sees it in `beetle device list`",
            )
        if connection is not None:
            connection.proof = Proof(known.row.device_id, known.row.generation, digest.verifier)
        return self._met(known, transport)

    def still(self, proof: Proof, transport: str) -> Caller:
        """The device that a connection proved to be, with the rights that it has now.

        Raises:
            Unauthorized: its key or its state has changed since.
        """
        known = self._rows.get().get(proof.device_id)
        if known is None or known.row.state != "active" or _proof(known.row) != proof:
            raise Unauthorized(
                reason="this connection's credentials are no longer valid: the device's key or state has changed",
                hint="send the device's current credentials, or reconnect",
            )
        return self._met(known, transport)

    def holds(self, proof: Proof) -> bool:
        """Whether what a connection has proved is true still; no sign of life of the device."""
        known = self._rows.get().get(proof.device_id)
        return known is not None and known.row.state == "active" and _proof(known.row) == proof

    def by_id(self, device_id: str) -> Caller | None:
        """An active device as a caller, with its present rights; None when there is none."""
        known = self._rows.get().get(device_id)
        return None if known is None or known.row.state != "active" else known.caller

    def last_seen(self, row: DeviceRow) -> int | None:
        """When it last proved itself, in microseconds."""
        with self._guard:
            return self._seen.get((row.device_id, row.created_at), row.last_seen)

    def connections(self, row: DeviceRow) -> int:
        """Open connections that have proved its present key."""
        return self._connections.proofs()[_proof(row)]

    def _met(self, known: Known, transport: str) -> Caller:
        row, caller = known
        me, now = (row.device_id, row.created_at), self._clock()
        with self._guard:
            self._seen[me] = now
            due = time.monotonic() - self._written.get(me, float("-inf")) >= SEEN_SECONDS
            if due:
                self._written[me] = time.monotonic()
        if due:
            # Nobody waits for it: a store that cannot be written still knows its devices.
            self._store.post(lambda tx: mark_seen(tx, row, now))
        return caller if caller.transport == transport else caller._replace(transport=transport)


def _proof(row: DeviceRow) -> Proof:
    return Proof(row.device_id, row.generation, row.digest.verifier)


def is_still(tx: Reading, caller: Caller) -> bool:
    """Whether a device is the one that the caller proved to be; anybody else is."""
    if caller.kind != "device":
        return True
    row = find_device(tx, caller.name.removeprefix(NAME))
    return row is not None and row.created_at == caller.added_at


def _by_id(tx: Reading) -> dict[str, Known]:
    return {row.device_id: Known(row, _caller(row)) for row in all_devices(tx)}


def _caller(row: DeviceRow) -> Caller:
    """A device is bound to its owner and agent, answers for nothing, and sees what a model or a host may see."""
    return Caller(
        name=NAME + row.device_id,
        kind="device",
        capabilities=GRANTABLE.intersection(row.capabilities),
        views=("model_context", "host_ui"),
        transport="unix_socket",
        owner_id=row.owner_id,
        agent_id=row.agent_id,
        added_at=row.created_at,
    )
