"""Snapshot files: snapshot.list, snapshot.verify and snapshot.restore."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from beetle.contracts.errors import BeetleError
from beetle.runtime.areas.snapshots import file_form, store_snapshots
from beetle.runtime.areas.snapshots.file_form import HEADER_BYTES, MAGIC, PAYLOAD_AT, Header
from tests.fuzz.mutation import changed_bytes, changed_value
from tests.fuzz.targets.archives import known_identity
from tests.fuzz.targets.prepared import fill
from tests.fuzz.targets.target import Memory, Target
from tests.store.conftest import store_of

PAGE = 4096
SNAPSHOT = "s-00000000000000f5"
MADE_BY_AN_INPUT = ("store_corrupt", "schema_mismatch")
"""Here it is the input that these errors blame."""


class Snapshots(Target):
    most_bytes = 1 << 20

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memory = Memory(folder, fill, before=known_identity)

    def __call__(self, data: bytes) -> None:
        file = Path(store_snapshots.path_of(store_of(self._memory.runtime), SNAPSHOT))
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_bytes(data)
        named = {"snapshot_id": SNAPSHOT}
        self._ask("snapshot.list", {})
        checked = self._ask("snapshot.verify", named)
        tried = self._ask("snapshot.restore", {**named, "dry_run": True, "other_store": True})
        valid = checked is not None and set(checked.reasons) <= {"other_store", "unsigned", "other_device"}
        assert tried is None or valid, f"a snapshot of which {checked.reasons} is told would be restored"
        if tried is not None:
            self._restore(named)

    def _restore(self, named: dict[str, Any]) -> None:
        """Whoever has the device's key can sign anything: what is in the rows is then his, and verify names it."""
        runtime = self._memory.runtime
        try:
            runtime.call("snapshot.restore", {**named, "other_store": True})
            runtime.call("memory.inspect", {})
            runtime.call("store.verify", {})
        except BeetleError as error:
            assert error.key in (*MADE_BY_AN_INPUT, "integrity_violation", "conflict"), f"{error.key}: {error.message}"
        self._memory.renew()

    def _ask(self, operation: str, arguments: dict[str, Any]) -> Any:
        return self._memory.ask(operation, arguments, allowed=MADE_BY_AN_INPUT)

    def seeds(self) -> list[bytes]:
        runtime = self._memory.runtime
        made = self._memory.call("snapshot.create", {"label": "a seed"}).snapshot.snapshot_id
        file = Path(store_snapshots.path_of(store_of(runtime), made))
        data = file.read_bytes()
        file.unlink()
        header, payload = _opened(data)
        return [self._closed({**header, "snapshot_id": SNAPSHOT}, payload)]

    def _closed(self, header: dict[str, Any], payload: bytes) -> bytes:
        """A file whose sums hold, signed by this device."""
        packed = zlib.compress(payload, 1)
        header |= {"payload_bytes": len(packed), "payload_sha256": hashlib.sha256(packed).hexdigest()}
        header.pop("signed", None)
        keys = self._memory.runtime._opened._opened.identity.keys()
        assert keys is not None
        try:
            return file_form.encode(store_snapshots.signed(msgspec.convert(header, Header), keys)) + packed
        except (msgspec.ValidationError, AssertionError):
            padded = (MAGIC + json.dumps(header, default=repr).encode()).ljust(HEADER_BYTES - 1)[: HEADER_BYTES - 1]
            return padded + b"\n" + hashlib.sha256(padded + b"\n").hexdigest().encode() + b"\n" + packed

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With bytes of its database flipped, or fields of its header changed, and signed anew."""
        if dice.random() < 0.1:
            return changed_bytes(dice, data)
        try:
            header, payload = _opened(data)
        except (ValueError, zlib.error):
            return changed_bytes(dice, data)
        if dice.random() < 0.2:
            header = changed_value(dice, header)
            return self._closed(header, payload) if isinstance(header, dict) else changed_bytes(dice, data)
        payload = _changed_pages(dice, payload)
        return self._closed({**header, "store_bytes": len(payload)}, payload)

    def renew(self) -> None:
        self._memory.renew()

    def close(self) -> None:
        self._memory.close()


def _opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    return json.loads(data[len(MAGIC) : HEADER_BYTES]), zlib.decompress(data[PAYLOAD_AT:])


def _changed_pages(dice: Random, payload: bytes) -> bytes:
    """The header of a database, of a page, or what stands in its cells."""
    out = bytearray(payload)
    for _ in range(dice.randint(1, 4)):
        if not out:
            return b"\0"
        match dice.randrange(5):
            case 0:
                out[dice.randrange(min(100, len(out)))] = dice.randrange(256)
            case 1:
                # The kind, the free block, the number of cells and the first of their places.
                at = dice.randrange(max(1, len(out) // PAGE)) * PAGE + dice.randrange(12)
                out[min(at, len(out) - 1)] = dice.choice((0, 1, 2, 5, 10, 13, 255, dice.randrange(256)))
            case 2:
                del out[dice.randrange(max(1, len(out) // PAGE)) * PAGE :]
            case 3:
                first, second = (dice.randrange(max(1, len(out) // PAGE)) * PAGE for _ in range(2))
                out[first : first + PAGE] = out[second : second + PAGE]
            case _:
                out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    return bytes(out)
