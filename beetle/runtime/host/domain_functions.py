"""The functions of the domain that every store is given."""

from __future__ import annotations

from functools import partial

from beetle.domain.chain import chain_hash
from beetle.domain.digest import content_digest
from beetle.store.engine.domain_functions import DomainFunctions
from beetle.store.index_tail import MessageFields
from beetle.store.indexed import Fields


def _message_fields(key: bytes, content: str, digest: bytes, speaker: str | None, at_us: int) -> Fields | None:
    # Loaded where a store has messages that wait for the recall index.
    from beetle.domain.lexical import evidence_fields

    return evidence_fields(content, speaker, at_us) if content_digest(key, content) == digest else None


def message_fields(key: bytes) -> MessageFields:
    """Of a store's key: what its recall index is to hold of a message."""
    return partial(_message_fields, key)


DOMAIN_FUNCTIONS = DomainFunctions(chain_hash, message_fields)
