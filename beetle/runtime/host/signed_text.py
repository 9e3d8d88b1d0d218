"""One line of text that the device identity has signed: `MARK.BODY.SIGNATURE`.

BODY is the base64url of a JSON object with sorted keys, SIGNATURE the base64url of the Ed25519 signature over all that
stands before the second full stop. The mark is part of what is signed: a text of one kind is never taken for another.
Receipts have this form too; docs/store.md tells the fields.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from beetle.contracts.codec import check_values, from_plain, pack_json
from beetle.contracts.errors import InvalidRequest
from beetle.domain.digest import decode, encode
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.identity import Identity, Keys, fingerprint_of, is_signed
from beetle.store import private
from beetle.store.engine.transaction import Reading

T = TypeVar("T", bound=Struct)

HEAD, SNAPSHOT, ARCHIVE = "beetle-head-1", "beetle-snapshot-1", "beetle-archive-1"
MOST_CHARS = 2048
Fault = Literal["unsigned", "wrong_signature", "other_device", "former_device"]


class Statement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the device says with a signature. `store` and `rows` are null in an archive, which tells of neither.

    `digest` is hex: the hash of the event log's row number `rows` (a head), the SHA-256 of a snapshot's header without
    its signature, or that of all that stands before the signature in an archive. `device` and `key` are the fingerprint
    and the public key of the signer.
    """

    v: Literal[1]
    store: Annotated[str, Meta(max_length=64)] | None
    rows: Annotated[int, Meta(ge=0)] | None
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    device: str
    key: str


class Known(NamedTuple):
    """Public keys: this device's, where one is known, and those of the identities that the store had before."""

    own: bytes | None
    former: frozenset[bytes]

    def fault(self, key: bytes | None) -> Literal["other_device", "former_device"] | None:
        """What is wrong with a signature by this key, None when it is this device's."""
        if key == self.own:
            return None
        return "former_device" if key in self.former else "other_device"


class Signer(NamedTuple):
    """Whose signature something bears: what is wrong with it, None when it is this device's, and the signer's
    fingerprint where there is a signature that holds."""

    fault: Fault | None
    device: str | None


def sign(keys: Keys, mark: str, *, digest: str, store: str | None = None, rows: int | None = None) -> str:
    """The signed text of a statement."""
    body = Statement(v=1, store=store, rows=rows, digest=digest, device=keys.fingerprint, key=encode(keys.public))
    said = text_of(mark, body)
    return f"{said}.{encode(keys.sign(said.encode()))}"


def sign_digest(keys: Keys, mark: str, digest: str) -> str:
    """The signed text of a statement that tells of nothing but a digest."""
    return sign(keys, mark, digest=digest)


def read(text: str, mark: str) -> Statement | None:
    """The statement, None when it is malformed, of another mark, or not as the key in it has signed it."""
    parts = text.split(".")
    if len(text) > MOST_CHARS or len(parts) != 3 or parts[0] != mark:
        return None
    body, signature, key = body_of(parts[1], Statement), decode(parts[2]), None
    if body is not None:
        key = decode(body.key)
    if body is None or not signature or not key or body.device != fingerprint_of(key):
        return None
    return body if is_signed(f"{parts[0]}.{parts[1]}".encode(), signature, key) else None


def signer_of(text: str | None, mark: str, known: Known, *, digest: str) -> Signer:
    """Whose signature over a digest a text is.

    Args:
        known: as `known_keys` finds them.
    """
    if text is None:
        return Signer("unsigned", None)
    found = read(text, mark)
    if found is None or found.digest != digest:
        return Signer("wrong_signature", None)
    return Signer(known.fault(decode(found.key)), found.device)


def named_signer(text: str, mark: str) -> str | None:
    """The fingerprint that a text names, unchecked: it costs nothing to say."""
    body = _unchecked(text, mark)
    return None if body is None else body.device


def states(text: str | None, mark: str, *, rows: int, digest: str) -> bool:
    """Whether a text says this much, unchecked."""
    body = None if text is None else _unchecked(text, mark)
    return body is not None and (body.rows, body.digest) == (rows, digest)


def _unchecked(text: str, mark: str) -> Statement | None:
    parts = text.split(".")
    return body_of(parts[1], Statement) if len(parts) == 3 and parts[0] == mark else None


def known_keys(identity: Identity, tx: Reading) -> Known:
    """The public keys of this device and store: its own counts for more than what the store has written down of it."""
    keys = identity.keys()
    own = private.public_key(tx) if keys is None else keys.public
    former = (each.public_key for each in private.former_identities(tx))
    return Known(own, frozenset(each for each in former if each is not None))


def text_of(mark: str, body: Struct) -> str:
    """What is signed: the mark and the body."""
    return f"{mark}.{encode(pack_json(body, in_order=True))}"


def body_of(encoded: str, kind: type[T]) -> T | None:
    """The body, None for anything but the one spelling of it."""
    data = decode(encoded)
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data)
        check_values(found, "$")
        body = from_plain(found, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidRequest, RecursionError):
        return None
    return body if pack_json(body, in_order=True) == data else None
