"""Keeping one turn of another door than transcript.commit as evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from beetle.contracts.codec import to_us
from beetle.contracts.errors import Conflict, PayloadTooLarge
from beetle.contracts.turns import CanonicalTurnDelta, MessageDelta
from beetle.domain.digest import turn_digest
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import evidence as evidence_plane
from beetle.store import evidence, tool_observations
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.evidence import PreparedAttr, PreparedTurn
from beetle.store.tool_observations import ClaimedConversation


class Where(NamedTuple):
    """A conversation by its names."""

    channel_id: str
    conversation_id: str


def one_message(
    invocation: Invocation,
    message: MessageDelta,
    *,
    attrs: Mapping[str, str],
    views: tuple[str, ...],
    event_type: int | None = None,
) -> PreparedTurn:
    """A turn of one message, which bears the turn's id; `attrs` stand on the turn, and may be exported.

    Raises:
        PayloadTooLarge: content and tool calls, or the attrs, are more than one message may have.
    """
    assert message.at is not None
    turn = CanonicalTurnDelta(turn_id=message.message_id, at=message.at, messages=(message,))
    at = to_us(message.at)
    prepared = evidence_plane.prepared(invocation.key, message, at)._replace(event_type=event_type)
    most = invocation.shared.profile.budgets.message_content_bytes
    _check_size("the content with its tool calls", prepared.content, most)
    _check_size("the metadata", "".join(f"{key}{value}" for key, value in attrs.items()), most)
    kept = tuple(PreparedAttr(key, value, None, ",".join(views), True) for key, value in attrs.items())
    return PreparedTurn(turn.turn_id, at, turn_digest(invocation.key, turn), (prepared,), (), kept)


def _check_size(what: str, text: str, most: int) -> None:
    actual = len(text.encode())
    if actual > most:
        raise PayloadTooLarge(
            what=what, maximum=most, unit="bytes", limit="message_content_bytes", actual=actual, path="$.args"
        )


def keep(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    where: Where,
    turn: PreparedTurn,
    door: Literal["capture", "event"],
    event: str,
    **told: Any,
) -> int:
    """Write a turn that is not there, put it into the index and log it with what is `told` of it; its key.

    Raises:
        Conflict: a turn that came in by another door has its id.
    """
    conversation = evidence.ensure_conversation(tx, space, *where, tx.now)
    if evidence.known_turn(tx, conversation.conversation, turn.turn_id) is not None:
        raise Conflict(
            reason=f"the turn id {turn.turn_id!r} is taken in {where.channel_id}/{where.conversation_id}",
            hint="another door committed a turn of this id: give the session another id",
            turn_id=turn.turn_id,
        )
    conversation, written = evidence.add_turn(tx, conversation, turn, cast(Any, door), tx.now)
    evidence_plane.index(tx, space, conversation.conversation, written)
    evidence.grow_conversation(tx, conversation, [turn.at])
    names = [ClaimedConversation(*where)]
    tool_observations.tie(tx, space, conversation.conversation, [turn.turn_id], names)
    tx.log(
        invocation.event(
            "transcript", event, channel_id=where.channel_id, conversation_id=where.conversation_id,
            sequence=conversation.last_sequence, **told,
        )
    )  # fmt: skip
    key = evidence.known_turn(tx, conversation.conversation, turn.turn_id)
    assert key is not None
    return key.turn
