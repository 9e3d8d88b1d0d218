"""Continuity snapshots and archives: memory.import and memory.import_space."""

from __future__ import annotations

import hashlib
import zlib
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from beetle.contracts.codec import decode_request, pack, unpack_any
from beetle.contracts.common import WireScope
from beetle.contracts.continuity_records import Body, Envelope
from beetle.contracts.errors import BeetleError
from beetle.domain.continuity import belongs_to, close_envelope, counts_of
from beetle.domain.fingerprint import fingerprint_of
from beetle.runtime.host import passphrase, signed_text
from beetle.runtime.host.identity import KeyFile
from tests.fuzz.mutation import changed_bytes, changed_value
from tests.fuzz.targets.prepared import SCOPE, fill
from tests.fuzz.targets.target import Memory, Target

WORDS = "open sesame"
IDENTITY = bytes(range(32))
"""The device's secret: a case that was signed in one run holds in the next."""


def known_identity(path: Path) -> None:
    """Put the device's secret beside a store that is to be made at `path`."""
    KeyFile(f"{path}.identity").write(IDENTITY)


class Archives(Target):
    most_bytes = 65_536

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._owners = count()
        # A real key of a passphrase takes a fifth of a second, for every input.
        self._slow, passphrase._key = passphrase._key, _quick_key
        self._memory = Memory(folder, fill, before=known_identity)

    def __call__(self, data: bytes) -> None:
        mode = "full_restore" if zlib.crc32(data) & 1 else "bootstrap_import"
        # A new owner's space is empty: nothing has to be cleared away for the next input.
        scope = WireScope(owner_id=f"owner-{next(self._owners)}", channel="local", chat_id="talk")
        terms: dict[str, Any] = {"mode": mode, "other_store": True, "discard_withheld": True, "passphrase": WORDS}
        chat = self._ask("memory.import", {"snapshot": data, "target_chat_id": "talk", **terms}, scope)
        space = None if chat else self._ask("memory.import_space", {"archive": data, **terms}, scope)
        for report, export in ((chat, "memory.export"), (space, "memory.export_space")):
            if report is not None:
                # Whatever was taken in can be taken out again.
                self._memory.ask(export, {"chat_id": "talk"} if export == "memory.export" else {}, scope)

    def _ask(self, operation: str, arguments: dict[str, Any], scope: WireScope) -> Any:
        return self._memory.ask(operation, arguments, scope)

    def seeds(self) -> list[bytes]:
        def taken_out(operation: str, **arguments: Any) -> Any:
            return self._memory.call(operation, arguments, SCOPE)

        sealed = {"include_private": True, "passphrase": WORDS}
        return [
            taken_out("memory.export", chat_id="talk").snapshot,
            taken_out("memory.export", chat_id="talk", **sealed).snapshot,
            taken_out("memory.export_space").archive,
            taken_out("memory.export_space", **sealed).archive,
        ]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With its checksum, counts, fingerprint, seal and signature made anew."""
        if dice.random() < 0.1:
            return changed_bytes(dice, data)
        try:
            envelope = decode_request(data, Envelope, "$")
            value = unpack_any(_unsealed(envelope))
            for _ in range(dice.randint(1, 3)):
                part = "records" if dice.random() < 0.9 else dice.choice(list(value))
                value[part] = changed_value(dice, value[part])
        except (BeetleError, ValueError, LookupError, TypeError):
            return changed_bytes(dice, data)
        return self._enclosed(envelope, _consistent(value))

    def _enclosed(self, like: Envelope, body: bytes) -> bytes:
        if like.sealing is not None:
            bound = belongs_to(True, like.kind, like.sealing)
            body = passphrase.seal(WORDS, like.sealing.salt, like.sealing.nonce, body, bound)
        keys = self._memory.runtime._opened._opened.identity.keys()
        assert keys is not None
        return close_envelope(
            like.kind, like.sealing, body, lambda digest: signed_text.sign_digest(keys, signed_text.ARCHIVE, digest)
        )

    def renew(self) -> None:
        self._memory.renew()

    def close(self) -> None:
        passphrase._key = self._slow
        self._memory.close()


def _quick_key(words: str, salt: bytes) -> bytes:
    return hashlib.scrypt(words.encode(), salt=salt, n=2, r=1, p=1, dklen=passphrase.KEY_BYTES)


def _unsealed(envelope: Envelope) -> bytes | memoryview:
    if envelope.sealing is None:
        return envelope.body
    bound = belongs_to(envelope.signed is not None, envelope.kind, envelope.sealing)
    body = passphrase.unseal(WORDS, envelope.sealing.salt, envelope.sealing.nonce, envelope.body, bound)
    return b"" if body is None else body


def _consistent(value: dict[str, Any]) -> bytes:
    """A body whose counts and fingerprint are those of its records, where these can be read."""
    try:
        packed = pack(value)
    except (OverflowError, ValueError, TypeError):
        return b"\x80"
    try:
        body = decode_request(packed, Body, "$")
        value["counts"] = counts_of(body.records)
        value["state_fingerprint"] = fingerprint_of(body.records)
    except (BeetleError, LookupError, ValueError):
        return packed
    return pack(value)
