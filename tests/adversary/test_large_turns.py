"""Large requests: principals and devices take turns at them, whoever's user they come from; a mere name has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from beetle.runtime.host.config import Principal
from tests.adversary.neighbours import frame, unfinished
from tests.transports.conftest import Peer, turn
from tests.transports.serving import Served, open_folder, until

LARGE = 80_000
LATE_MS = 600_000
"""Nothing ends by its deadline."""
PRINCIPALS = {name: Principal(owner_id=name, capabilities=("transcript", "recall", "write")) for name in ("one", "two")}


@pytest.fixture
def served() -> Iterator[Served]:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS, default_deadline_ms=LATE_MS) as running:
        yield running


@pytest.fixture
def stack(served: Served) -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def acting(name: str) -> dict[str, Any]:
    return {"auth": {"principal": name}}


def device(served: Served) -> dict[str, Any]:
    with served.peer() as operator:
        asked = {"label": "Panel", "capabilities": ["recall", "transcript", "write"], "owner_id": "ada"}
        made = operator.ask("device.add", asked)["report"]
    return {"auth": {"device_id": made["device"]["device_id"], "app_key": made["appKeyOnce"]}}


def reads(peer: Peer, **more: Any) -> str:
    """What a large request that needs no writer is told: it was read when it is refused for its length."""
    return peer.ask("memory.recall", {"query": "x" * LARGE}, **more)["error"]["key"]


def large_write(number: int, **more: Any) -> bytes:
    turns = [turn(10 * number + each, "x " * (LARGE // 4)) for each in range(3)]
    return frame("transcript.commit", {"conversation": {"conversation_id": "c"}, "turns": turns}, **more)


def works(served: Served, peer: Peer, **more: Any) -> None:
    """A peer's large write has its turn and keeps it: the writer is held."""
    taken = served.dispatcher.shared.large_turns.taken
    peer.send(large_write(1, **more))
    until(lambda: served.dispatcher.shared.large_turns.taken == taken + 1, "its turn")


@pytest.mark.parametrize("proved", ["before", "in the request"])
@pytest.mark.parametrize("kind", ["principals", "devices"])
def test_a_large_request_waits_for_none_of_another_that_comes_from_the_same_user(
    served: Served, stack: ExitStack, kind: str, proved: str
) -> None:
    one, two = (acting("one"), acting("two")) if kind == "principals" else (device(served), device(served))
    busy, queued, other = (stack.enter_context(served.peer()) for _ in range(3))
    if proved == "before":
        for peer, who in ((busy, one), (queued, one), (other, two)):
            assert peer.ask("hello", **who)["ok"]
        one = two = {}
    turns = served.dispatcher.shared.large_turns
    with served.held_writer():
        works(served, busy, **one)
        queued.send(large_write(2, **one))
        until(lambda: turns.waiting == 1, "the other one of the same principal waits")
        assert reads(other, **two) == "payload_too_large"
        assert turns.taken == turns.waiting == 1, "it was read beside them"
    assert busy.answer()["ok"] and queued.answer()["ok"]
    until(lambda: not turns.taken, "all turns are given back")


@pytest.mark.parametrize("claimed", [{"principal": "nobody"}, {"device_id": "panel", "app_key": "wrong"}])
def test_a_name_that_is_only_claimed_has_no_turn_of_its_own(
    served: Served, stack: ExitStack, claimed: dict[str, str]
) -> None:
    busy, claims = (stack.enter_context(served.peer()) for _ in range(2))
    with served.held_writer():
        works(served, busy)
        claims.send(frame("memory.recall", {"query": "x" * LARGE}, auth=claimed))
        until(lambda: served.dispatcher.shared.large_turns.waiting == 1, "it waits as who it is known to be")
    assert busy.answer()["ok"]
    assert claims.answer()["error"]["key"] == "unauthorized"
    assert len(served.refusals()) == 1


def test_a_peer_that_goes_while_it_waits_leaves_no_turn_behind(served: Served, stack: ExitStack) -> None:
    turns = served.dispatcher.shared.large_turns
    busy, gone = (stack.enter_context(served.peer()) for _ in range(2))
    with served.held_writer():
        works(served, busy, **acting("one"))
        gone.send(frame("memory.recall", {"query": "x" * LARGE}, **acting("one")))
        until(lambda: turns.waiting == 1, "it waits")
        gone.close()
        until(lambda: turns.waiting == 0, "it waits no more")
        until(lambda: served.server.connections == 1, "its end")
    assert busy.answer()["ok"]
    until(lambda: not turns.taken, "all turns are given back")


def test_a_large_frame_is_read_beside_another_of_the_same_user_s(served: Served, stack: ExitStack) -> None:
    turns = served.dispatcher.shared.scan_turns
    first, second, other = (stack.enter_context(served.peer()) for _ in range(3))
    for peer, name in ((first, "one"), (other, "two")):
        assert peer.ask("hello", **acting(name))["ok"]
    with turns.held("operator", None):
        assert reads(other) == "payload_too_large", "a principal's frame waits for no operator's"
        second.send(unfinished(LARGE))
        until(lambda: turns.waiting == 1, "a frame of which nobody is proved yet is its user's")
    with turns.held("one", None):
        first.send(unfinished(LARGE))
        until(lambda: turns.waiting == 1, "a frame is its principal's")
        assert reads(other) == "payload_too_large"
