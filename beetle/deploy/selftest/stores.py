"""Checks that open stores: SQLite itself, the four backends, erasure, the writer, the lock, the disk."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from beetle.contracts.errors import BeetleError, StoreLocked
from beetle.deploy.selftest.workspace import CheckFailed, Workspace
from beetle.open import Opened, open_store
from beetle.runtime.host.profile import DEV_FULL
from beetle.sdk import MemoryRuntime
from beetle.store.engine.migrate import available
from beetle.store.event_log import Event, Logged

OLDEST_SQLITE = (3, 51)
"""What the requirement on the binding stands for."""

OPTIONS = ("ENABLE_FTS5",)
FORBIDDEN = ("THREADSAFE=0", "OMIT_WAL", "OMIT_JSON", "OMIT_DESERIALIZE")
PATIENCE_S = 30.0
THREADS = 4
WRITES = 25
CONVERSATION = {"conversation_id": "self-test"}
PROFILE = DEV_FULL
"""The one that allows every backend."""


def sqlite() -> str:
    """SQLite is new enough, has what the store needs, and the ledger holds this build's migrations."""
    opened = open_store("self-test", PROFILE, "in-memory")
    try:
        with opened.store.read() as tx:
            version = tx.value("SELECT sqlite_version()")
            options = {row[0] for row in tx.rows("SELECT compile_options FROM pragma_compile_options")}
            searches = tx.value("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'")
            ledger = list(tx.rows("SELECT number, name, sha256 FROM schema_migration ORDER BY number"))
    finally:
        opened.store.close()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SQLITE:
        raise CheckFailed(f"SQLite {version} is older than {'.'.join(map(str, OLDEST_SQLITE))}")
    if not searches:
        raise CheckFailed(f"SQLite {version} has no FTS5")
    if wrong := [*(each for each in OPTIONS if each not in options), *(each for each in FORBIDDEN if each in options)]:
        raise CheckFailed(f"SQLite {version} was built otherwise than the store needs: {', '.join(wrong)}")
    if ledger != [(each.number, each.name, each.sha256) for each in available()]:
        raise CheckFailed("a fresh store's ledger does not hold this build's migrations")
    return f"SQLite {version} with FTS5"


def in_memory() -> str:
    """A store in memory: written, recalled, verified."""
    with _open("self-test", "in-memory") as memory:
        _write_and_look(memory)
    return "wrote, recalled and verified in memory"


def on_disk(backend: str, workspace: Workspace) -> str:
    """A store on disk: written, recalled, verified; closed, opened again, still there."""
    path = str(workspace.room(backend) / "b.db")
    with _open(path, backend) as memory:
        _write_and_look(memory)
    with _open(path, backend) as memory:
        report = memory.open_report
        if report.created or report.migrations_applied or report.backend != backend:
            raise CheckFailed("a store that was closed is not opened as it was left")
        _look(memory)
    return "written, closed, opened again and recalled"


def _open(path: str, backend: str) -> MemoryRuntime:
    return MemoryRuntime.open(path, profile=PROFILE, backend=backend)


def _write_and_look(memory: MemoryRuntime) -> None:
    report = commit(memory, "t1", "the beetle walks")
    if report.committed != 1:
        raise CheckFailed("a turn was not committed")
    again = commit(memory, "t1", "the beetle walks")
    if (again.committed, again.unchanged) != (0, 1):
        raise CheckFailed("the same turn was committed twice")
    _look(memory)


def _look(memory: MemoryRuntime) -> None:
    if [hit.message_id for hit in memory.recall(query="walking beetles").hits] != ["t1-m"]:
        raise CheckFailed("what was written was not recalled")
    block = memory.project(user_query="where does the beetle walk", system_max_len=2000).system_memory_block
    if "the beetle walks" not in (block or ""):
        raise CheckFailed("what was written is not in the projection")
    if not memory.verify_store().clean:
        raise CheckFailed("a fresh store is not clean")


