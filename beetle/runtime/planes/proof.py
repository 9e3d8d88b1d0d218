"""Telling content that is what was committed from damaged content, by its digest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from beetle.domain.digest import content_digest, content_digests, shown_digest
from beetle.store.transcripts import Proof, SaidRow


class Digested(Protocol):
    """A record of a content and the digest that was committed with it."""

    @property
    def content(self) -> str | None: ...

    @property
    def digest(self) -> bytes | None: ...


def proof(key: bytes) -> Proof:
    """What a transcript is read with: digests as they are shown, and no content that is not what was committed."""

    def proven(record: tuple[int, int], digest: bytes, content: str | None) -> tuple[str, bool]:
        return shown_digest(key, record, digest).hex(), content is None or is_content(key, content, digest)

    return proven


def is_content(key: bytes, content: object, digest: bytes | None) -> bool:
    """Whether this was committed with the digest. In a damaged file it may be no text."""
    return isinstance(content, str) and content_digest(key, content) == digest


def is_whole(key: bytes, row: Digested) -> bool:
    """Whether a message has content, and it is what was committed."""
    return is_content(key, row.content, row.digest)


def whole(key: bytes, rows: Iterable[SaidRow]) -> list[SaidRow]:
    """Those of many messages whose content is what was committed."""
    given = list(rows)
    digests = content_digests(key, [row.content for row in given])
    return [row for row, digest in zip(given, digests, strict=True) if digest == row.digest]
