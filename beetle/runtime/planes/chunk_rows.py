"""Rows of chunks as the recall index, refs and digests know them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, Final, cast

from beetle.contracts.codec import pack
from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.refs import format_ref
from beetle.domain.digest import keyed
from beetle.domain.lexical import chunk_fields
from beetle.runtime.planes.plane import IndexRow
from beetle.store import chunk_links, chunks, recall_index
from beetle.store.chunks import BodyRow, ChunkRow, LinkRow
from beetle.store.columns import mapping
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.indexed import IndexedText
from beetle.store.recall_index import Entry

NAME: Final = "chunks"


def ref_of(chunk_id: str) -> str:
    """The ref of a chunk."""
    return format_ref(NAME, chunk_id)


def digest_of(key: bytes, body: BodyRow, links: Iterable[LinkRow]) -> bytes:
    """The keyed digest of all that stands beside a chunk's own row: what it says, and its links."""
    return keyed(key, "chunk", _said(body, links).encode())


def _said(body: BodyRow, links: Iterable[LinkRow]) -> str:
    given = [(each.kind, each.target, None if each.target is not None else each.name, each.strength) for each in links]
    return json.dumps([*body, given], ensure_ascii=False)


def indexed_text(row: ChunkRow) -> IndexedText:
    """What a chunk says and links, with the digest that proves it."""
    return IndexedText(row.chunk, "" if row.body is None else _said(row.body, row.links), row.digest)


def is_whole(key: bytes, text: IndexedText) -> bool:
    """Whether it is what was written."""
    return keyed(key, "chunk", text.content.encode()) == text.digest


def is_sound(key: bytes, row: ChunkRow) -> bool:
    """Whether a chunk says and links what was written."""
    return is_whole(key, indexed_text(row))


def extra_of(row: ChunkRow) -> dict[str, Any]:
    """What an imported file had besides, by its parts."""
    text = None if row.body is None else row.body.extra
    return {} if text is None else within_bounds(mapping(text))


def within_bounds(value: Any) -> Any:
    """Parsed JSON with each number as text that no answer can carry: earlier builds took such from a file."""
    if isinstance(value, dict):
        return {name: within_bounds(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [within_bounds(each) for each in cast("list[Any]", value)]
    if isinstance(value, float):
        return value if isfinite(value) else json.dumps(value)
    return value if not isinstance(value, int) or -(2**63) <= value < 2**64 else str(value)


def tag_digests(key: bytes, space: int, tags: Iterable[str]) -> list[int]:
    """The numbers by which chunks of a space are found by their tags, each once."""
    return [_number(keyed(key, "chunk tag", pack((space, tag)))) for tag in dict.fromkeys(tags)]


def conversation_digest(key: bytes, space: int | None, conversation_id: str) -> int:
    """The number that stands for a conversation beside tags and in the recall index."""
    return _number(keyed(key, "chunk conversation", pack((space, conversation_id))))


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big") >> 1


def index_row(key: bytes, row: ChunkRow) -> IndexRow:
    """The row that the index has to hold for a live chunk."""
    assert row.body is not None
    label = conversation_digest(key, row.space, row.conversation_id)
    fields = chunk_fields(content=row.body.content, tags=row.tags, at_us=row.created_at)
    return Entry(NAME, row.chunk, row.space, None, "shared", label), fields


def check(key: bytes, row: ChunkRow) -> None:
    """Before a chunk is changed.

    Raises:
        IntegrityViolation: it was changed by another program, so that nobody knows what the index holds of it.
    """
    if not is_sound(key, row):
        raise IntegrityViolation(
            reason=f"{ref_of(row.chunk_id)} is not what was written, and stays as it is",
            hint="run `beetle memory recover`, then delete the chunk for good, or restore a snapshot from before",
        )


def put_links(key: bytes, tx: WriteTransaction, row: ChunkRow, links: Sequence[LinkRow]) -> ChunkRow:
    """Write a chunk's links, and the chunk under a new revision."""
    assert row.body is not None
    chunk_links.replace(tx, row.chunk, links)
    made = row._replace(links=tuple(links), digest=digest_of(key, row.body, links), revision=next_revision(tx, row))
    chunks.change(tx, made)
    return made


def next_revision(tx: WriteTransaction, row: ChunkRow) -> int:
    """The revision of the next change in the chunk's space."""
    return chunks.revision(tx, row.space) + 1


def unindex(key: bytes, tx: WriteTransaction, row: ChunkRow) -> None:
    """Take a chunk out of the recall index, if it is in it."""
    if row.is_live:
        recall_index.remove(tx, *index_row(key, row))


def erase(key: bytes, tx: WriteTransaction, row: ChunkRow) -> None:
    """Erase a chunk with every link that leads to it.

    Raises:
        IntegrityViolation: see `check`; not once the index was made anew without it.
    """
    if not is_sound(key, row):
        if recall_index.holds(tx, Entry(NAME, row.chunk, row.space, None, "shared")):
            check(key, row)
        chunks.drop_tags(tx, row.chunk)
    else:
        unindex(key, tx, row)
    for source in chunks.by_keys(tx, chunk_links.sources(tx, row.chunk)):
        if is_sound(key, source):
            put_links(key, tx, source, [each for each in source.links if each.target != row.chunk])
        else:
            # What another program changed stays as it is, but for the links: nothing may name what is gone.
            chunk_links.replace(tx, source.chunk, [each for each in source.links if each.target != row.chunk])
    chunk_links.replace(tx, row.chunk, ())
    chunks.erase(tx, row, tag_digests(key, row.space, row.tags), next_revision(tx, row))