def commit(memory: MemoryRuntime, turn_id: str, content: str) -> Any:
    """One turn with one message, whose id is the turn's and `-m`."""
    message = {"message_id": f"{turn_id}-m", "role": "user", "content": content}
    turn = {"turn_id": turn_id, "at": "2026-01-01T00:00:00Z", "messages": [message]}
    return memory.commit_transcript(conversation=CONVERSATION, turns=[turn])


def keys(workspace: Workspace) -> str:
    """Private material comes back, and is in no byte of the files; a receipt holds, and a changed one does not."""
    folder = workspace.room("keys")
    word = f"private{secrets.token_hex(8)}"
    with _open(str(folder / "b.db"), "sqlite") as memory:
        candidate = {"candidate_id": "c", "authority": "user_asserted", "target": "private_garden",
                     "privacy": "subject_private", "content": word}  # fmt: skip
        (kept,) = memory.write(kind="candidates", candidates=[candidate]).outcomes
        if kept.record_id is None or memory.get_private(record_id=kept.record_id).content != word:
            raise CheckFailed("what was sealed does not come back")
        receipt = memory.long_term_policy(action="pause").receipt or ""
        for text, holds in ((receipt, True), (receipt[:-1] + ("A" if receipt[-1:] != "A" else "B"), False)):
            found = memory.verify_store(receipt=text).receipt
            if found is None or found.valid is not holds:
                raise CheckFailed("a receipt does not hold" if holds else "a changed receipt holds")
    if any(word.encode() in each.read_bytes() for each in folder.iterdir() if each.is_file()):
        raise CheckFailed("private material stands in the clear")
    _carried(folder, word)
    return "private material is sealed, also on its way to another store, and a receipt signed and checked"


def _carried(folder: Path, word: str) -> None:
    """The space's archive opens with its passphrase alone."""
    with _open(str(folder / "b.db"), "sqlite") as memory:
        archive = memory.export_space(include_private=True, passphrase="right and long enough").archive or b""
    if word.encode() in archive:
        raise CheckFailed("private material is exported in the clear")
    for passphrase, opens in (("wrong and long enough", False), ("right and long enough", True)):
        with _open(str(folder / "c.db"), "sqlite") as memory:
            try:
                memory.import_space(archive=archive, mode="bootstrap_import", passphrase=passphrase)
            except BeetleError as error:
                if opens:
                    raise CheckFailed(f"an archive does not open: {error.key}") from None
            else:
                if not opens:
                    raise CheckFailed("an archive opens with a wrong passphrase")


def erasure(workspace: Workspace) -> str:
    """After delete_raw, no byte of the content is in the store's files, while it is open and after."""
    for backend in ("sqlite", "file", "embedded"):
        folder = workspace.room(f"erasure-{backend}")
        # Letters alone, as one word: what the index makes of it begins with the same bytes.
        canary = "".join(chr(ord("a") + byte % 26) for byte in secrets.token_bytes(24))
        with _open(str(folder / "b.db"), backend) as memory:
            commit(memory, "t1", "a neighbour before")
            commit(memory, "t2", f"the word is {canary}, and {canary.upper()} once more")
            if not _holds(folder, canary) or not memory.recall(query=canary).hits:
                raise CheckFailed(f"{backend}: what was committed is not in the store's files")
            report = memory.request_transcript_lifecycle(
                conversation=CONVERSATION, action="delete_raw", turn_ids=["t2"], reason="self-test"
            )
            if report.erasure != "done" or not report.changed:
                raise CheckFailed(f"{backend}: the erasure was not done at once")
            if _holds(folder, canary):
                raise CheckFailed(f"{backend}: erased content is still in the store's files")
        if _holds(folder, canary):
            raise CheckFailed(f"{backend}: erased content came back when the store was closed")
    return "no byte of erased content is left in any file"


