"""A client of several connections that threads share."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from beetle.client import Client, ClientClosed
from beetle.contracts import errors
from beetle.contracts.common import WireScope
from tests.transports.conftest import turn
from tests.transports.serving import Served
from tests.transports.standin import LISTED, Far, Scripted, serve_well

SOON_S = 30.0


def test_threads_have_a_connection_each_up_to_the_pool_and_wait_for_one_beyond_it(folder: Path) -> None:
    together = threading.Barrier(3)

    def meet(far: Far) -> None:
        request = far.request()
        together.wait(SOON_S)
        far.answer(request, {**LISTED, "total": 3})
        serve_well(far)

    with (
        Scripted(str(folder / "s"), meet) as daemon,
        Client(daemon.path, pool=3) as client,
        ThreadPoolExecutor(12) as threads,
    ):
        totals = [each.total for each in threads.map(lambda _: client.list_runtime_skills(), range(12))]
        assert sorted(totals) == [0] * 9 + [3] * 3
        assert daemon.connections == 3, "no answer came before all three had asked, and nobody opened a fourth"
        assert len({request["id"] for request in daemon.requests}) == 12


def test_calls_one_after_another_keep_to_one_connection(folder: Path) -> None:
    with Scripted(str(folder / "s"), serve_well) as daemon, Client(daemon.path, pool=4) as client:
        for _ in range(5):
            client.list_runtime_skills()
        assert daemon.connections == 1
        with pytest.raises(errors.InvalidRequest):
            Client(daemon.path, pool=0)


def test_a_thread_that_finds_no_connection_free_in_time_times_out_and_closing_ends_all(folder: Path) -> None:
    def silent(far: Far) -> None:
        far.request()
        asked.release()
        far.request()

    asked = threading.Semaphore(0)
    with Scripted(str(folder / "s"), silent) as daemon, ThreadPoolExecutor(2) as threads:
        client = Client(daemon.path, pool=2)
        calls = [threads.submit(client.hello) for _ in range(2)]
        assert all(asked.acquire(timeout=SOON_S) for _ in calls)
        client._timeout = 0.05
        with pytest.raises(TimeoutError):
            client.hello()
        client.close()
        assert [type(each.exception(SOON_S)) for each in calls] == [ClientClosed] * 2


def test_a_transfer_keeps_to_its_connection_while_threads_use_the_others(served: Served) -> None:
    noise = os.urandom(300_000)

    def bring(client: Client) -> str:
        with pytest.raises(errors.BeetleError) as caught:
            client.import_space(archive=noise, mode="bootstrap_import")
        return caught.value.key

    def commit(client: Client, number: int) -> int:
        return client.commit_transcript(conversation={"conversation_id": "p"}, turns=[turn(number)]).committed

    with Client(served.path, pool=3, scope=WireScope(owner_id="pool")) as client, ThreadPoolExecutor(4) as threads:
        moving = [threads.submit(bring, client) for _ in range(4)]
        assert [commit(client, number) for number in range(10)] == [1] * 10
        keys = {each.result(SOON_S) for each in moving}
        assert len(keys) == 1 and not keys & {"not_found", "payload_too_large"}, keys
