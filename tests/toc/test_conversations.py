"""Whole conversations with their dates: every bullet rests on events, and the ways to the nodes make no difference."""

from __future__ import annotations

import json
import random

import pytest

from beetle import MemoryRuntime
from tests.toc.conftest import LOCOMO, Plain, ask, build, children, everything, ingest, locomo, open_memory

PIECE = 150
"""Events that come between two runs of the jobs."""


def places() -> list[int]:
    """The conversations, the shortest one first."""
    if LOCOMO is None:
        pytest.skip("the conversations are not here")
    lengths = [sum(len(each["turns"]) for each in one["sessions"]) for one in json.loads(LOCOMO.read_text())]
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def browsed(memory: MemoryRuntime) -> dict[str, Plain]:
    """What browsing meets from the years down to the segments; each level holds what the one above says."""
    found = everything(memory)
    assert {each["level"] for each in found.values()} == {"year", "month", "week", "day", "segment"}
    for each in found.values():
        below = children(memory, each["node_id"])
        assert [child["node_id"] for child in below] == list(each["child_node_ids"])
        assert all(child["end_time_ms"] >= child["start_time_ms"] for child in below)
    return found


def check_bullets(memory: MemoryRuntime, nodes: dict[str, Plain], said: dict[str, str]) -> None:
    """Each bullet, of each level, leads to ingested events that hold it."""
    grips: dict[str, tuple[str, ...]] = {}
    for each in nodes.values():
        assert each["bullets"] and each["keywords"], each["node_id"]
        for bullet in each["bullets"]:
            (grip_id,) = bullet["grip_ids"]
            if grip_id not in grips:
                excerpt = ask(memory, "grip.expand", {"grip_id": grip_id})["excerpt_events"]
                assert all(event["text"] == said[event["event_id"]] for event in excerpt)
                grips[grip_id] = tuple(event["text"] for event in excerpt)
            assert any(bullet["text"] in text for text in grips[grip_id]), (each["node_id"], bullet)


def check(place: int) -> int:
    """Everything that is to be true of a conversation; the number of its nodes."""
    events = locomo(place)
    with open_memory() as memory:
        ingest(memory, *events)
        build(memory)
        nodes = browsed(memory)
        check_bullets(memory, nodes, {each["event_id"]: each["text"] for each in events})
        assert ask(memory, "admin.rebuild_toc")["changed_nodes"] == 0
        assert everything(memory) == nodes
    shuffled = random.Random(place).sample(events, len(events))
    with open_memory() as memory:
        for first in range(0, len(shuffled), PIECE):
            ingest(memory, *shuffled[first : first + PIECE])
            build(memory)
        assert everything(memory) == nodes
    return len(nodes)


def test_a_conversation_is_the_same_however_its_events_came_and_every_bullet_is_its_events() -> None:
    assert check(places()[0]) > 40


@pytest.mark.slow
def test_so_is_every_conversation() -> None:
    for place in places()[1:]:
        assert check(place) > 40
