"""Chunks of a tree as rows: what a file says becomes a chunk, or the one that is there becomes what it says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from beetle.chunk_tree.document import Bounds, ChunkDocument, is_chunk_id, parse_chunk, plain, with_relations
from beetle.contracts.chunks import LINK_KINDS, MOST_COUNT, MOST_LINKS
from beetle.domain.chunks.linking import given_strength
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chunks import words
from beetle.runtime.areas.chunks.keeping import Draft, Given, add, body_of, change, given_of, relink
from beetle.runtime.areas.chunks.showing import PARTS
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import check, extra_of, is_sound
from beetle.store import chunk_trees, chunks
from beetle.store.chunks import ChunkRow
from beetle.store.damaged_rows import is_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

Became = Literal["imported", "updated", "unchanged"]
Stays = Literal["deleted", "changed"]
"""Why a file is passed over: what became of its chunk since the import was decided, which is not undone."""


class _Wanted(NamedTuple):
    """What a chunk is to be: its row, its links where they change, and accesses that the file has counted more."""

    row: ChunkRow
    links: tuple[Given, ...] | None
    accesses: int

    def differs(self, row: ChunkRow) -> bool:
        return self.row != row or self.links is not None or self.accesses > 0


def holds_secret(document: ChunkDocument) -> bool:
    """Whether anything that a file says looks like a secret."""
    said = words.texts("", document.content, document.tags, _extra(document))
    targets = (target for kind in document.links.values() for target in kind)
    named = words.names("", document.conversation_id, targets, document.id)
    return secrets.place_of_one(said, names=named) is not None


def put(
    invocation: Invocation, tx: WriteTransaction, space: int, document: ChunkDocument, archived: bool, since: int
) -> Became | Stays:
    """Store what a file says, unless another operation has ended or changed its chunk behind the revision `since`; what
    became of it.

    Raises:
        IntegrityViolation: the chunk that is there was changed by another program; nothing was changed.
    """
    row = chunks.find(tx, space, document.id)
    if row is None:
        if chunks.is_removed_since(tx, space, document.id, since):
            return "deleted"
        back = chunk_trees.related_back(tx, 0, space, document.id)
        draft = _draft(document, _given(document, {}, back), tx.now if archived else None)
        add(invocation, tx, space, draft, link=False)
        return "imported"
    wanted = _wanted(invocation, tx, row, document, archived)
    if not wanted.differs(row):
        return "unchanged"
    if row.revision > since:
        return "changed"
    row = change(invocation, tx, row, wanted.row)
    if wanted.links is not None:
        relink(invocation, tx, row, wanted.links)
    if wanted.accesses:
        chunks.count_access(tx, row.identity, wanted.accesses, document.last_accessed or document.created)
    return "updated"


def state_of(invocation: Invocation, tx: Reading, space: int | None, document: ChunkDocument, archived: bool) -> Became:
    """What `put` would make of a file, as the chunks are that it would find. Raises as `put`."""
    row = chunks.find(tx, space, document.id)
    if row is None:
        return "imported"
    wanted = _wanted(invocation, tx, row, document, archived)
    if wanted.row != row or wanted.links is not None:
        check(invocation.key, row)
    return "updated" if wanted.differs(row) else "unchanged"


def relinked(invocation: Invocation, space: int, keys: Iterable[int], tx: WriteTransaction) -> list[ChunkRow]:
    """Let the links of chunks lead to those that came after them; a damaged chunk stays as it is.

    Where one was erased since its key was looked for, another space's chunk may have it: that one stays too.
    """
    rows = [row for row in chunks.by_keys(tx, keys) if row.space == space and is_sound(invocation.key, row)]
    return [relink(invocation, tx, row, given_of(row.links)) for row in rows]


def document_of(invocation: Invocation, tx: Reading, row: ChunkRow, related: Iterable[str]) -> ChunkDocument | None:
    """What a chunk's file says, with the ids of chunks that relate to it behind those that it relates to; None where
    another program has changed it, or a value of it is damaged, so that no import would take it.
    """
    if row.body is None or not is_sound(invocation.key, row) or not is_time(row.created_at):
        return None
    links: dict[str, list[str]] = {kind: [] for kind in LINK_KINDS}
    for each in row.links:
        if each.target is None or is_chunk_id(each.name):
            links[each.kind].append(each.name)
    extra = extra_of(row)
    ours, theirs, between = (extra.get(name, {}) for name in PARTS)
    accesses, last = invocation.shared.chunk_accesses.added_to(row, tx)
    document = ChunkDocument(
        id=row.chunk_id,
        content=row.body.content,
        tokens=row.tokens,
        type=row.type,  # type: ignore[arg-type]
        created=row.created_at,
        conversation_id=row.conversation_id,
        links={kind: tuple(dict.fromkeys(names)) for kind, names in links.items()},
        source=row.source,  # type: ignore[arg-type]
        confidence=row.confidence,
        access_count=min(accesses, MOST_COUNT),
        last_accessed=last if is_time(last) else None,
        tags=row.tags,
        extra=ours,
        extra_metadata=theirs,
        extra_links=between,
    )
    if not _is_taken(document):
        return None
    back = filter(is_chunk_id, related)
    return with_relations(document, back, Bounds.of(invocation.shared.profile.budgets.message_content_bytes))


def _is_taken(document: ChunkDocument) -> bool:
    """Whether an import takes each value, however many links there are."""
    links = {kind: names[:MOST_LINKS] for kind, names in document.links.items()}
    try:
        parse_chunk(plain(document._replace(links=links)))
    except ValueError:
        return False
    return True


def _draft(document: ChunkDocument, links: tuple[Given, ...], archived_at: int | None) -> Draft:
    last = document.last_accessed
    return Draft(
        document.content, document.type, document.conversation_id, document.tokens, document.tags,
        document.confidence, document.source, document.created, links, document.id, _extra(document), archived_at,
        document.access_count, document.created if last is None and document.access_count else last,
    )  # fmt: skip


def _extra(document: ChunkDocument) -> dict[str, Any] | None:
    parts = (document.extra, document.extra_metadata, document.extra_links)
    return {name: dict(part) for name, part in zip(PARTS, parts, strict=True)} if any(parts) else None


def _wanted(invocation: Invocation, tx: Reading, row: ChunkRow, document: ChunkDocument, archived: bool) -> _Wanted:
    archived_at = (row.archived_at or invocation.now) if archived else None
    now = row._replace(
        conversation_id=document.conversation_id,
        type=document.type,
        tokens=document.tokens,
        source=document.source,
        confidence=document.confidence,
        created_at=document.created,
        archived_at=archived_at,
        body=body_of(document.content, document.tags, _extra(document)),
    )
    strengths = {(each.kind, each.name): each.strength for each in row.links}
    back = chunk_trees.related_back(tx, row.chunk, row.space, row.chunk_id)
    given = _given(document, strengths, back)
    same = {(each.kind, each.target) for each in given} == strengths.keys()
    more = document.access_count - invocation.shared.chunk_accesses.added_to(row, tx)[0]
    return _Wanted(now, None if same else given, max(0, more))


def _given(document: ChunkDocument, strengths: dict[tuple[str, str], float], back: Iterable[str]) -> tuple[Given, ...]:
    """The links that a file gives, with the strength that each has already.

    A relation stands once: where the other chunk has it, this one has none.
    """
    there = set(back)
    found: dict[tuple[str, str], Given] = {}
    for kind in LINK_KINDS:
        for target in document.links.get(kind, ()):
            strength = strengths.get((kind, target))
            if target == document.id or (kind == "related_to" and target in there and strength is None):
                continue
            strength = given_strength(kind) if strength is None else strength
            found.setdefault((kind, target), Given(kind, target, strength))
    return tuple(found.values())
