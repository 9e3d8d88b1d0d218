"""Both clients in a process that forks: each process has connections, locks and keys of its own."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beetle.async_client import AsyncClient
from beetle.client import Client
from beetle.contracts.common import WireScope
from tests.transports.conftest import commit
from tests.transports.serving import Served, until
from tests.transports.standin import Far, Scripted, serve_well


def in_child(work: Callable[[], Any]) -> Any:
    """What the work gives in a process that is forked for it, which then ends."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            found = repr(error)
        os.write(tell, json.dumps(found).encode())
        os._exit(0)
    os.close(tell)
    with open(told, "rb") as said:
        found = json.loads(said.read())
    os.waitpid(pid, 0)
    return found


def test_a_child_asks_over_its_own_connection_while_a_thread_of_its_parent_waits(folder: Path) -> None:
    end = threading.Event()

    def slow(far: Far) -> None:
        serve_one = far.request()
        end.wait()
        far.answer(serve_one)
        serve_well(far)

    def ask() -> list[int]:
        found = [client.list_runtime_skills().total, client.session(agent="a").list_runtime_skills().total]
        client.call("skill.install", {})  # which changes something, so that it has a key
        client.close()
        return found

    with Scripted(str(folder / "s"), slow, serve_well) as daemon, Client(daemon.path, timeout=10) as client:
        waiting = threading.Thread(target=client.list_runtime_skills)
        waiting.start()
        until(lambda: daemon.requests, "the request")
        try:
            assert in_child(ask) == [0, 0]
        finally:
            end.set()
            waiting.join()
        client.call("skill.install", {})
        assert daemon.connections == 2, "the parent's is as it was"
        keys = [each["idempotency_key"] for each in daemon.requests if "idempotency_key" in each]
        assert len(set(keys)) == len(keys) == 2


def test_a_call_in_the_child_does_not_take_the_answer_of_the_parent(served: Served) -> None:
    def write(name: str) -> list[str]:
        reports = (client.commit_transcript(**commit(number, name)) for number in range(20))
        return [f"{name} {each.turns[0].turn_id} {each.turns[0].sequence}" for each in reports]

    with Client(served.path, scope=WireScope(owner_id="forks"), pool=2) as client:
        client.hello()
        told: list[Any] = []
        child = threading.Thread(target=lambda: told.append(in_child(lambda: write("child"))))
        child.start()
        mine = write("parent")
        child.join()
    assert mine == [f"parent t{number} {number + 1}" for number in range(20)]
    assert told == [[f"child t{number} {number + 1}" for number in range(20)]]


def test_a_subscription_stays_the_parent_s(served: Served) -> None:
    def follow() -> str:
        with pytest.raises(ConnectionError) as caught:
            next(events)
        events.close()
        return type(caught.value).__name__

    with (
        Client(served.path, scope=WireScope(owner_id="followed")) as client,
        client.subscribe(["transcript"]) as events,
    ):
        client.commit_transcript(**commit(1))
        assert in_child(follow) == "ConnectionResetError"
        client.commit_transcript(**commit(2))
        assert [next(events).event["turns"] for _ in range(2)] == [1, 1]


def test_a_closed_client_is_closed_in_the_child_too(served: Served) -> None:
    client = Client(served.path)
    client.close()
    assert in_child(client.hello).startswith("ClientClosed")


def test_a_client_of_tasks_asks_in_the_child_s_own_loop(served: Served) -> None:
    async def work() -> None:
        async with (
            AsyncClient(served.path, scope=WireScope(owner_id="tasks"), timeout=10, pool=2) as client,
            await client.subscribe(["transcript"]) as events,
        ):
            await asyncio.gather(*(client.commit_transcript(**commit(number)) for number in range(3)))

            async def ask() -> list[Any]:
                with pytest.raises(ConnectionError):
                    await anext(events)
                await events.close()
                report = await client.commit_transcript(**commit(3))
                await client.close()
                return [report.committed, report.turns[0].turn_id]

            assert in_child(lambda: asyncio.run(ask())) == [1, "t3"]
            assert (await client.commit_transcript(**commit(4))).turns[0].turn_id == "t4"
            assert [(await anext(events)).event["last_sequence"] for _ in range(5)] == [1, 2, 3, 4, 5]

    asyncio.run(work())


def test_a_client_of_grpc_says_that_it_is_the_parent_s(folder: Path) -> None:
    pytest.importorskip("grpc")
    from beetle.memory_client import MemoryClient

    with MemoryClient(f"unix:{folder}/nowhere") as client:
        assert "make one here" in in_child(client.get_toc_root)
