"""The fingerprint of what a scope holds now."""

from __future__ import annotations

from beetle.runtime.continuity.gather import Chat, Gathering, Open, Where
from beetle.store.transaction import Reading

__all__ = ["Chat", "state_fingerprint"]


def state_fingerprint(
    tx: Reading, memory_space_id: str, chat: Chat | None = None, open_item: Open | None = None
) -> str:
    """SHA-256 (64 hex digits) of all that a memory space, or one chat of it, holds, whatever its visibility and state.

    Two stores that hold the same memory give the same, whatever their backends, row keys, ids and keys. Of private
    items only the number and kinds count, unless `open_item` gives their text. Background work, devices, idempotency
    keys, the event log and lifecycle steps are no part of it.

    Args:
        memory_space_id: such as `space:owner-default`; one that was never written to is empty.
        chat: only what belongs to this chat.
    """
    where = Where(memory_space_id, chat)
    return Gathering(tx, where, "everything", open_item, keep_turns=False).run().fingerprint()
