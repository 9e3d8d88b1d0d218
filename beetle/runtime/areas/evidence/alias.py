"""Which conversation a call is in, when its request names none: what a chat id stands for, as far as it can be trusted.

A conversation claims a chat id when it bears it as its own id in that channel, or when someone committed to it under
that chat id. Two that claim it make it worthless: nothing is shown instead of the wrong thing.
"""

from __future__ import annotations

from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.errors import NotFound
from beetle.contracts.memory import CurrentBy
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.devices import is_still
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, transcripts
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction


class Current(NamedTuple):
    """The current conversation and by what it was found; both are None where there is none, or none to be trusted."""

    conversation: int | None
    ref: ConversationRef | None
    by: CurrentBy


def remember(invocation: Invocation, tx: WriteTransaction, space: int, conversation: int) -> None:
    """Keep what this caller last committed to. A device that was removed meanwhile leaves it to nobody."""
    if is_still(tx, invocation.caller):
        evidence.remember_conversation(tx, invocation.remembered_by(space), conversation)


def current_conversation(invocation: Invocation, tx: Reading, space: int | None, named: Conversation | None) -> Current:
    """The conversation that a request names, else the one its scope names, else the one its chat id stands for.

    What is named and not there is not replaced by another.
    """
    if space is None:
        return Current(None, None, "nothing")
    scope = invocation.scope
    if named is not None:
        return _named(tx, space, named.channel_id, named.conversation_id)
    if scope.conversation_id is not None:
        return _named(tx, space, scope.channel, scope.conversation_id)
    return _aliased(invocation, tx, space)


def existing_conversation(invocation: Invocation, tx: Reading, where: Conversation) -> tuple[int, int]:
    """The keys of the space and of a conversation that is named.

    Raises:
        NotFound: there is no such conversation.
    """
    space = evidence.find_space(tx, invocation.space_id)
    found = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
    if space is None or found is None:
        raise NotFound(
            kind="conversation",
            name=f"{where.channel_id}/{where.conversation_id}",
            listing="`beetle transcript conversations` lists the conversations",
        )
    return space, found.conversation


def _named(tx: Reading, space: int, channel: str, conversation_id: str) -> Current:
    row = evidence.find_conversation(tx, space, channel, conversation_id)
    if row is None:
        return Current(None, None, "nothing")
    return Current(row.conversation, _ref(channel, conversation_id), "named")


def _aliased(invocation: Invocation, tx: Reading, space: int) -> Current:
    """What the caller last committed to under its chat id, else the conversation that bears it as its own id."""
    channel, chat = invocation.scope.channel, invocation.scope.chat_id
    own = transcripts.remembered(tx, invocation.remembered_by(space))
    bearer = evidence.find_conversation(tx, space, channel, chat)
    if own is not None:
        found = Current(own[0], _ref(own[1], own[2]), "remembered")
        if bearer is not None and bearer.conversation != own[0]:
            return Current(None, None, "untrusted")
    elif bearer is None:
        return Current(None, None, "nothing")
    elif transcripts.claimed_elsewhere(tx, space, channel, chat, bearer.conversation):
        # Who never committed under this chat id has only the word of those who did.
        return Current(None, None, "untrusted")
    else:
        found = Current(bearer.conversation, _ref(channel, chat), "chat_id")
    assert found.conversation is not None
    return found if transcripts.has_live(tx, found.conversation) else Current(None, None, "withheld")


def _ref(channel: str, conversation_id: str) -> ConversationRef:
    return ConversationRef(channel_id=channel, conversation_id=conversation_id)
