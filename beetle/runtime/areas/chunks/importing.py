"""chunk.import_tree: every file of a tree is read and judged first; then it is kept on disk, and written in slices.

Then the import is decided: a process that dies goes on with it when the store is opened again, behind the last slice
that it has written. Others write between two slices. What they do to a chunk since the import was decided stays: a file
that comes later does not undo it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from beetle.chunk_tree.archive import DamagedArchive, Limits, Member, members
from beetle.chunk_tree.document import DOUBLE, LARGEST, Bounds, ChunkDocument, Unreadable, read_chunk, standing_of
from beetle.contracts.chunk_trees import ChunkImportTreeReport, ChunkImportTreeRequest, RefusedFile
from beetle.contracts.codec import decode_request, pack, replace
from beetle.contracts.errors import BeetleError, Conflict, IntegrityViolation, InvalidRequest, StoreBudgetExceeded
from beetle.contracts.operations import BY_NAME
from beetle.domain.sensitive import FINDING_WORDS
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.chunks.tree_rows import Became, holds_secret, put, relinked, state_of
from beetle.runtime.host.caller import Caller, Scope
from beetle.runtime.pipeline.crowd import Crowd, Work
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Facilities, Invocation, log_apart
from beetle.store import chunk_imports, chunk_trees, continuity_write, evidence
from beetle.store.chunk_imports import BegunImport
from beetle.store.engine import kept_imports
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.exchange import Beside
from beetle.store.engine.progress import Progress
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event

T = TypeVar("T")
R = TypeVar("R")

STEPS = ("read", "write", "link")
SLICE_S = 0.006
"""How long a slice should hold the writer: as long as a handful of commits."""
LEAST_FILES, MOST_FILES = 8, 256
UNPACKED = 32
"""How many times the profile's import_bytes an archive may hold once it is uncompressed."""
MOST_ENTRIES = 1_000_000
STAYS = {
    "deleted": "its chunk was deleted for good after this import was decided, and stays deleted",
    "changed": "its chunk was changed after this import was decided, and stays as it is: import the file again",
}
DAMAGED = "the store's own chunk of this id is damaged: see `beetle verify`"
UNKNOWN = "what the store knows of it is damaged"
AGAIN = "it goes on when the store is opened again"
GROWTH = 2
"""Bytes that a store grows by a byte of a file, with its index."""


class TreeFile(NamedTuple):
    """A chunk's file that can be imported."""

    path: str
    document: ChunkDocument
    archived: bool


class _Entry(NamedTuple):
    """A file, and how many entries of the archive are dealt with once it is."""

    number: int
    file: TreeFile


class _Tally:
    """What became of the files; of those refused the first `most` are listed."""

    def __init__(self, most: int) -> None:
        self.counts = {"imported": 0, "updated": 0, "unchanged": 0}
        self.refused: list[Unreadable] = []
        self.refused_files = 0
        self._most = most

    def refuse(self, file: Unreadable) -> None:
        self.refused_files += 1
        if len(self.refused) < self._most:
            self.refused.append(file)

    @property
    def changed(self) -> bool:
        return bool(self.counts["imported"] or self.counts["updated"])

    def report(self, *, dry_run: bool = False) -> ChunkImportTreeReport:
        listed = tuple(RefusedFile(path=each.path, reason=each.reason) for each in self.refused)
        return ChunkImportTreeReport(
            imported=self.counts["imported"],
            updated=self.counts["updated"],
            unchanged=self.counts["unchanged"],
            refused_files=self.refused_files,
            refused=listed,
            dry_run=dry_run,
            profile_budget_applied=len(listed) < self.refused_files,
        )


def import_tree(invocation: Invocation, request: ChunkImportTreeRequest) -> ChunkImportTreeReport:
    """The chunks of a tree, all that can be read.

    Raises:
        InvalidRequest: it is no tar archive, is damaged, or holds no tree; nothing was changed.
        DeadlineExceeded: the deadline passed, or the client has gone, before the import was decided.
        StoreBudgetExceeded, StorageFull, StoreReadOnly: there is no room; nothing was changed.
        Conflict, IntegrityViolation: the space was emptied meanwhile, or what the store knows of the import was
            damaged; what was not written yet is not.
    """
    archive = request.archive
    assert archive is not None, "pieces are put together before"
    tally = _Tally(invocation.shared.profile.budgets.repair_issues)
    invocation.progress.plan(STEPS[:1] if request.dry_run else STEPS)
    files, unpacked, barred = _read(invocation, archive, tally, compare=request.dry_run)
    store = invocation.shared.store
    if files:
        with store.read() as tx:
            used = continuity_write.used_pages(tx) * PAGE_SIZE
        if used + GROWTH * unpacked > store.settings.store_bytes:
            raise StoreBudgetExceeded(maximum=store.settings.store_bytes)
    if request.dry_run or not files:
        return tally.report(dry_run=request.dry_run)
    scope = invocation.scope
    said = pack((invocation.caller.name, scope.owner_id, scope.agent_id))
    invocation.check("the import was begun")
    import_id = invocation.new_id("i")
    kept = kept_imports.keep(store.settings, import_id, said, archive)
    try:
        begun = _write(invocation, partial(_begin, invocation, import_id, files))
    except BeetleError:
        kept_imports.drop(kept)
        raise
    try:
        _write_all(invocation, begun, archive, files, barred, tally)
    except (Conflict, IntegrityViolation):
        _end(invocation, import_id, kept)
        raise
    report = tally.report()
    if tally.changed:
        counts = {**tally.counts, "refused": tally.refused_files}
        event = invocation.event("chunk", "tree_imported", **counts)
        report = replace(report, lifecycle=log_apart(invocation, event))
    _end(invocation, import_id, kept)
    return report


