"""Shared by the store's tests: a runtime over settings of one's own, plain requests, and the bytes of a store."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime, __version__
from beetle.contracts.common import WireScope
from beetle.open import Embedded, Opened, store_settings
from beetle.runtime.areas.scheduled import JOBS
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies, clock
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.host.identity import open_identity
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.host.profile import load_profile
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.store.engine.store import Store

PROFILE = "profile-server-linux-dev-full"
DISK_BACKENDS = ("sqlite", "embedded", "file")
CONVERSATION = {"channel_id": "local", "conversation_id": "c1"}
AT = "2024-03-09T12:00:00Z"


def open_runtime(
    path: str | Path,
    backend: str = "sqlite",
    *,
    now: Callable[[], int] = clock,
    owner: str = "owner-a",
    **settings: Any,
) -> MemoryRuntime:
    """A runtime for the owner of this process; `settings` replace fields of StoreSettings."""
    profile = load_profile(PROFILE)
    chosen = store_settings(str(path), profile, backend)._replace(**settings)
    store = Store(chosen, clock=now, elapsed=now, domain=DOMAIN_FUNCTIONS, version=__version__)
    identity = open_identity(store, None)
    dispatcher = Dispatcher(
        store, profile, identity, Dependencies(clock=now, elapsed=now), HANDLERS, JOBS, version=__version__
    )
    opened = Opened(store, dispatcher, profile, (), identity)
    caller = Caller(
        name="embedded:test",
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
        transport="in_process",
        agent_id="agent-a",
    )
    return MemoryRuntime(Embedded(opened, caller, WireScope(owner_id=owner, channel="local", chat_id="chat")))


def store_of(memory: MemoryRuntime) -> Store:
    return memory._opened._opened.store


def ticking(start: int = 1_700_000_000_000_000) -> Callable[[], int]:
    """A clock that moves by one millisecond a look, so that a run can be repeated byte for byte."""
    count = itertools.count(start, 1000)
    return lambda: next(count)


def turn(turn_id: str, *contents: str, at: str = AT, **more: Any) -> dict[str, Any]:
    messages = [
        {"message_id": f"{turn_id}-m{place}", "role": "user", "content": content}
        for place, content in enumerate(contents)
    ]
    return {"turn_id": turn_id, "at": at, "messages": messages, **more}


def commit(memory: MemoryRuntime, *turns: dict[str, Any], conversation: dict[str, str] = CONVERSATION) -> Any:
    return memory.commit_transcript(conversation=conversation, turns=turns)


def lifecycle(memory: MemoryRuntime, action: str, *turn_ids: str, conversation: dict[str, str] = CONVERSATION) -> Any:
    return memory.request_transcript_lifecycle(
        conversation=conversation, action=action, turn_ids=turn_ids, reason="a test asks"
    )


def write_skill(
    memory: MemoryRuntime, name: str, content: str, title: str = "How to", source: Any = "manual", **more: Any
) -> Any:
    skill = {"name": name, "topic": "work", "title": title, "summary": "when needed", "content": content, **more}
    return memory.write(kind="procedural", source=source, writes=[skill])


def delete_skill(memory: MemoryRuntime, name: str) -> Any:
    return memory.delete_runtime_skill(name=name)


def replay(memory: MemoryRuntime, view: str = "raw_owner", conversation: dict[str, str] = CONVERSATION) -> Any:
    return memory.replay_transcript(conversation=conversation, view=view, limit=500).turns


def found(memory: MemoryRuntime, word: str) -> set[str]:
    """Refs of the hits whose excerpt holds a word; a neighbour may stand among the hits for its neighbour's sake."""
    hits = memory.recall(query=word, limit=200).hits
    return {hit.ref for hit in hits if word in (hit.excerpt or "")}


def assert_clean(memory: MemoryRuntime) -> None:
    report = memory.verify_store()
    assert report.clean, report.findings


def files_of(path: str | Path) -> list[Path]:
    """The database and every file that SQLite may have put beside it."""
    return sorted(p for p in Path(path).parent.iterdir() if p.name.startswith(Path(path).name))


def copy_at_rest(store: Store, path: str | Path, copy: str | Path) -> None:
    """Copy a store's files as a crash would leave them now; `copy` is the new database, in a folder of its own.

    On the writer's thread, which so writes nothing meanwhile: it clears up after an erasure that nobody waits for.
    """

    def run(_: object) -> None:
        Path(copy).parent.mkdir()
        for file in files_of(path):
            if not file.name.endswith((".lock", "-shm")):
                copied = shutil.copytree if file.is_dir() else shutil.copy
                copied(file, Path(copy).parent / file.name)

    store.writer.apart(run)


def bytes_of(path: str | Path) -> bytes:
    """Everything that stands in the files of a store."""
    whole = (file for each in files_of(path) for file in (sorted(each.rglob("*")) if each.is_dir() else [each]))
    return b"\x00".join(each.read_bytes() for each in whole)


@contextmanager
def held_snapshot(memory: MemoryRuntime) -> Iterator[None]:
    """Another thread reads the store's present state, and goes on reading it until the block ends."""
    begun, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with store_of(memory).read() as tx:
            tx.value("SELECT count(*) FROM sqlite_schema")
            begun.set()
            assert let_go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        let_go.set()
        thread.join()


def wait_for_erasures(memory: MemoryRuntime) -> None:
    end = time.monotonic() + 60
    # An erasure that was called off makes the index anew behind the call.
    while memory.inspect().store.pending_erasures:
        assert store_of(memory).writer.finish_erasures(60) and time.monotonic() < end, "an erasure stayed pending"
        threading.Event().wait(0.005)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")
