"""Captured turns whose keys are to be taken: an archive brings them, or a recovery finds them without their rows.

A taken key tells another delivery from a first one.
"""

from __future__ import annotations

from beetle.contracts.capture import AttestLevel, CaptureAttr
from beetle.contracts.codec import decode_json
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.capture import signing
from beetle.runtime.areas.capture.turns import ATTR
from beetle.store import captures, evidence_lifecycle
from beetle.store.captures import NewCapture
from beetle.store.engine.transaction import Writing
from beetle.store.evidence import PreparedTurn


class Said(NamedTuple):
    """What a captured turn says; `at` in microseconds."""

    role: str
    content: str
    at: int


def restore(tx: Writing, space: int, conversation: int, turn: PreparedTurn) -> None:
    """Take a turn's key, unless another turn has it. Who says in an archive that a host signed it has to show that."""
    text = next((attr.value for attr in turn.attrs if attr.key == ATTR and attr.message is None), None)
    told = None if text is None else delivery_of(text)
    if told is None or captures.is_taken(tx, space, told.host_session_id, told.host_turn_index):
        return
    message = turn.messages[0]
    (key,) = evidence_lifecycle.turns_by_id(tx, conversation, [turn.turn_id])
    take(tx, space, key, told, Said(message.role, message.content[: message.length], turn.at))


def take(tx: Writing, space: int, turn: int, told: CaptureAttr, said: Said) -> None:
    """Take the key of a turn. It is a host's own only where its signature says so."""
    host_key = _host_key(tx, space, told, said)
    level: AttestLevel = "self_signed" if host_key is None else "signed_by_peer"
    new = NewCapture(
        told.host_session_id, told.host_turn_index, told.host_kind, told.host_version, told.agent_id,
        said.role, said.at, level, host_key,
    )  # fmt: skip
    captures.add(tx, turn, space, new)


def delivery_of(text: str) -> CaptureAttr | None:
    """What an attr says of how its turn was delivered."""
    try:
        return decode_json(text.encode(), CaptureAttr)
    except InvalidRequest:
        # Somebody's own attr of that name: the turn is evidence all the same.
        return None


def _host_key(tx: Writing, space: int, told: CaptureAttr, said: Said) -> int | None:
    """The enrolled key by which the turn is signed."""
    turn_is = (told.host_session_id, told.host_turn_index, said.role, said.content)
    try:
        given = signing.checked(told.host_pubkey_b64, told.host_signature_b64, turn_is)
        return None if given is None else signing.host_key(tx, space, given, told.host_kind)
    except BeetleError:
        return None
