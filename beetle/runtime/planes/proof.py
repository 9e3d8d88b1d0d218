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
        return shown_digest(key, record, digest).hex(), content is None or content_digest(key, content) == digest

    return proven


def is_whole(key: bytes, row: Digested) -> bool:
    """Whether a message has content, and it is what was committed."""
    return row.content is not None and content_digest(key, row.content) == row.digest


def whole(key: bytes, rows: Iterable[SaidRow]) -> list[SaidRow]:
    """Those of many messages whose content is what was committed."""
    given = list(rows)
    contents = [row.content for row in given]
    digests = content_digests(key, [content or "" for content in contents])
    return [
        row
        for row, content, digest in zip(given, contents, digests, strict=True)
        if content is not None and digest == row.digest
    ]
