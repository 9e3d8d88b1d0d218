"""`import_` and `export_` of the blocking client and of the one for asyncio: one behaviour, tested for both."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from beetle import MemoryRuntime
from beetle.async_client import AsyncClient
from beetle.client import Client
from beetle.contracts.common import WireScope
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.progress import ProgressStep
from beetle.importing.report import Failed, ImportReport
from tests.forked import Daemon

SAMPLES = Path(__file__).parent / "samples"
FILES = sorted(SAMPLES.glob("*.json*"))
SOON_S = 30.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(profile="desktop", folder=str(tmp_path_factory.mktemp("d"))) as started:
        yield started


def finished(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, SOON_S))


class Door:
    """One of the clients, in the memory of an owner of its own."""

    def __init__(self, kind: type[Client | AsyncClient], path: str, owner: str) -> None:
        self.kind = kind
        self.path = path
        self.scope = WireScope(owner_id=f"{owner}-{kind.__name__}")

    def take_in(self, *paths: Path, **given: Any) -> ImportReport:
        if self.kind is Client:
            with Client(self.path, scope=self.scope) as client:
                return client.import_(*paths, **given)

        async def work() -> ImportReport:
            async with AsyncClient(self.path, scope=self.scope) as client:
                return await client.import_(*paths, **given)

        return finished(work())

    def give_out(self, **given: Any) -> list[str]:
        if self.kind is Client:
            with Client(self.path, scope=self.scope) as client:
                return list(client.export_(**given))

        async def work() -> list[str]:
            async with AsyncClient(self.path, scope=self.scope) as client:
                return [line async for line in client.export_(**given)]

        return finished(work())

    def conversations(self) -> int:
        with Client(self.path, scope=self.scope) as client:
            return len(client.list_conversations().conversations)


@pytest.fixture(params=[Client, AsyncClient], ids=lambda kind: kind.__name__)
def door(request: pytest.FixtureRequest, daemon: Daemon) -> Door:
    return Door(request.param, daemon.socket, request.node.originalname)


@pytest.fixture(scope="module")
def in_process() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """What a runtime answers for the same files: its report, and its lines."""
    with MemoryRuntime.open(":memory:", profile="desktop") as memory:
        yield memory.import_(*FILES).to_dict(), list(memory.export_())


@pytest.mark.parametrize("name", ["import_", "export_"])
def test_both_take_the_same_arguments(name: str) -> None:
    blocking, tasks = (inspect.signature(getattr(kind, name)).parameters for kind in (Client, AsyncClient))
    assert list(blocking.values()) == list(tasks.values())


def test_every_sample_goes_in_once_and_comes_out_as_from_a_runtime(
    door: Door, in_process: tuple[dict[str, Any], list[str]]
) -> None:
    report, lines = in_process
    assert door.take_in(*FILES).to_dict() == report
    assert door.take_in(*FILES).total("committed") == 0
    assert sorted(door.give_out()) == sorted(lines)
    page = door.give_out(format="markdown", conversations=[{"channel_id": "chatgpt", "conversation_id": "conv-tea"}])
    assert page[0] == "# chatgpt/conv-tea\n\n"


def test_a_dry_run_changes_nothing_and_what_is_wrong_is_refused_first(door: Door, tmp_path: Path) -> None:
    assert door.take_in(*FILES, dry_run=True).total("turns") > 10
    for given in ({"format": "diary"}, {"authority": "god"}, {"conversation": ""}):
        with pytest.raises(InvalidRequest):
            door.take_in(*FILES, **given)
    with pytest.raises(InvalidRequest, match="no such file"):
        door.take_in(*FILES, tmp_path / "missing")
    with pytest.raises(InvalidRequest):
        door.give_out(format="diary")
    with pytest.raises(InvalidRequest):
        door.give_out(conversations=["c", ""])
    assert door.conversations() == 0


def test_problems_and_progress_are_told_and_stop_nothing(door: Door, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    line = {"conversation": "c", "turn_id": "t1", "at": "2026-01-01T00:00:00Z", "role": "user", "content": "first"}
    lines = [line, line | {"turn_id": "t2"}, line | {"content": "second"}, line | {"turn_id": "t3"}]
    file.write_text("\n".join([*map(json.dumps, lines), "{"]))
    problems: list[Failed] = []
    steps: list[ProgressStep] = []
    report = door.take_in(file, on_problem=problems.append, on_progress=steps.append)
    assert sorted(str(each.place) for each in problems) == ["line 3", "line 5"]
    assert report.problems == problems and report.total("committed") == 3
    assert steps[0].of == file.stat().st_size
    said = door.take_in(file, conversation="other", speakers={"user": "Rita"}, channel="web")
    assert said.files[0].conversations == ["local/other"]


def test_other_tasks_run_while_a_file_is_taken_in_and_no_thread_does(daemon: Daemon, tmp_path: Path) -> None:
    """At each step of the progress another task has run since the one before, also where nothing is asked for."""
    file = tmp_path / "turns.jsonl"
    line = json.dumps({"conversation": "long", "turn_id": "%d", "role": "user", "content": "word"})
    file.write_text("\n".join(line.replace("%d", str(number)) for number in range(2000)))
    gc.collect()  # what other tests left is not counted
    threads = threading.active_count()
    seen: list[int] = []
    turns = 0

    def look(_step: ProgressStep) -> None:
        assert threading.active_count() <= threads
        seen.append(turns)

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work() -> int:
        async with AsyncClient(daemon.socket, scope=WireScope(owner_id="beside")) as client:
            ticking = asyncio.create_task(tick())
            await client.import_(file, dry_run=True, on_progress=look)
            report, hello = await asyncio.gather(client.import_(file, on_progress=look), client.hello())
            ticking.cancel()
            assert hello.server
            return report.total("committed")

    assert finished(work()) == 2000
    assert len(seen) == 20 and sorted(set(seen)) == seen


def test_an_import_that_is_cancelled_is_run_again(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    line = json.dumps({"conversation": "cancelled", "turn_id": "%d", "role": "user", "content": "word"})
    file.write_text("\n".join(line.replace("%d", str(number)) for number in range(1000)))

    async def work() -> ImportReport:
        async with AsyncClient(daemon.socket, scope=WireScope(owner_id="cancelled")) as client:

            def stop(step: ProgressStep) -> None:
                if step.done:
                    begun.cancel()

            begun = asyncio.create_task(client.import_(file, on_progress=stop))
            with pytest.raises(asyncio.CancelledError):
                await begun
            return await client.import_(file)

    report = finished(work())
    assert report.total("committed") + report.total("unchanged") == 1000 and report.failed == 0
