"""Devices: what proves one, and what a proof is worth from one request to the next.

A key is 32 random bytes, so one salted SHA-256 of it is enough, and it is computed for every proof: no key is held
in memory longer than the request that brought it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from beetle.contracts.capabilities import CAPABILITIES
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import Unauthorized
from beetle.runtime.caller import Caller
from beetle.runtime.kept import Kept
from beetle.runtime.transports import Line, Lines, Proof
from beetle.store.devices import DeviceRow, KeyDigest, all_devices, mark_seen
from beetle.store.store import Store
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

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
    key = base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode().rstrip("=")
    salt = os.urandom(SALT_BYTES)
    fingerprint = hashlib.sha256(PREFIX + key.encode()).hexdigest()[:FINGERPRINT_DIGITS]
    return key, KeyDigest(salt, _verifier(salt, key), fingerprint)


NOBODY = new_key()[1]
"""Stands for a device that is not known, so that it takes as long to refuse as a wrong key."""


class Devices:
    """The devices of one runtime."""

    def __init__(self, store: Store, lines: Lines, clock: Callable[[], int]) -> None:
        self._store = store
        self._lines = lines
        self._clock = clock
        self._kept = Kept(store, _by_id)
        self._guard = threading.Lock()
        self._seen: dict[tuple[str, int], int] = {}
        self._written: dict[tuple[str, int], float] = {}
        self.changed = self._kept.changed

    def prove(self, auth: DeviceAuth, transport: str, line: Line | None) -> Caller:
        """The device whose key this is; `line` remembers it for the connection's later requests.

        Raises:
            Unauthorized: no such device, another key (told alike), or the device may not be used now.
        """
        known = self._kept.get().get(auth.device_id)
        digest = NOBODY if known is None else known.row.digest
        right = hmac.compare_digest(_verifier(digest.salt, auth.app_key), digest.verifier)
        if known is None or not right:
            raise Unauthorized(
                reason="these are no credentials of a device that is known here",
                hint="check device_id and app_key; an operator makes another key with `beetle device rotate-key`",
            )
        if known.row.state != "active":
            raise Unauthorized(
                reason=f"the device {known.row.device_id!r} is {known.row.state}",
                hint="an operator sees it in `beetle device list`",
            )
        if line is not None:
            line.proof = Proof(known.row.device_id, known.row.generation, digest.verifier)
        return self._met(known, transport)

    def still(self, proof: Proof, transport: str) -> Caller:
        """The device that a connection proved to be, with the rights that it has now.

        Raises:
            Unauthorized: its key or its state has changed since.
        """
        known = self._kept.get().get(proof.device_id)
        if known is None or known.row.state != "active" or _proof(known.row) != proof:
            raise Unauthorized(
                reason="what this connection proved holds no more: the device's key or state has changed",
                hint="present the device's present credentials, or connect anew",
            )
        return self._met(known, transport)

    def by_id(self, device_id: str) -> Caller | None:
        """An active device as a caller, with its present rights; None when there is none."""
        known = self._kept.get().get(device_id)
        return None if known is None or known.row.state != "active" else known.caller

    def last_seen(self, row: DeviceRow) -> int | None:
        """When it last proved itself, in microseconds."""
        with self._guard:
            return self._seen.get((row.device_id, row.created_at), row.last_seen)

    def connections(self, row: DeviceRow) -> int:
        """Open connections that have proved its present key."""
        return self._lines.proofs()[_proof(row)]

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
            self._store.post(partial(_write_seen, row, now))
        return caller if caller.transport == transport else caller._replace(transport=transport)


def _write_seen(row: DeviceRow, at: int, tx: WriteTransaction) -> None:
    mark_seen(tx, row, at)


def _proof(row: DeviceRow) -> Proof:
    return Proof(row.device_id, row.generation, row.digest.verifier)


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
    )