def _holds(folder: Path, word: str) -> bool:
    """Whether a word, or its second half, stands anywhere in the files of a folder; capitals count as small letters."""
    half = word[len(word) // 2 :].encode()
    return any(half in file.read_bytes().lower() for file in folder.iterdir())


def writer(workspace: Workspace) -> str:
    """Writes of several threads at once: those that wait are committed together, and each is there."""
    opened = open_store(str(workspace.room("writer") / "b.db"), PROFILE, "sqlite")
    try:
        groups: list[int] = []
        opened.store.on_commit(lambda logged: groups.append(_own(logged)))
        _write_while_held(opened)
        if THREADS not in groups:
            raise CheckFailed(f"{THREADS} writes that waited were not committed together, but as {groups}")
        _in_threads([lambda name=name: _write_many(opened, name) for name in range(THREADS)])
        with opened.store.read() as tx:
            told = tx.value("SELECT count(*) FROM event_log WHERE event = 'self_test'")
        if told != THREADS + THREADS * WRITES or sum(groups) != told:
            raise CheckFailed(f"{told} writes are there of {THREADS + THREADS * WRITES}")
    finally:
        opened.store.close()
    return f"{told} writes of {THREADS} threads in {len(groups)} commits"


def _own(logged: Sequence[Logged]) -> int:
    return sum(each.event.event == "self_test" for each in logged)


def _write_while_held(opened: Opened) -> None:
    """Let one write wait until the others stand in the queue: they must then share a commit."""
    begun, go = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        begun.set()
        go.wait(PATIENCE_S)

    holder = threading.Thread(target=lambda: opened.store.write(hold))
    holder.start()
    try:
        begun.wait(PATIENCE_S)
        _in_threads([lambda: _write_one(opened, 0)] * THREADS, lambda: _until_queued(opened, go))
    finally:
        go.set()
        holder.join()


def _until_queued(opened: Opened, go: threading.Event) -> None:
    end = time.monotonic() + PATIENCE_S
    while opened.store.writer.queued < THREADS and time.monotonic() < end:
        time.sleep(0.001)
    go.set()


def _write_many(opened: Opened, thread: int) -> None:
    for number in range(WRITES):
        _write_one(opened, thread * WRITES + number)


def _write_one(opened: Opened, number: int) -> None:
    row = Event("lifecycle", "self_test", "self-test", "self-test", None, {"number": number})
    opened.store.write(lambda tx: tx.log(row))


def _in_threads(jobs: Sequence[Callable[[], None]], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Run each in a thread of its own; the first error of the product in any is raised here.

    A defect ends its thread with a traceback, and shows here as what that thread left undone.
    """
    failed: list[BeetleError] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BeetleError as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for each in threads:
        each.start()
    meanwhile()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]


def lock(workspace: Workspace) -> str:
    """A store that is open is refused to a second opener, with who has it; when it is closed, it is free."""
    path = str(workspace.room("lock") / "b.db")
    opened = open_store(path, PROFILE, "sqlite")
    try:
        try:
            open_store(path, PROFILE, "sqlite").store.close()
        except StoreLocked as error:
            if error.details.get("pid") != os.getpid():
                raise CheckFailed("the lock does not say who holds it") from None
        else:
            raise CheckFailed("a store that is open was opened a second time")
    finally:
        opened.store.close()
    open_store(path, PROFILE, "sqlite").store.close()
    return "a second opener is refused, and let in afterwards"


def disk(workspace: Workspace) -> str:
    """Files and folders can be synced to the disk, and a file put in another's place."""
    folder = workspace.room("disk")
    data = secrets.token_bytes(8192)
    with open(folder / "new", "xb") as file:
        file.write(data)
        file.flush()
        os.fdatasync(file.fileno())
        os.fsync(file.fileno())
    (folder / "old").write_bytes(b"old")
    os.replace(folder / "new", folder / "old")
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(inside)
    finally:
        os.close(inside)
    if (folder / "old").read_bytes() != data:
        raise CheckFailed("a file does not hold what was written")
    return f"{folder.parent.parent} can be synced"
