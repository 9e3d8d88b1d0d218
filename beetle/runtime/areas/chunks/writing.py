"""chunk.create, chunk.remember, chunk.update, chunk.link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from beetle.contracts.chunk_reasoning import ChunkRememberReport, ChunkRememberRequest
from beetle.contracts.chunks import (
    LINK_KINDS,
    ChunkCreateRequest,
    ChunkLinkRequest,
    ChunkLinksInput,
    ChunkReport,
    ChunkUpdateRequest,
)
from beetle.contracts.errors import InvalidRequest, NotFound
from beetle.domain.chunks.kinds import detect_type
from beetle.domain.chunks.linking import given_strength
from beetle.domain.chunks.splitting import split
from beetle.domain.chunks.tokens import count_tokens
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chunks import words
from beetle.runtime.areas.chunks.keeping import Draft, Given, add, body_of, change, given_of, relink
from beetle.runtime.areas.chunks.showing import again, shown
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import extra_of
from beetle.store import chunks, evidence
from beetle.store.chunks import ChunkRow
from beetle.store.engine.write_transaction import WriteTransaction

LISTING = "`beetle chunk list` shows the chunks of this space"
LINKS_A_KIND = 64
"""Links of a kind that a chunk may have, made ones and given ones."""


def create(invocation: Invocation, request: ChunkCreateRequest) -> Apply:
    """One chunk, linked with what is there."""
    named = words.names("$.args", request.conversation_id, words.targets_of(request.links))
    secrets.refuse(secrets.fields(request, "$.args", "content", "tags"), names=named)
    draft = Draft(
        content=request.content,
        type=request.type or detect_type(request.content),
        conversation_id=request.conversation_id,
        tokens=request.tokens or max(1, count_tokens(request.content)),
        tags=request.tags,
        confidence=float(request.confidence),
        source=request.source,
        created_at=invocation.now,
        links=tuple(_given(request.links)),
    )

    def apply(tx: WriteTransaction) -> ChunkReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        invocation.shared.chunk_accesses.write(tx, space)
        row = add(invocation, tx, space, draft._replace(created_at=tx.now), link=request.link)
        tx.log(invocation.event("chunk", "created", chunk_id=row.chunk_id, revision=row.revision))
        return ChunkReport(chunk=shown(invocation, tx, row))

    return apply


def remember(invocation: Invocation, request: ChunkRememberRequest) -> Apply:
    """A text in chunks of its own order; all of them or none."""
    named = secrets.fields(request, "$.args", "conversation_id")
    secrets.refuse(secrets.fields(request, "$.args", "content", "tags"), names=named)
    drafts = [
        Draft(
            content=piece.content,
            type=request.type or piece.kind,
            conversation_id=request.conversation_id,
            tokens=max(1, piece.tokens),
            tags=request.tags,
            confidence=float(request.confidence),
            source="interaction",
            created_at=invocation.now,
        )
        for piece in split(request.content)
    ]

    def apply(tx: WriteTransaction) -> ChunkRememberReport:
        if not drafts:
            return ChunkRememberReport(success=False, error="the content is blank: there is nothing to remember")
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        invocation.shared.chunk_accesses.write(tx, space)
        made: list[str] = []
        for draft in drafts:
            row = add(invocation, tx, space, draft._replace(created_at=tx.now), link=True)
            tx.log(invocation.event("chunk", "created", chunk_id=row.chunk_id, revision=row.revision))
            made.append(row.chunk_id)
        return ChunkRememberReport(
            success=True,
            chunk_ids=tuple(made),
            total_tokens=sum(draft.tokens for draft in drafts),
            chunks_created=len(made),
        )

    return apply


def update(invocation: Invocation, request: ChunkUpdateRequest) -> Apply:
    """What is given of a chunk; where nothing differs nothing is written."""
    named = words.names("$.args", "", words.targets_of(request.links))
    secrets.refuse(secrets.fields(request, "$.args", "content", "tags"), names=named)
    counted = None if request.content is None else max(1, count_tokens(request.content))
    given = tuple(_given(request.links))

    def apply(tx: WriteTransaction) -> ChunkReport:
        row = existing(invocation, tx, request.id)
        invocation.shared.chunk_accesses.write(tx, row.space)
        now = change(invocation, tx, row, _updated(request, row, counted))
        replaced = {kind for kind in LINK_KINDS if getattr(request.links, kind) is not None}
        if replaced:
            kept = tuple(each for each in given_of(now.links) if each.kind not in replaced)
            now = relink(invocation, tx, now, _with_strengths(now, (*kept, *given)))
        if now != row:
            tx.log(invocation.event("chunk", "updated", chunk_id=row.chunk_id, revision=now.revision))
        return ChunkReport(chunk=shown(invocation, tx, _now(tx, row)))

    return apply


def _updated(request: ChunkUpdateRequest, row: ChunkRow, counted: int | None) -> ChunkRow:
    body = row.body
    if body is not None and (request.content is not None or request.tags is not None):
        content = body.content if request.content is None else request.content
        tags = row.tags if request.tags is None else request.tags
        body = body_of(content, tags, extra_of(row))
    confidence = row.confidence if request.confidence is None else float(request.confidence)
    tokens = request.tokens or counted or row.tokens
    return row._replace(body=body, type=request.type or row.type, tokens=tokens, confidence=confidence)


def _with_strengths(row: ChunkRow, links: tuple[Given, ...]) -> tuple[Given, ...]:
    """A link that is given again keeps the strength that it has."""
    known = {(each.kind, each.name): each.strength for each in row.links}
    return tuple(each._replace(strength=known.get((each.kind, each.target), each.strength)) for each in links)


def link(invocation: Invocation, request: ChunkLinkRequest) -> Apply:
    """One link of a chunk."""
    if not request.remove:
        secrets.refuse((), names=secrets.fields(request, "$.args", "target"))
    strength = given_strength(request.kind) if request.strength is None else float(request.strength)

    def apply(tx: WriteTransaction) -> ChunkReport:
        row = existing(invocation, tx, request.id)
        if request.target == row.chunk_id:
            raise InvalidRequest(reason="a chunk does not link to itself", path="$.args.target")
        invocation.shared.chunk_accesses.write(tx, row.space)
        if request.remove:
            changed = _removed(invocation, tx, row, request)
        else:
            changed = _put(invocation, tx, row, Given(request.kind, request.target, strength))
        if changed:
            event = "unlinked" if request.remove else "linked"
            tx.log(invocation.event("chunk", event, chunk_id=row.chunk_id, kind=request.kind))
        return ChunkReport(chunk=shown(invocation, tx, _now(tx, row)))

    return apply


def _put(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, given: Given) -> bool:
    if given.kind != "context_of":
        existing(invocation, tx, given.target, "$.args.target")
    kept = [each for each in given_of(row.links) if (each.kind, each.target) != given[:2]]
    if sum(each.kind == given.kind for each in kept) >= LINKS_A_KIND:
        raise InvalidRequest(
            reason=f"the chunk has {LINKS_A_KIND} links of this kind already", hint="remove one first",
            path="$.args.kind",
        )  # fmt: skip
    return relink(invocation, tx, row, (*kept, given)).revision != row.revision


def _removed(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, request: ChunkLinkRequest) -> bool:
    """A relation stands with one of the two, and is removed there."""
    changed = _dropped(invocation, tx, row, request.kind, request.target)
    other = chunks.find(tx, row.space, request.target) if request.kind == "related_to" else None
    if other is not None:
        changed = _dropped(invocation, tx, other, request.kind, row.chunk_id) or changed
    return changed


def _dropped(invocation: Invocation, tx: WriteTransaction, row: ChunkRow, kind: str, target: str) -> bool:
    kept = [each for each in given_of(row.links) if (each.kind, each.target) != (kind, target)]
    return len(kept) < len(row.links) and relink(invocation, tx, row, kept).revision != row.revision


def existing(invocation: Invocation, tx: WriteTransaction, chunk_id: str, path: str | None = None) -> ChunkRow:
    """The chunk of that id.

    Raises:
        NotFound: there is none.
    """
    found = chunks.find(tx, evidence.find_space(tx, invocation.space_id), chunk_id)
    if found is None:
        raise NotFound(kind="chunk", name=chunk_id, listing=LISTING, path=path)
    return found


def _given(links: ChunkLinksInput) -> Iterator[Given]:
    for kind in LINK_KINDS:
        for target in getattr(links, kind) or ():
            yield Given(kind, target, given_strength(kind))


def _now(tx: WriteTransaction, row: ChunkRow) -> ChunkRow:
    """A chunk as it was written, with its accesses."""
    return chunks.by_keys(tx, [row.chunk])[0]


HANDLERS: Mapping[str, Handler] = {
    "chunk.create": Write(create, again=again),
    "chunk.link": Write(link, again=again),
    "chunk.remember": Write(remember),
    "chunk.update": Write(update, again=again),
}
