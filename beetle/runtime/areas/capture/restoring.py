"""Captured turns that an archive brings: their keys are taken, so that another delivery is told from a first one."""

from __future__ import annotations

from beetle.contracts.capture import AttestLevel, CaptureAttr
from beetle.contracts.codec import decode_json
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.runtime.areas.capture import signing
from beetle.runtime.areas.capture.turns import ATTR
from beetle.store import captures, evidence
from beetle.store.captures import NewCapture
from beetle.store.engine.transaction import Writing
from beetle.store.evidence import PreparedTurn


def restore(tx: Writing, space: int, conversation: int, turn: PreparedTurn) -> None:
    """Take a turn's key, unless another turn has it. Who says in an archive that a host signed it has to show that."""
    text = next((attr.value for attr in turn.attrs if attr.key == ATTR and attr.message is None), None)
    told = None if text is None else _told(text)
    if told is None or captures.is_taken(tx, space, told.host_session_id, told.host_turn_index):
        return
    host_key = _host_key(tx, space, told, turn)
    level: AttestLevel = "self_signed" if host_key is None else "signed_by_peer"
    new = NewCapture(
        told.host_session_id, told.host_turn_index, told.host_kind, told.host_version, told.agent_id,
        turn.messages[0].role, turn.at, level, host_key,
    )  # fmt: skip
    (key,) = evidence.turns_by_id(tx, conversation, [turn.turn_id])
    captures.add(tx, key, space, new)


def _told(text: str) -> CaptureAttr | None:
    try:
        return decode_json(text.encode(), CaptureAttr)
    except InvalidRequest:
        # Somebody's own attr of that name: the turn is evidence all the same.
        return None


def _host_key(tx: Writing, space: int, told: CaptureAttr, turn: PreparedTurn) -> int | None:
    """The enrolled key by which the turn is signed."""
    message = turn.messages[0]
    turn_is = (told.host_session_id, told.host_turn_index, message.role, message.content[: message.length])
    try:
        given = signing.checked(told.host_pubkey_b64, told.host_signature_b64, turn_is)
        return None if given is None else signing.host_key(tx, space, given, told.host_kind)
    except BeetleError:
        return None
