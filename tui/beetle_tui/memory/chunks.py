"""Chunks: conversations or tags, the chunks of each, and a chunk's page with its links in both directions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, cast

from textual.binding import Binding, BindingType

from beetle.contracts.chunks import (
    Chunk,
    ChunkDeleteReport,
    ChunkGetReport,
    ChunkGroup,
    ChunkLink,
    ChunkListReport,
    ChunkStatsReport,
)
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.contracts.refs import format_ref, parse_ref
from beetle_tui.area import AreaScreen
from beetle_tui.erased import erasure_lines
from beetle_tui.keys import hinted
from beetle_tui.memory.section import NOT_SHOWN, Section, day, short
from beetle_tui.prose import Block, section
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.split import remark, value, written
from beetle_tui.table import Column, Table
from beetle_tui.text import count, moment

By = Literal["conversation", "tag", "archive"]
Row: TypeAlias = ChunkGroup | Chunk

ORDER: tuple[By, ...] = ("conversation", "tag", "archive")
GROUPS = {"conversation": ("conversation", "conversations"), "tag": ("tag", "tags")}
CHUNKS = ("chunk", "chunks")
SHOWN_WORDS = 300
"""Characters of a chunk that a question about it shows."""


class Chunks(Section[Row]):
    """Enter leads from a conversation or a tag to its chunks, and from a link to its other end; esc leads back."""

    TITLE = "Chunks"
    NOUN = CHUNKS
    EMPTY = "No chunk"
    HOW = (
        "Chunks are linked notes. Agents store them with `chunk.create` and `chunk.remember`; `beetle chunk "
        "import-tree` takes in a folder of JSON files: see `beetle help chunks`.\n\n"
        "{chunk-by} lists them by conversation or by tag, or those that are archived."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "by", "By", id="chunk-by", tooltip="by conversation, by tag, or what is archived"),
        Binding("x", "archive", "Archive", id="chunk-archive", tooltip="archive the chunk: recall leaves it out"),
        Binding("u", "restore", "Restore", id="chunk-restore", tooltip="take the chunk out of the archive"),
        Binding("d", "delete", "Delete", id="chunk-delete", tooltip="erase the chunk from the store for good"),
    ]

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._by: By = ORDER[0]
        self._group: str | None = None
        """The conversation or tag whose chunks are listed; None while the groups are."""
        self._trail: list[str] = []
        """Ids of the chunks that links led to; the last one is listed alone."""

    def columns(self) -> Sequence[Column[Row]]:
        """See Section."""
        return (
            Column("Type", lambda row: "" if isinstance(row, ChunkGroup) else row.type, 10, narrow=44),
            Column("Chunk", named_short),
            Column("Sure", lambda row: "" if isinstance(row, ChunkGroup) else f"{row.metadata.confidence:.0%}", 4,
                   right=True, narrow=80),
            Column("Links", lambda row: "" if isinstance(row, ChunkGroup) else str(len(row.strengths)), 5, right=True,
                   narrow=80),
            Column("Chunks", lambda row: f"{row.chunks:,}" if isinstance(row, ChunkGroup) else "", 6, right=True),
            Column("Created", lambda row: "" if isinstance(row, ChunkGroup) else day(row.metadata.created), 10,
                   narrow=70),
        )  # fmt: skip

    def key(self, row: Row) -> object:
        """See Section."""
        return ("group", row.name) if isinstance(row, ChunkGroup) else row.id

    def named(self, row: Row) -> str:
        """See Section."""
        return (row.name or "") if isinstance(row, ChunkGroup) else row.content or row.id

    def faint(self, row: Row) -> bool:
        """See Section."""
        return isinstance(row, Chunk) and row.archived and self._by != "archive"

    async def rows(self) -> CursorRows[Row]:
        """See Section."""
        if self._trail:
            self.listing.describe(CHUNKS, hinted(self.app, "a link led to it; {section-back} in the list goes back"))
            return CursorRows(partial(self._one, self._trail[-1]))
        if self._by == "archive":
            self.listing.describe(CHUNKS, "archived")
            return CursorRows(partial(self._page, {"state": "archived"}))
        if self._group is None:
            self.listing.describe(GROUPS[self._by], "")
            return CursorRows(partial(self._groups, self._by))
        self.listing.describe(CHUNKS, f"{self._by} {short(self._group, 40)}")
        wanted = {"conversation_id": self._group} if self._by == "conversation" else {"tags": (self._group,)}
        return CursorRows(partial(self._page, wanted))

    async def _groups(self, by: By, cursor: str | None, most: int) -> Batch[Row]:
        asked = {"by": by, "limit": most, "cursor": cursor}
        found = cast(ChunkStatsReport, await self.area.link.call("chunk.stats", asked))
        return Batch(found.groups, found.next_cursor)

    async def _page(self, wanted: dict[str, Any], cursor: str | None, most: int) -> Batch[Row]:
        asked = {**wanted, "limit": most, "cursor": cursor}
        found = cast(ChunkListReport, await self.area.link.call("chunk.list", asked))
        return Batch(found.chunks, found.next_cursor)

    async def _one(self, chunk_id: str, cursor: str | None, most: int) -> Batch[Row]:
        del cursor, most
        found = (await self._seen(chunk_id)).chunk
        return Batch(() if found is None else (found,), None, 0 if found is None else 1)

    async def _seen(self, chunk_id: str) -> ChunkGetReport:
        asked = {"id": chunk_id, "count_access": False}
        return cast(ChunkGetReport, await self.area.link.call("chunk.get", asked))

    async def look(self, row: Row) -> tuple[str, Iterable[Block]]:
        """See Section."""
        if isinstance(row, ChunkGroup):
            return row.name or NOT_SHOWN, remark(f"{count(row.chunks, 'chunk')}. Enter lists them.")
        seen = await self._seen(row.id)
        if seen.chunk is None:
            return row.id, remark("It is no longer there.")
        return title_of(seen.chunk), list(chunk_parts(seen.chunk, seen.linked_from))

    async def whole(self, row: Row) -> Any:
        """See Section."""
        return to_plain(row if isinstance(row, ChunkGroup) else await self._seen(row.id))

    def on_table_opened(self, event: Table.Opened | None = None) -> None:
        """To the chunks of the group, or to the page of the chunk."""
        row = self.row
        if event is None or not isinstance(row, ChunkGroup):
            return
        # The keys go to the detail of a chunk alone.
        event.prevent_default()
        if row.name is None:
            self.area.show_notice("its name is not shown in this view, so its chunks cannot be listed")
        else:
            self._group = row.name
            self.show_anew()

    def action_back(self) -> None:
        """From the page to the list, from what a link led to back along the links, from chunks to the groups."""
        if self.table.has_focus and self._trail:
            self._trail.pop()
            self.show_anew()
        elif self.table.has_focus and self._group is not None:
            left, self._group = self._group, None
            self.begin(partial(self._list_groups, left))
        super().action_back()

    async def _list_groups(self, left: str) -> None:
        await self.list_anew()
        rows = self.table.rows
        at = None if rows is None else rows.place_of(lambda row: isinstance(row, ChunkGroup) and row.name == left, 0)
        if at is not None:
            self.table.choose(at)

    def action_by(self) -> None:
        """The next order of the list."""
        self._by = ORDER[(ORDER.index(self._by) + 1) % len(ORDER)]
        self._group = None
        self._trail.clear()
        self.table.focus()
        self.show_anew()

    def show_ref(self, ref: str) -> None:
        """Show the chunk of a ref, alone in the list, until `esc` leads back."""
        named = parse_ref(ref)
        if named is not None:
            self.begin(partial(self._show, named.segments[0]))

    async def _show(self, chunk_id: str) -> None:
        try:
            found = (await self._seen(chunk_id)).chunk
        except BeetleError as error:
            self.area.show_notice(error)
            return
        if found is None:
            self.area.show_notice(f"there is no chunk {chunk_id}")
            return
        self._trail.append(chunk_id)
        await self.list_anew()
        self.detail.focus()

    def action_archive(self) -> None:
        """Archive the chunk, once it was said which."""
        self.with_chosen(partial(self._with_chunk, self._archive))

    def action_restore(self) -> None:
        """Take the chunk out of the archive, once it was said which."""
        self.with_chosen(partial(self._with_chunk, self._restore))

    def action_delete(self) -> None:
        """Erase the chunk, once it was said what goes."""
        self.with_chosen(partial(self._with_chunk, self._delete))

    async def _with_chunk(self, step: Callable[[Chunk], Awaitable[None]], row: Row) -> None:
        if isinstance(row, ChunkGroup):
            self.area.show_notice("choose a chunk: enter lists those of this row")
        else:
            await step(row)

    async def _archive(self, row: Chunk) -> None:
        if row.archived:
            self.area.show_notice(f"{row.id} is archived already")
            return
        lines = [*_naming(row), "Recall and lists leave it out from now on; it can be restored."]
        if await self.agreed("Archive the chunk?", lines):
            done = await self.changed("chunk.delete", {"id": row.id})
            if done is not None:
                self.area.show_notice(f"{cast(ChunkDeleteReport, done).outcome}: {row.id}")

    async def _restore(self, row: Chunk) -> None:
        if not row.archived:
            self.area.show_notice(f"{row.id} is not archived")
            return
        lines = [*_naming(row), "Recall and lists find it again."]
        if await self.agreed("Restore the chunk?", lines) and await self.changed("chunk.restore", {"id": row.id}):
            self.area.show_notice(f"restored: {row.id}")

    async def _delete(self, row: Chunk) -> None:
        lines = [
            *_naming(row),
            "Its words, tags and links go, and every link that leads to it. An archive that was exported keeps them.",
            "This cannot be undone.",
        ]
        if await self.agreed("Delete the chunk for good?", lines):
            done = await self.changed("chunk.delete", {"id": row.id, "permanent": True})
            if done is not None:
                await self.show_lines("Deleted", deleted_lines(cast(ChunkDeleteReport, done)))


def named_short(row: Row) -> str:
    """A row in one line: the name of a group, the beginning of a chunk."""
    if isinstance(row, ChunkGroup):
        return row.name or NOT_SHOWN
    return " ".join(short(row.content, SHOWN_WORDS).split())


def title_of(chunk: Chunk) -> str:
    """What a chunk is called."""
    return f"{chunk.id} ({chunk.type}{', archived' if chunk.archived else ''})"


def chunk_parts(chunk: Chunk, linked_from: Sequence[ChunkLink]) -> Iterator[Block]:
    """A chunk's page."""
    yield from remark(NOT_SHOWN) if chunk.content is None else written(chunk.content)
    yield from section(f"Links to ({len(chunk.strengths)})")
    for each in chunk.strengths:
        yield _link(each)
    if not chunk.strengths:
        yield from remark("It links to nothing.")
    # A relation leads both ways, and stands above.
    back = [each for each in linked_from if each.kind != "related_to"]
    yield from section(f"Linked from ({len(back)})")
    for each in back:
        yield _link(each)
    if not back:
        yield from remark("No chunk links to it.")
    metadata = chunk.metadata
    yield from section("About it")
    yield value("Conversation", metadata.conversation_id)
    if chunk.tags:
        yield value("Tags", ", ".join(chunk.tags))
    yield value("Confidence", f"{metadata.confidence:.0%}")
    yield value("Tokens", f"{chunk.tokens:,}")
    yield value("Source", metadata.source)
    yield value("Created", moment(metadata.created))
    read = "" if metadata.last_accessed is None else f", last {moment(metadata.last_accessed)}"
    yield value("Read", f"{count(metadata.access_count, 'time')}{read}")
    yield value("Ref", chunk.ref)


def deleted_lines(done: ChunkDeleteReport) -> list[str]:
    """What came of a deletion, with its receipt."""
    return [f"{done.outcome}: {done.id}", *erasure_lines(done)]


def _link(link: ChunkLink) -> Block:
    """A link; one to a chunk leads there. `context_of` names conversations, but for trees that others have written."""
    leads = link.kind != "context_of" or link.target.startswith("chunk-")
    target = format_ref("chunks", link.target) if leads else None
    return value(link.kind, f"{link.target}  {link.strength:.2f}", target)


def _naming(row: Chunk) -> list[str]:
    """The lines of a question that say which chunk it is about."""
    return [short(row.content, SHOWN_WORDS), f"({row.id}, {row.type}, of {short(row.metadata.conversation_id, 60)})"]
