"""Writing chunks: the one place where a chunk is made, changed, linked, archived or restored, however it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from beetle.contracts.chunks import LINK_KINDS
from beetle.contracts.codec import from_us
from beetle.domain.chunks.linking import (
    CONTEXT_STRENGTH,
    FOLLOWS_MS,
    MOST_FOLLOWS,
    MOST_RELATED,
    Linkable,
    links_on_create,
)
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import (
    check,
    conversation_digest,
    digest_of,
    index_row,
    next_revision,
    put_links,
    tag_digests,
    unindex,
)
from beetle.store import chunk_links, chunks, recall_index
from beetle.store.chunks import BodyRow, ChunkRow, LinkRow, Neighbour
from beetle.store.engine.write_transaction import WriteTransaction

WINDOW = 256
"""Of each tag, among so many of the newest chunks those of other conversations are looked for: a long conversation that
uses a tag again and again costs no more with each chunk."""
STRENGTH_DIGITS = 4


class Given(NamedTuple):
    """A link as somebody gave it."""

    kind: str
    target: str
    strength: float


class Draft(NamedTuple):
    """A chunk before it is stored. Times in microseconds; without an id one is made, of the day it was created."""

    content: str
    type: str
    conversation_id: str
    tokens: int
    tags: tuple[str, ...]
    confidence: float
    source: str
    created_at: int
    links: tuple[Given, ...] = ()
    chunk_id: str | None = None
    extra: dict[str, Any] | None = None
    archived_at: int | None = None
    accesses: int = 0
    last_accessed: int | None = None


def body_of(content: str, tags: Sequence[str], extra: dict[str, Any] | None) -> BodyRow:
    """What a chunk says, as it is stored."""
    besides = json.dumps(extra, ensure_ascii=False, allow_nan=False) if extra else None
    return BodyRow(content, json.dumps(tags, ensure_ascii=False), besides)


def add(invocation: Invocation, tx: WriteTransaction, space: int, draft: Draft, *, link: bool) -> ChunkRow:
    """Store a chunk; with `link` it gets the links that are made on create, beside those given.

    Links to chunks that come later are written with `relink`, once they are there.
    """
    key = invocation.key
    row = ChunkRow(
        0, space, draft.chunk_id or _new_id(invocation, tx, space, draft.created_at), draft.conversation_id,
        draft.type, draft.tokens, draft.source, draft.confidence, draft.created_at, draft.archived_at,
        chunks.revision(tx, space) + 1, b"", body_of(draft.content, draft.tags, draft.extra), draft.accesses,
        draft.last_accessed, (),
    )  # fmt: skip
    made = _made(invocation, tx, row, draft.tags) if link else []
    row = row._replace(links=_joined(made, _resolved(tx, space, row.chunk_id, draft.links)))
    assert row.body is not None
    row = row._replace(digest=digest_of(key, row.body, row.links))
    tagged, where = tag_digests(key, space, draft.tags), conversation_digest(key, space, draft.conversation_id)
    row = row._replace(chunk=chunks.add(tx, row, tagged, where))
    chunk_links.replace(tx, row.chunk, row.links)
    if row.is_live:
        recall_index.add(tx, *index_row(key, row))
    return row


def relink(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, links: Sequence[Given]) -> ChunkRow:
    """Give a chunk these links in place of its own. Raises as `check`."""
    check(invocation.key, row)
    found = _joined((), _resolved(tx, row.space, row.chunk_id, links))
    return row if found == row.links else put_links(invocation.key, tx, row, found)


def change(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, now: ChunkRow) -> ChunkRow:
    """Make a chunk what `now` says, but for its links; the same row where nothing differs. Raises as `check`."""
    if now == row:
        return row
    key, body = invocation.key, now.body
    assert body is not None
    check(key, row)
    unindex(key, tx, row)
    if body != row.body or now.conversation_id != row.conversation_id:
        where = conversation_digest(key, row.space, now.conversation_id)
        before, after = (tag_digests(key, row.space, each.tags) for each in (row, now))
        chunks.change_body(tx, row.chunk, body, before, after, where)
    now = now._replace(revision=next_revision(tx, row), digest=digest_of(key, body, row.links))
    chunks.change(tx, now)
    if now.is_live:
        recall_index.add(tx, *index_row(key, now))
    return now


def given_of(links: Sequence[LinkRow]) -> tuple[Given, ...]:
    """Links as they would be given."""
    return tuple(Given(each.kind, each.name, each.strength) for each in links)


def _new_id(invocation: Invocation, tx: WriteTransaction, space: int, at: int) -> str:
    day = from_us(at).date().isoformat()
    while True:
        made = f"chunk-{day}-{invocation.shared.dependencies.ids(4).hex()}"
        if not chunks.has_id(tx, space, made):
            return made


def _made(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, tags: Sequence[str]) -> list[LinkRow]:
    """The links that every new chunk gets."""
    key, space, name = invocation.key, row.space, row.conversation_id
    since = row.created_at - FOLLOWS_MS * 1000
    near = chunks.followed(tx, space, name, since, row.created_at, MOST_FOLLOWS)
    where = conversation_digest(key, space, name)
    for tag in tag_digests(key, space, tags):
        near += chunks.sharing(tx, space, tag, where, WINDOW, MOST_RELATED)
    named = {_place(each): each for each in near}
    new = Linkable(row.chunk_id, name, row.created_at // 1000, frozenset(tags))
    found = links_on_create(new, map(_linkable, near))
    own = LinkRow("context_of", None, name, CONTEXT_STRENGTH)
    made = ((each.kind, named[each.target], each.strength) for each in found)
    return [own, *(LinkRow(kind, to.chunk, to.chunk_id, _rounded(strength)) for kind, to, strength in made)]


def _linkable(each: Neighbour) -> Linkable:
    return Linkable(_place(each), each.conversation_id, each.created_at // 1000, frozenset(each.tags))


def _place(each: Neighbour) -> str:
    # The rules order by name what was created at one moment: here the one stored last is the newest.
    return f"{2**63 - each.chunk:020d}"


def _resolved(tx: WriteTransaction, space: int, chunk_id: str, links: Sequence[Given]) -> list[LinkRow]:
    """Links with the rows that they lead to; one that leads to its own chunk is none."""
    others = [each for each in links if each.target != chunk_id]
    keys = chunks.keys_of(tx, space, (each.target for each in others)) if others else {}
    return [LinkRow(each.kind, keys.get(each.target), each.target, _rounded(each.strength)) for each in others]


def _joined(made: Sequence[LinkRow], given: Sequence[LinkRow]) -> tuple[LinkRow, ...]:
    """All of them, each kind and target once, in the order of the kinds."""
    found: dict[tuple[str, str], LinkRow] = {}
    for each in (*made, *given):
        found.setdefault((each.kind, each.name), each)
    return tuple(sorted(found.values(), key=lambda each: LINK_KINDS.index(each.kind)))


def _rounded(strength: float) -> float:
    # SQLite's JSON, by which links are read, has fifteen digits.
    return round(float(strength), STRENGTH_DIGITS)
