"""The functions of the domain that every store is given."""

from __future__ import annotations

from beetle.domain.chain import chain_hash
from beetle.store.engine.domain_functions import DomainFunctions


def _message_fields(content: str, speaker: str | None, at_us: int) -> tuple[str, str, str]:
    """As `evidence_fields`, which is loaded where a store has messages that wait for the recall index."""
    from beetle.domain.lexical import evidence_fields

    return evidence_fields(content, speaker, at_us)


DOMAIN_FUNCTIONS = DomainFunctions(chain_hash, _message_fields)
