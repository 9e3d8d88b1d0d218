"""What the store computes with, and is given: pure functions of the domain."""

from __future__ import annotations

from collections.abc import Callable

from beetle.named_tuple import NamedTuple
from beetle.store.event_log import ChainHash
from beetle.store.index_tail import MessageFields


class StoreFunctions(NamedTuple):
    """`chain_hash`: hash of one event-log row behind the previous hash. `message_fields`: what the recall index is to
    hold of a message.
    """

    chain_hash: ChainHash
    message_fields: MessageFields


class DomainFunctions(NamedTuple):
    """The same for any store: `message_fields` of its key."""

    chain_hash: ChainHash
    message_fields: Callable[[bytes], MessageFields]

    def of(self, key: bytes) -> StoreFunctions:
        """Those of the store with this key."""
        return StoreFunctions(self.chain_hash, self.message_fields(key))
