"""Keyed digests: HMAC-SHA-256 under the store's key, so that short content cannot be guessed from its digest; and
base64url, in which bytes are shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beetle.contracts.codec import pack, to_us
from beetle.contracts.tool_parts import is_tail, tail_of
from beetle.contracts.turns import CanonicalTurnDelta, MessageDelta
from beetle.mac import mac, macs


def keyed(key: bytes, purpose: str, data: bytes) -> bytes:
    """32 bytes; `purpose` keeps digests of different things apart. The key is the store's own: it is remembered."""
    return mac(key, purpose.encode() + b"\0", data)


def keyed_once(key: bytes, purpose: str, data: bytes) -> bytes:
    """As `keyed`, and nothing of the key is kept."""
    return hmac.digest(key, purpose.encode() + b"\0" + data, hashlib.sha256)


def content_digest(key: bytes, content: str) -> bytes:
    """Of one message's content: `keyed` for "message"."""
    return mac(key, b"message\0", content.encode())


def content_digests(key: bytes, contents: Iterable[str]) -> Iterator[bytes]:
    """`content_digest` of each of these, in their order."""
    return macs(key, b"message\0", map(str.encode, contents))


def shown_digest(key: bytes, record: Sequence[Any], digest: bytes) -> bytes:
    """The digest of a record as reports show it: salted, so that equal texts of two records have different ones.

    `record` names the record by something that no caller chooses: else a record with a guessed text could be made to
    take another's place.
    """
    return keyed(key, "shown", pack((tuple(record), digest)))


def turn_digest(key: bytes, turn: CanonicalTurnDelta) -> bytes:
    """Of turn_id, at, the messages (id, role, content, at, visibility, actor, tool calls and result) and the host refs;
    attrs are not covered.

    An absent `at` of a message is the turn's, so saying it again changes nothing.
    """
    at = to_us(turn.at)
    messages = [_message(m, at) for m in turn.messages]
    refs = [(r.kind, r.ref_id, r.relation, r.label, sorted(set(r.visibility))) for r in turn.host_refs]
    return parts_digest(key, turn.turn_id, at, messages, refs)


def parts_digest(key: bytes, turn_id: str, at: int, messages: Sequence[Any], refs: Sequence[Any]) -> bytes:
    """`turn_digest` of a turn's parts.

    Args:
        messages: `message_part` of each.
        refs: (kind, ref_id, relation, label, sorted views) of each.
    """
    return keyed(key, "turn", pack((turn_id, at, messages, refs)))


def request_digest(key: bytes, operation: str, scope: Any, arguments: Any) -> bytes:
    """Of a request, to tell a repeated one from another under the same idempotency key."""
    return keyed(key, "request", pack((operation, scope, arguments)))


def _message(message: MessageDelta, turn_at: int) -> tuple[Any, ...]:
    actor = message.actor
    who = None if actor is None else tuple(getattr(actor, name) for name in actor.__struct_fields__)
    at = turn_at if message.at is None else to_us(message.at)
    tail = tail_of(message.tool_calls, message.tool_result)
    said = (message.content + tail, len(message.content))
    return message_part((message.message_id, message.role), said, at, message.visibility, who)


def message_part(
    named: tuple[str, str], said: tuple[str | None, int], at: int, visibility: str, actor: Any
) -> tuple[Any, ...]:
    """A message as its turn's digest covers it.

    Args:
        named: its id and role.
        said: the text that is stored, and the length of the content in it; tool calls and results stand behind that.
        actor: its fields, or None where there is none.
    """
    text, length = said
    tail = "" if text is None else text[length:]
    if text is None or not tail or not is_tail(tail):
        return (*named, text, at, visibility, actor)
    return (*named, text[:length], at, visibility, actor, tail)


def encode(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes | None:
    """The bytes, or None for anything but the one spelling of them: no changed character is to pass unseen."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if encode(data) == text else None
