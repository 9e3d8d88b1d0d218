"""Which chat a request is about."""

from __future__ import annotations

from beetle.contracts.errors import Conflict, PrivacyDenied
from beetle.runtime.areas.evidence.alias import current_conversation
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.gathering import Chat
from beetle.store import evidence
from beetle.store.engine.transaction import Reading


def chat_of(invocation: Invocation, tx: Reading, chat_id: str) -> Chat:
    """The chat of that id in the scope's channel, with the conversation that it stands for.

    A scope that names the conversation of its own chat depends on no alias. A chat that stands for none would have one
    under its own id.

    Raises:
        Conflict: two conversations claim the chat.
        PrivacyDenied: nothing of its conversation is live, so that nothing shows whose it is.
    """
    scope = invocation.scope
    named = scope.conversation_id if chat_id == scope.chat_id else None
    asked = invocation._replace(scope=scope._replace(chat_id=chat_id, conversation_id=named))
    found = current_conversation(asked, tx, evidence.find_space(tx, invocation.space_id), None)
    if found.by == "untrusted":
        raise Conflict(
            reason=f"two conversations claim the chat {chat_id!r}, so it refers to neither",
            hint="name the conversation: a scope with this chat_id and a conversation_id",
            chat_id=chat_id,
        )
    if found.by == "withheld":
        raise PrivacyDenied(
            reason=f"the chat {chat_id!r} has no live turn, so its conversation cannot be trusted",
            hint="name the conversation: a scope with this chat_id and a conversation_id",
            chat_id=chat_id,
        )
    if found.ref is None:
        return Chat(scope.channel, named or chat_id, chat_id)
    return Chat(found.ref.channel_id, found.ref.conversation_id, chat_id)