def _begin(invocation: Invocation, import_id: str, files: int, tx: WriteTransaction) -> BegunImport:
    return chunk_imports.begin(tx, import_id, evidence.ensure_space(tx, invocation.space_id, tx.now), files)


def _end(invocation: Invocation, import_id: str, kept: str | None) -> None:
    """Nothing is left to do. What the store knows goes last: by it an erasure asks for the file."""
    kept_imports.drop(kept)
    _write(invocation, partial(chunk_imports.end, import_id=import_id))


def _write(invocation: Invocation, apply: Callable[[WriteTransaction], R]) -> R:
    """What is decided has no deadline, and passes the ceiling, to which it was held before."""
    return invocation.shared.store.write(apply, grows=False, by=invocation.caller.name)


def finish_all(shared: Facilities, crowd: Crowd) -> list[str]:
    """Import what was decided and not finished when the store was open last; findings about what became of it."""
    store = shared.store
    findings = [_finish(shared, crowd, each) for each in kept_imports.left(store.settings)]
    try:
        findings += store.write(partial(_end_without_files, shared), grows=False)
    except BeetleError as error:
        findings.append(f"imports of chunks whose files are gone could not be ended: {error.key}")
    with store.read() as tx:
        left = (*chunk_imports.unfinished(tx), *chunk_imports.unreadable(tx))
        shared.left_imports.update(each.import_id for each in left)
    return findings


def _end_without_files(shared: Facilities, tx: WriteTransaction) -> list[str]:
    """End those whose files are gone: a process died before it could say so, or the store is an older copy, or somebody
    has taken the file away. Findings about what is not in for that."""
    findings: list[str] = []
    for each in chunk_imports.unfinished(tx):
        if not kept_imports.is_kept(shared.store.settings, each.import_id):
            chunk_imports.end(tx, each.import_id)
            if each.left and each.done != chunk_imports.CALLED_OFF:
                findings.append(_given_up(tx, each.import_id, "what it was given is gone", each.left))
    for one in chunk_imports.unreadable(tx):
        if not kept_imports.is_kept(shared.store.settings, one.import_id):
            chunk_imports.end_unreadable(tx, one)
            findings.append(_given_up(tx, one.import_id, UNKNOWN, None))
    return findings


def _finish(shared: Facilities, crowd: Crowd, kept: Beside) -> str:
    try:
        try:
            with shared.store.read() as tx:
                begun = chunk_imports.find(tx, kept.id)
        except IntegrityViolation:
            return _give_up(shared, kept, UNKNOWN, None)
        if begun is None or begun.done == chunk_imports.CALLED_OFF:
            kept_imports.drop(kept.path)
            return f"import {kept.id} of chunks, which the store knows nothing of or which was called off, is dropped"
        try:
            left = _go_on(shared, crowd, begun, kept.path)
        except (IntegrityViolation, InvalidRequest):
            return _give_up(shared, kept, "what it was given is damaged or cannot be read", begun.left)
        except Conflict:
            return _give_up(shared, kept, "its space was emptied", None)
    except BeetleError as error:
        return f"import {kept.id} of chunks, which was begun, could not be finished: {error.key}; {AGAIN}"
    missing = f"; {left:,} of its files can no longer be read and are not in" if left else ""
    return f"import {kept.id} of chunks, which was begun, is finished now{missing}"


