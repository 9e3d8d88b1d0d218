"""A note: `transcript.commit` of one turn with one message, whose ids and time the client makes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from beetle.contracts.codec import to_wire

NOTE_PREFIX = "notes"


def new_turn(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A turn with one message.

    Args:
        given: what is known besides: role (default user), speaker, at (default now), visibility, turn_id, message_id.
    """
    now = datetime.now(UTC)
    stamp = f"{now:%Y%m%dT%H%M%S}-{os.urandom(4).hex()}"
    message = {
        "message_id": given.get("message_id", f"m-{stamp}"),
        "role": given.get("role", "user"),
        "content": text,
        "visibility": given.get("visibility", "shared"),
    }
    if given.get("speaker") is not None:
        message["actor"] = {"speaker": given["speaker"]}
    return {
        "turn_id": given.get("turn_id", f"t-{stamp}"),
        "at": given.get("at", now.isoformat()),
        "messages": [message],
    }


def note_request(text: str, conversation: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `transcript.commit` for a note; `given` as `new_turn` takes it.

    Args:
        conversation: its id, or a conversation as the operation takes it; None is one for each day (UTC).
    """
    if conversation is None:
        conversation = f"{NOTE_PREFIX}-{datetime.now(UTC).date().isoformat()}"
    where = {"conversation_id": conversation} if isinstance(conversation, str) else to_wire(conversation)
    return {"conversation": where, "turns": [new_turn(text, given)]}
