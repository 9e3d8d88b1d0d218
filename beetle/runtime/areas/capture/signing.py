"""Signatures of captured turns: Ed25519 by a host's enrolled key, verified strictly."""

from __future__ import annotations

import base64
import binascii

from beetle.contracts.capture import KEY_BYTES, SIGNATURE_BYTES, MemoryCaptureTurnRequest
from beetle.contracts.errors import HostPubkeyNotEnrolled, InvalidRequest, SignatureInvalid
from beetle.domain.ed25519 import is_sound_point
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.identity import fingerprint_of, is_signed
from beetle.store import host_keys
from beetle.store.engine.transaction import Reading

BOTH = "host_signature_b64 and host_pubkey_b64 are both present or both absent"


class Signed(NamedTuple):
    """A key, and the error that the signature by it raises; None for a good one."""

    public_key: bytes
    refused: InvalidRequest | SignatureInvalid | None


def canonical_bytes(session: str, index: int, role: str, content: str) -> bytes:
    """What a host signs: session, index in decimal, role and content, UTF-8, joined by one zero byte."""
    return b"\x00".join((session.encode(), str(index).encode(), role.encode(), content.encode()))


def signed(request: MemoryCaptureTurnRequest) -> Signed | None:
    """As `checked`, of a request."""
    turn = (request.host_session_id, request.host_turn_index, request.role, request.content)
    return checked(request.host_pubkey_b64, request.host_signature_b64, turn)


def checked(key: str | None, signature: str | None, turn: tuple[str, int, str, str]) -> Signed | None:
    """A key and whether the signature of a turn by it is good; None without both.

    Args:
        turn: session, index, role, content.

    Raises:
        InvalidRequest: only one of the two is there, or the key is none.
    """
    if key is None and signature is None:
        return None
    if key is None or signature is None:
        raise _invalid(BOTH, "host_pubkey_b64" if key is None else "host_signature_b64")
    public = public_key(key)
    try:
        return Signed(public, _problem(public, signature, canonical_bytes(*turn)))
    except InvalidRequest as refused:
        return Signed(public, refused)


def public_key(text: str, field: str = "host_pubkey_b64") -> bytes:
    """The 32 bytes of a key in base64.

    Raises:
        InvalidRequest: it is not padded base64, or of another size.
    """
    return _decoded(text, field, KEY_BYTES)


def check_point(public: bytes, field: str = "host_pubkey_b64") -> None:
    """Raises InvalidRequest where the bytes are no point of the curve, or one of small order."""
    if not is_sound_point(public):
        raise _invalid(f"{field} is no Ed25519 public key", field)


def host_key(tx: Reading, space: int, given: Signed, host_kind: str) -> int:
    """The number of the enrolled key that signed a turn of this host kind.

    Raises:
        HostPubkeyNotEnrolled: it is not enrolled, was revoked, or is of another host kind.
        InvalidRequest: the signature is none.
        SignatureInvalid: it is of other bytes, or by another key.
    """
    row = host_keys.by_key(tx, space, given.public_key)
    if row is None or row.revoked_at is not None or row.host_kind not in (None, host_kind):
        why = None if row is None else "revoked" if row.revoked_at is not None else "of another host kind"
        raise HostPubkeyNotEnrolled(
            fingerprint=fingerprint_of(given.public_key), code="HOST_PUBKEY_NOT_ENROLLED", reason=why
        )
    if given.refused is not None:
        raise given.refused
    return row.host_key


def _problem(public: bytes, signature: str, data: bytes) -> SignatureInvalid | None:
    check_point(public)
    made = _decoded(signature, "host_signature_b64", SIGNATURE_BYTES)
    if is_sound_point(made[:KEY_BYTES]) and is_signed(data, made, public):
        return None
    return SignatureInvalid(
        reason="the host's signature does not fit the turn",
        hint="sign session, index in decimal, role and content, joined by one zero byte: `beetle help capture`",
        code="INVALID_INPUT",
        problem="signature_verification_failed",
    )


def _decoded(text: str, field: str, size: int) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != size or base64.b64encode(data).decode() != text:
        raise _invalid(f"{field} is not {size} bytes in padded base64", field)
    return data


def _invalid(reason: str, field: str) -> InvalidRequest:
    hint = "give an Ed25519 key of 32 bytes and its signature of 64 bytes, each in padded base64, or neither"
    path = f"$.args.{field}"
    return InvalidRequest(reason=f"{reason} - at {path}", path=path, hint=hint, code="INVALID_INPUT")