def _go_on(shared: Facilities, crowd: Crowd, begun: BegunImport, path: str) -> int:
    """Import the rest of what a file holds; how many files could not be read any more.

    Raises:
        IntegrityViolation, InvalidRequest: the file is damaged; nothing more was imported.
        BeetleError: as of `_write_all`.
    """
    kept = kept_imports.read(path)
    name, owner_id, agent_id = decode_request(kept.said, tuple[str, str, str], "$.said")
    invocation = _on_behalf(shared, crowd, name, owner_id, agent_id)
    with shared.store.read() as tx:
        if evidence.find_space(tx, invocation.space_id) != begun.space:
            raise IntegrityViolation(reason="an import of chunks is of another space than the store says")
    tally = _Tally(0)
    files, _, barred = _read(invocation, kept.data, tally, compare=False)
    _write_all(invocation, begun, kept.data, files, barred, tally)
    with shared.store.read() as tx:
        now = chunk_imports.find(tx, begun.import_id)
    log_apart(invocation, invocation.event("chunk", "tree_import_finished", **tally.counts))
    _end(invocation, begun.import_id, path)
    return 0 if now is None else now.left


def _give_up(shared: Facilities, kept: Beside, why: str, left: int | None) -> str:
    """End what no later opening could finish either: its file may hold what is to be erased. The finding about it.

    Raises:
        BeetleError: it could not be ended; the next opening does.
    """

    def ended(tx: WriteTransaction) -> str:
        for one in chunk_imports.unreadable(tx):
            if one.import_id == kept.id:
                chunk_imports.end_unreadable(tx, one)
        chunk_imports.end(tx, kept.id)
        return _given_up(tx, kept.id, why, left)

    kept_imports.drop(kept.path)
    return shared.store.write(ended, grows=False)


def _given_up(tx: WriteTransaction, import_id: str, why: str, left: int | None) -> str:
    """Log that an import is ended with some of its files not in, None for nobody knows how many; the finding."""
    told = {} if left is None else {"files": left}
    tx.log(Event("chunk", "tree_import_given_up", "chunk.import_tree", "daemon", None, {"import": import_id, **told}))
    rest = "the rest of its files, nobody knows how many, are" if left is None else f"{left:,} of its files are"
    return f"import {import_id} of chunks, which was begun, is given up: {why}; {rest} not in: import them again"


def _read(invocation: Invocation, archive: bytes, tally: _Tally, *, compare: bool) -> tuple[int, int, set[str]]:
    """Judge every file: how many can be imported, how long they are in all, and the ids of those with a secret.

    With `compare` what would become of each is counted.
    """
    progress, number, unpacked, entries = invocation.progress, 0, 0, 0
    barred: set[str] = set()
    progress.step("read")
    budgets = invocation.shared.profile.budgets
    try:
        look = partial(invocation.check, "all files were read; nothing was changed")
        for file in _files(archive, budgets.message_content_bytes, budgets.import_bytes, look):
            entries += 1
            if isinstance(file, Unreadable):
                tally.refuse(file)
            elif file is not None and holds_secret(file.document):
                barred.add(file.document.id)
                tally.refuse(Unreadable(file.path, f"it {FINDING_WORDS['secret']}"))
            elif file is not None:
                number += 1
                unpacked += len(file.document.content)
                if compare:
                    _compare(invocation, file, tally)
            progress.at(number)
    except DamagedArchive as error:
        raise InvalidRequest(
            reason=f"the archive cannot be read: {error} - at $.args.archive",
            hint="pack the folder that holds chunks/ and archive/ with tar; nothing was changed",
            path="$.args.archive",
        ) from None
    if entries and not number and not tally.refused_files:
        raise InvalidRequest(
            reason="the archive holds neither chunks/ nor archive/ at its top - at $.args.archive",
            hint="pack what is in the folder, such as with tar -C brain/memory -czf tree.tar.gz .",
            path="$.args.archive",
        )
    return number, unpacked, barred


def _compare(invocation: Invocation, file: TreeFile, tally: _Tally) -> None:
    with invocation.shared.store.read(by=invocation.caller.name) as tx:
        space = evidence.find_space(tx, invocation.space_id)
        try:
            tally.counts[state_of(invocation, tx, space, file.document, file.archived)] += 1
        except IntegrityViolation:
            tally.refuse(Unreadable(file.path, DAMAGED))


def _files(
    archive: bytes, content_bytes: int, import_bytes: int, look: Callable[[], None]
) -> Iterator[TreeFile | Unreadable | None]:
    """Each file as what it is; None of those that are no chunk's. `look` is called at each header of the archive.

    Raises:
        DamagedArchive: see `members`.
    """
    most = min(LARGEST, Bounds.of(content_bytes))
    seen: set[str] = set()
    for member in members(archive, Limits(most.file, UNPACKED * import_bytes, MOST_ENTRIES), look):
        yield member if isinstance(member, Unreadable) else _file(member, content_bytes, most, seen)


