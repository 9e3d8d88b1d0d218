"""What the store computes with, and is given: pure functions of the domain."""

from __future__ import annotations

from typing import NamedTuple

from beetle.store.event_log import ChainHash
from beetle.store.index_tail import MessageFields


class DomainFunctions(NamedTuple):
    """`chain_hash`: hash of one event-log row behind the previous hash. `message_fields`: what the recall index is to
    hold of a message.
    """

    chain_hash: ChainHash
    message_fields: MessageFields
