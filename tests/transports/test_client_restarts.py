"""Both clients: a daemon that ends behind a request, and comes back or stays away."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.async_client import AsyncClient
from beetle.client import Client, ConnectionLost, NoDaemon
from beetle.contracts.common import WireScope
from tests.transports.conftest import commit
from tests.transports.serving import Served
from tests.transports.standin import LosingProxy, Scripted, serve_well

Kind = type[Client | AsyncClient]
both = pytest.mark.parametrize("kind", [Client, AsyncClient], ids=lambda kind: kind.__name__)
_connecting: dict[str, Callable[[], None]] = {}


def _look(event: str, given: tuple[Any, ...]) -> None:
    if event == "socket.connect" and (act := _connecting.get(str(given[1]))) is not None:
        act()


sys.addaudithook(_look)


@contextlib.contextmanager
def told_of_connects(path: str, act: Callable[[], None]) -> Iterator[None]:
    """`act` runs before anybody connects to the path."""
    _connecting[path] = act
    try:
        yield
    finally:
        del _connecting[path]


class Away(LosingProxy):
    """Loses the first answer, which is of a write that was done, and cannot be reached from then until `back`."""

    def __init__(self, path: str, daemon: str) -> None:
        self._elsewhere = f"{path}-away"
        self.is_away = False
        super().__init__(path, daemon, self._leave)

    def _leave(self, _answer: dict[str, Any]) -> bool:
        if len(self.requests) > 1:
            return False
        os.rename(self.path, self._elsewhere)
        self.is_away = True
        return True

    def back(self) -> None:
        os.rename(self._elsewhere, self.path)
        self.is_away = False


def written(kind: Kind, path: str, number: int, key: str | None = None, **given: Any) -> bool:
    """Commit a turn; whether that was told to be a repetition."""
    scope = WireScope(owner_id=f"away-{kind.__name__}")
    if kind is Client:
        with Client(path, scope=scope, **given) as client:
            client.call("transcript.commit", commit(number), idempotency_key=key)
            return client.repeated

    async def work() -> bool:
        async with AsyncClient(path, scope=scope, **given) as client:
            await client.call("transcript.commit", commit(number), idempotency_key=key)
            return client.repeated

    return asyncio.run(work())


@both
def test_a_daemon_that_is_started_again_during_a_call_is_waited_for(kind: Kind, served: Served, folder: Path) -> None:
    met: list[bool] = []

    def connecting() -> None:
        met.append(proxy.is_away)
        if sum(met) == 3:
            proxy.back()

    with Away(str(folder / "p"), served.path) as proxy, told_of_connects(proxy.path, connecting):
        assert written(kind, proxy.path, 1)
        assert met == [False, True, True, True]
        first, second = proxy.requests
        assert first["idempotency_key"] == second["idempotency_key"]


@both
def test_one_that_stays_away_is_told_with_the_key_to_repeat_the_write_under(
    kind: Kind, served: Served, folder: Path
) -> None:
    with Away(str(folder / "p"), served.path) as proxy:
        with pytest.raises(ConnectionLost, match="may have been done") as caught:
            written(kind, proxy.path, 2, away=0)
        lost = caught.value
        assert (lost.path, lost.idempotency_key) == (proxy.path, proxy.requests[0]["idempotency_key"])
        again = pickle.loads(pickle.dumps(lost))
        assert (type(again), str(again), again.idempotency_key) == (ConnectionLost, str(lost), lost.idempotency_key)
        proxy.back()
        assert written(kind, proxy.path, 2, lost.idempotency_key)


@both
def test_a_request_that_was_not_sent_is_no_reason_to_wait(kind: Kind, folder: Path) -> None:
    """The daemon ended while nothing was asked: nobody answers, and nothing was done."""

    def end() -> None:
        daemon.__exit__()
        os.unlink(daemon.path)

    async def work() -> None:
        async with AsyncClient(daemon.path) as client:
            await client.list_runtime_skills()
            end()
            with pytest.raises(NoDaemon):
                await client.list_runtime_skills()

    daemon = Scripted(str(folder / "s"), serve_well)
    if kind is AsyncClient:
        asyncio.run(work())
        return
    with Client(daemon.path) as client:
        client.list_runtime_skills()
        end()
        with pytest.raises(NoDaemon):
            client.list_runtime_skills()