def _file(member: Member, content_bytes: int, most: Bounds, seen: set[str]) -> TreeFile | Unreadable | None:
    standing = standing_of(member.path)
    if standing is None or isinstance(standing, Unreadable):
        return standing
    document = read_chunk(member.data, member.path, most)
    if isinstance(document, Unreadable):
        return document
    if len(document.content) * 4 > content_bytes and len(document.content.encode()) > content_bytes:
        return Unreadable(member.path, f"content is over this profile's limit of {content_bytes} bytes")
    if document.id in seen:
        return Unreadable(member.path, DOUBLE)
    seen.add(document.id)
    return TreeFile(member.path, document, standing == "archived")


def _write_all(
    invocation: Invocation, begun: BegunImport, archive: bytes, files: int, barred: set[str], tally: _Tally
) -> None:
    """All files that are not written yet in slices, then the links that lead to chunks which came later.

    Raises:
        Conflict: the space was emptied, or another state of the store took its place.
        IntegrityViolation: what the store knows of the import is damaged.
        ServicesUnavailable: the runtime closes; the rest is imported when the store is opened again.
        BeetleError: the store cannot go on; as before.
    """
    progress, budgets, now = invocation.progress, invocation.shared.profile.budgets, begun
    progress.step("write", of=files)
    look = invocation.shared.lifecycle.check
    given = enumerate(_files(archive, budgets.message_content_bytes, budgets.import_bytes, look), 1)
    found = (
        _Entry(number, each)
        for number, each in given
        if number > begun.done and isinstance(each, TreeFile) and each.document.id not in barred
    )

    def put_all(batch: list[_Entry], tx: WriteTransaction) -> list[tuple[int, Became | Unreadable]]:
        return _put(invocation, now, batch, tx)

    for number, became in _in_slices(invocation, found, put_all):
        now = now.after(number, 1)
        if isinstance(became, Unreadable):
            tally.refuse(became)
        else:
            tally.counts[became] += 1
        progress.at(sum(tally.counts.values()))
    with invocation.shared.store.read() as tx:
        loose = chunk_trees.loose(tx, begun.space)
    progress.step("link", of=len(loose))
    for number, _ in enumerate(_in_slices(invocation, loose, partial(relinked, invocation, begun.space))):
        progress.at(number)


def _put(
    invocation: Invocation, begun: BegunImport, batch: list[_Entry], tx: WriteTransaction
) -> list[tuple[int, Became | Unreadable]]:
    """Write a slice, and how far the import is; `begun` is how far it was."""
    if chunk_imports.find(tx, begun.import_id) != begun:
        raise Conflict(
            reason="the space was emptied while the import ran: what was not written yet is not imported",
            hint="import the tree again, if its chunks are to be there",
        )
    # What is noted is of the chunk that was created at its time, which a file may change.
    invocation.shared.chunk_accesses.write(tx, begun.space)
    became: list[tuple[int, Became | Unreadable]] = []
    for number, (path, document, archived) in batch:
        try:
            done = put(invocation, tx, begun.space, document, archived, begun.since)
        except IntegrityViolation:
            found = Unreadable(path, DAMAGED)
        else:
            found = Unreadable(path, STAYS[done]) if done == "deleted" or done == "changed" else done
        became.append((number, found))
    chunk_imports.go_on(tx, begun.after(batch[-1].number, len(batch)))
    return became


def _in_slices(
    invocation: Invocation, things: Iterable[T], apply: Callable[[list[T], WriteTransaction], list[R]]
) -> Iterator[R]:
    """Write the things in slices, as many as fit into the time, by what the last slice took; what became of each."""
    left, size = iter(things), LEAST_FILES
    while batch := list(islice(left, size)):
        invocation.shared.lifecycle.check()
        seconds, became = _write(invocation, partial(_timed, apply, batch))
        size = max(LEAST_FILES, min(MOST_FILES, 2 * size, int(size * SLICE_S / max(seconds, 1e-4))))
        yield from became
        invocation.work.rest()


def _timed(
    apply: Callable[[list[T], WriteTransaction], list[R]], batch: list[T], tx: WriteTransaction
) -> tuple[float, list[R]]:
    begun = time.monotonic()
    became = apply(batch, tx)
    return time.monotonic() - begun, became


def _on_behalf(shared: Facilities, crowd: Crowd, name: str, owner_id: str, agent_id: str) -> Invocation:
    """A call in the name of whoever has begun an import; it is asked for nothing."""
    progress = Progress()
    progress.plan(STEPS)
    return Invocation(
        caller=Caller(name, "unknown", frozenset(), ("operator_audit",), "in_process"),
        scope=Scope(owner_id, agent_id, "", "", None),
        operation=BY_NAME["chunk.import_tree"],
        view="operator_audit",
        now=shared.dependencies.clock(),
        deadline=None,
        shared=shared,
        progress=progress,
        work=Work(crowd, name),
    )


HANDLERS: Mapping[str, Handler] = {"chunk.import_tree": Plain(import_tree)}
