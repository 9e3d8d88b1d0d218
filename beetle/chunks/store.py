"""`ChunkStore`: chunks kept at a path."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack
from weakref import WeakValueDictionary

from beetle.chunk_tree.document import is_chunk_id, place_of
from beetle.chunk_tree.folder import TreeFolder, hindered
from beetle.chunks.arguments import as_list, in_utc, links_input
from beetle.chunks.asking import PAGE
from beetle.chunks.index import ChunkIndex
from beetle.chunks.records import Chunk, ChunkLinks, document_of, record_of
from beetle.chunks.tree import ImportedTree, SyncedTree
from beetle.chunks.views import LinkGraph, MetadataIndex, TagIndex
from beetle.contracts.chunk_reasoning import ChunkReasonReport, ChunkRecallReport, ChunkRememberReport
from beetle.contracts.chunks import Chunk as StoredChunk
from beetle.contracts.chunks import (
    ChunkDeleteReport,
    ChunkGetReport,
    ChunkGetRequest,
    ChunkListReport,
    ChunkReport,
    ChunkStatsReport,
)
from beetle.contracts.common import Report
from beetle.contracts.errors import NotFound

if TYPE_CHECKING:
    from beetle.open import Embedded

R = TypeVar("R", bound=Report)
DEFAULT_PATH: Final = "brain/memory"
_UPDATES: Final = ("content", "type", "tags", "confidence", "links")

_log = logging.getLogger("beetle.chunks")
_trees: WeakValueDictionary[tuple[str, str], SyncedTree] = WeakValueDictionary()
_finding = threading.Lock()


class CreateOptions(TypedDict, total=False):
    """Optional fields of a chunk that is created."""

    source: str
    link: bool


class ChunkStore:
    """Chunks in a folder: a Beetle store in `.beetle/`, and beside it one JSON file a chunk, index files, an archive.

    Several processes, and threads, may use one folder at once. An id that no chunk may have, or that none has, is
    answered with None or False; anything else that is not as it must be raises a `BeetleError`, with a hint. What
    is called is logged by the logger `beetle.chunks`, and so is what keeps a file from being written, which fails no
    change.
    """

    def __init__(self, base_path: str | os.PathLike[str] = DEFAULT_PATH, *, profile: str = "auto") -> None:
        """Open the folder, or make it. Chunk files that are there without a store are taken in.

        Args:
            profile: a profile's name, or `auto` to choose one that fits this machine.

        Raises:
            StoreLocked: a daemon serves this store, or another process keeps it for a minute.
            StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch, InvalidRequest.
        """
        self.base_path = Path(base_path)
        self.chunks_path = self.base_path / "chunks"
        self.index_path = self.base_path / "index"
        self.archive_path = self.base_path / "archive"
        self._tree = _tree_of(self.base_path, profile)
        with self._tree.lease.held():
            pass
        self.metadata_index: ChunkIndex = MetadataIndex(self)
        self.tag_index: ChunkIndex = TagIndex(self)
        self.link_graph: ChunkIndex = LinkGraph(self)
        _log.info("ChunkStore initialized at %s", base_path)

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the index files and give the store up now; the next call opens it again."""
        self._tree.lease.give_up()

    def create_chunk(
        self,
        content: str,
        chunk_type: str,
        conversation_id: str,
        tokens: int,
        tags: Iterable[str] | None = None,
        confidence: float = 0.7,
        links: ChunkLinks | Mapping[str, Iterable[str]] | None = None,
        **options: Unpack[CreateOptions],
    ) -> Chunk:
        """Create a chunk, and link it with its conversation, what came before and what shares a tag.

        Args:
            chunk_type: fact, preference, pattern, note or decision.
            tokens: its size, at least 1.
            confidence: how reliable it is, from 0 to 1.
            links: links of your own, as `ChunkLinks` or by their kind.
            options: `source`: interaction, import or derived; `link=False` leaves out all links but yours.
        """
        arguments = {
            "content": content,
            "type": str(chunk_type),
            "conversation_id": conversation_id,
            "tokens": tokens,
            "tags": as_list(tags, "tags"),
            "confidence": confidence,
            "links": links_input(links),
            **options,
        }
        chunk = self._change("chunk.create", arguments, ChunkReport).chunk
        _log.info("Created chunk %s (%d tokens)", chunk.id, chunk.tokens)
        return _record(chunk)

    def get_chunk(self, chunk_id: str) -> Chunk | None:
        """A chunk, which counts as an access; None where there is none, or it is archived. No file is written."""
        found = self._get(chunk_id, count_access=True)
        if found is not None:
            _log.debug("Read chunk %s", chunk_id)
        return found

    def peek_chunk(self, chunk_id: str) -> Chunk | None:
        """A chunk as `get_chunk` answers it, which does not count as an access."""
        return self._get(chunk_id, count_access=False)

    def update_chunk(self, chunk_id: str, **updates: Any) -> Chunk | None:
        """Change a chunk; None where there is none. This is no access.

        Args:
            updates: `content` (with `tokens`, or they are counted), `type`, `tags`, `confidence`, `links`, which
                replaces the links of all types, or of those that a mapping names. None, and others, are ignored.
        """
        if self.peek_chunk(chunk_id) is None:
            return None
        arguments = {name: updates[name] for name in _UPDATES if updates.get(name) is not None}
        if "content" in updates and "tokens" in updates:
            arguments["tokens"] = updates["tokens"]
        if "links" in arguments:
            arguments["links"] = links_input(arguments["links"])
        if "tags" in arguments:
            arguments["tags"] = as_list(arguments["tags"], "tags")
        if not arguments:
            return self.peek_chunk(chunk_id)
        chunk = self._change_if_there("chunk.update", {"id": chunk_id, **arguments}, ChunkReport)
        if chunk is None:
            return None
        _log.info("Updated chunk %s", chunk_id)
        return _record(chunk.chunk)

    def delete_chunk(self, chunk_id: str, permanent: bool = False) -> bool:
        """Archive a chunk, or delete it for good, also from the archive; whether there was one to do it to."""
        if not _is_valid(chunk_id):
            return False
        report = self._change_if_there("chunk.delete", {"id": chunk_id, "permanent": permanent}, ChunkDeleteReport)
        if report is None or report.outcome == "unchanged":
            return False
        _log.info("%s chunk %s", "Permanently deleted" if report.outcome == "deleted" else "Archived", chunk_id)
        return True

    def restore_chunk(self, chunk_id: str) -> Chunk | None:
        """Take a chunk out of the archive; None where it is not in there."""
        if not _is_valid(chunk_id):
            return None
        with self._tree.lease.held():
            stored = self._stored(chunk_id, count_access=False)
            if stored is None or not stored.archived:
                return None
            report = self._change_if_there("chunk.restore", {"id": chunk_id}, ChunkReport)
        if report is None:
            return None
        _log.info("Restored chunk %s", chunk_id)
        return _record(report.chunk)

    def link_chunk(
        self, chunk_id: str, kind: str, target: str, strength: float | None = None, *, remove: bool = False
    ) -> Chunk | None:
        """Link a chunk to another by hand, change the strength of a link, or remove it; None where there is no chunk.

        Args:
            kind: context_of, follows, related_to, supports or contradicts.
            target: id of a chunk; of context_of, a conversation's.
            strength: from 0 to 1; 0.5 when left out, of context_of 1.0.
        """
        if not _is_valid(chunk_id):
            return None
        arguments = {"id": chunk_id, "kind": kind, "target": target, "strength": strength, "remove": remove}
        report = self._change_if_there("chunk.link", arguments, ChunkReport)
        if report is None:
            return None
        _log.info("%s %s %s %s", "Unlinked" if remove else "Linked", chunk_id, kind, target)
        return _record(report.chunk)

    def list_chunks(
        self,
        conversation_id: str | None = None,
        tags: Iterable[str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> list[str]:
        """The ids of the chunks that match all that is given, in the order in which they were stored.

        Args:
            tags: all of which a chunk has.
            created_after, created_before: both ends included; a time without a zone is one of UTC.
        """
        return [each.id for each in self._list("live", conversation_id, tags, created_after, created_before)]

    def iter_chunks(
        self,
        conversation_id: str | None = None,
        tags: Iterable[str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> Iterator[Chunk]:
        """The chunks that `list_chunks` lists, read page by page. This is no access."""
        for each in self._list("live", conversation_id, tags, created_after, created_before):
            yield _record(each)

    def list_archived(self) -> list[str]:
        """The ids of archived chunks, in the order in which they were stored."""
        return [each.id for each in self._list("archived")]

    def get_stats(self) -> dict[str, Any]:
        """`total_chunks` and `by_type` without the archive, `archived_chunks`, `storage_path`."""
        report = self._ask("chunk.stats", {}, ChunkStatsReport)
        _log.debug("Counted chunks")
        return {
            "total_chunks": report.total_chunks,
            "archived_chunks": report.archived_chunks,
            "by_type": dict(report.by_type),
            "storage_path": str(self.base_path),
        }

    def remember_text(
        self,
        content: str,
        conversation_id: str,
        tags: Iterable[str] | None = None,
        confidence: float = 0.7,
        chunk_type: str | None = None,
    ) -> dict[str, Any]:
        """Split a text into chunks and store them, all or none; see `RememberOperation.remember`."""
        arguments = {
            "content": content,
            "conversation_id": conversation_id,
            "tags": as_list(tags, "tags"),
            "confidence": confidence,
            "type": None if chunk_type is None else str(chunk_type),
        }
        report = self._change("chunk.remember", arguments, ChunkRememberReport)
        _log.info("Created %d chunks (%d tokens)", report.chunks_created, report.total_tokens)
        result: dict[str, Any] = {
            "success": report.success,
            "chunk_ids": list(report.chunk_ids),
            "total_tokens": report.total_tokens,
            "chunks_created": report.chunks_created,
        }
        return result if report.error is None else {**result, "error": report.error}

    def recall_chunks(
        self, query: str, conversation_id: str | None = None, max_results: int = 5, min_confidence: float = 0.5
    ) -> ChunkRecallReport:
        """The chunks that fit a query best; see `RecallOperation.recall`."""
        arguments = {
            "query": query,
            "conversation_id": conversation_id or None,
            "max_results": max_results,
            "min_confidence": min_confidence,
        }
        report = self._ask("chunk.recall", arguments, ChunkRecallReport)
        _log.debug("Recalled %d chunks", len(report.source_chunks))
        return report

    def reason_chunks(self, query: str, context_chunks: list[str], analysis_type: str) -> ChunkReasonReport:
        """An analysis of chunks; see `ReasonOperation.reason`."""
        arguments = {"query": query, "context_chunks": context_chunks, "analysis_type": analysis_type}
        report = self._ask("chunk.reason", arguments, ChunkReasonReport)
        _log.debug("Analysed %d chunks", len(report.source_chunks))
        return report

    def import_tree(self, path: str | os.PathLike[str] | None = None) -> ImportedTree:
        """Take in the chunk files of this folder, as people have changed them, or of another one.

        A file that is no chunk is listed with its reason, and logged; the others are taken in. Chunks whose files are
        missing stay.

        Raises:
            BeetleError: a file of this folder cannot be brought up to what the store says, and would undo it.
        """
        with self._tree.lease.held() as opened:
            if path is None or Path(os.path.realpath(path)) == self._tree.base:
                self._tree.settle(opened)
            with TreeFolder(os.fspath(self.base_path if path is None else path)) as folder:
                done = self._tree.take_in(opened, folder)
            self._tree.catch_up(opened)
        _log.info("Imported %d chunks, updated %d, refused %d files", done.imported, done.updated, len(done.refused))
        return done

    def export_tree(self, path: str | os.PathLike[str] | None = None) -> int:
        """Write every chunk's file, and the index files, into another folder, or into this one where some are missing.

        Returns:
            How many chunks there are, archived ones included.

        Raises:
            StorageFull, StoreReadOnly, InvalidRequest: the folder does not take a file; those before are written.
        """
        place = os.fspath(self.base_path if path is None else path)
        with self._tree.lease.held() as opened:
            try:
                with TreeFolder(place, make=True) as folder:
                    count = self._tree.write_all(opened, folder)
            except OSError as error:
                raise hindered(error, place) from None
        _log.info("Exported %d chunks", count)
        return count

    def rebuild_indexes(self) -> None:
        """Write the index files anew.

        Raises:
            StorageFull, StoreReadOnly, InvalidRequest: the folder does not take one.
        """
        with self._tree.lease.held() as opened:
            try:
                self._tree.rebuild_indexes(opened)
            except OSError as error:
                raise hindered(error, os.fspath(self.base_path)) from None
        _log.info("Rebuilt the indexes of %s", self.base_path)

    def _ask(self, operation: str, arguments: object, kind: type[R]) -> R:
        with self._tree.lease.held() as opened:
            return _called(opened, operation, arguments, kind)

    def _change(self, operation: str, arguments: object, kind: type[R]) -> R:
        """Call a write, and bring the tree in step."""
        with self._tree.lease.held() as opened:
            report = _called(opened, operation, arguments, kind)
            self._tree.catch_up(opened, report.chunk if isinstance(report, ChunkReport) else None)
            return report

    def _change_if_there(self, operation: str, arguments: object, kind: type[R]) -> R | None:
        try:
            return self._change(operation, arguments, kind)
        except NotFound:
            return None

    def _get(self, chunk_id: str, *, count_access: bool) -> Chunk | None:
        if not _is_valid(chunk_id):
            return None
        stored = self._stored(chunk_id, count_access=count_access)
        return None if stored is None or stored.archived else _record(stored)

    def _stored(self, chunk_id: str, *, count_access: bool) -> StoredChunk | None:
        return self._ask("chunk.get", ChunkGetRequest(id=chunk_id, count_access=count_access), ChunkGetReport).chunk

    def _list(
        self,
        state: Literal["live", "archived", "all"],
        conversation_id: str | None = None,
        tags: Iterable[str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> Iterator[StoredChunk]:
        arguments = {
            "state": state,
            "conversation_id": conversation_id or None,
            "tags": as_list(tags, "tags"),
            "created_after": in_utc(created_after),
            "created_before": in_utc(created_before),
            "limit": PAGE,
        }
        while True:
            report = self._ask("chunk.list", arguments, ChunkListReport)
            yield from report.chunks
            if not report.has_more:
                break
            arguments["cursor"] = report.next_cursor
        _log.debug("Listed chunks")

    def _get_chunk_path(self, chunk_id: str) -> Path:
        # Callers of other stores of this layout ask for it by this name.
        stored = self._stored(chunk_id, count_access=False)
        return self.base_path / (place_of(document_of(stored)) if stored else f"chunks/{chunk_id}.json")


def init_storage(base_path: str | os.PathLike[str] = DEFAULT_PATH) -> ChunkStore:
    """Open the folder, or make it."""
    return ChunkStore(base_path)


def _tree_of(base: Path, profile: str) -> SyncedTree:
    """The one of this folder in this process, whatever names lead to it."""
    key = (os.path.realpath(base), profile)

    def open_store(path: str) -> Embedded:
        from beetle.open import open_in_turn

        return open_in_turn(path, profile)

    with _finding:
        tree = _trees.get(key)
        if tree is None:
            tree = _trees[key] = SyncedTree(Path(key[0]), open_store)
        return tree


def _called(opened: Embedded, operation: str, arguments: object, kind: type[R]) -> R:
    report = opened.call(operation, arguments, None, None, None).report
    assert isinstance(report, kind)
    return report


def _record(stored: StoredChunk) -> Chunk:
    return record_of(document_of(stored))


def _is_valid(chunk_id: object) -> bool:
    if is_chunk_id(chunk_id):
        return True
    _log.warning("Invalid chunk ID format: %.200r", chunk_id)
    return False
