"""An export holds every row of its list, whole, however little of it was read for the screen."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from beetle.client import Client
from beetle_tui.rows import PAGE
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, go
from tests.tui.showing import Shown, at, exported, show, turn
from tests.tui.skills_shown import skill, write

MANY = PAGE + 20
LONG = "a word " * 40
"""More than a line of any terminal."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as started, started.client() as client:
        said = [turn(number, f"{number}: {LONG}") for number in range(MANY)]
        client.commit_transcript(conversation={"conversation_id": "c000"}, turns=said)
        for number in range(1, MANY):
            client.commit_transcript(conversation={"conversation_id": f"c{number:03}"}, turns=[turn(1)])
            client.append_thought(chain_key="plan", agent_id="a", thought_type="Idea", content=f"{number}: {LONG}")
            client.add_device(label=f"Panel {number}", device_id=f"d{number:03}", capabilities=("recall",))
        write(client, *(skill(f"s{number:03}", content=f"{number}: {LONG}") for number in range(MANY)))
        yield started


async def to_conversation(shown: Shown) -> None:
    shown.console.go("evidence:local/c000/t5")
    await shown.until_shown(f"of {MANY} turns")


async def to_thoughts(shown: Shown) -> None:
    await shown.until_shown("1 of 1 chain")
    await shown.press("enter")
    await shown.until_shown(f"1 of {MANY - 1} thoughts")


async def stay(shown: Shown) -> None:
    del shown


class Export(NamedTuple):
    """A list: its area, the way to it, what names a row, and what is there."""

    area: str
    reach: Callable[[Shown], Awaitable[None]]
    named: Callable[[Any], Any]
    there: Callable[[Client], set[Any]]


EXPORTS: Mapping[str, Export] = {
    "conversations": Export("transcripts", stay, lambda row: row["conversation_id"],
                            lambda client: {f"c{number:03}" for number in range(MANY)}),
    "turns": Export("transcripts", to_conversation, lambda row: row["messages"][0]["content"],
                    lambda client: {f"{number}: {LONG}" for number in range(MANY)}),
    "devices": Export("devices", stay, lambda row: row["device_id"],
                      lambda client: {f"d{number:03}" for number in range(1, MANY)}),
    "skills": Export("skills", stay, lambda row: row["name"],
                     lambda client: {f"runtime_skill__s{number:03}" for number in range(MANY)}),
    "thoughts": Export("chains", to_thoughts, lambda row: row["content"],
                       lambda client: {f"{number}: {LONG}" for number in range(1, MANY)}),
    "log": Export("log", stay, lambda row: row["seq"],
                  lambda client: set(range(1, client.inspect().event_log.rows + 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_every_row_is_written_whole_however_few_were_read(daemon: Daemon, client: Client, name: str) -> None:
    wanted = EXPORTS[name]

    async def look(shown: Shown) -> None:
        await go(shown, wanted.area)
        await wanted.reach(shown)
        lines = [json.loads(line) for line in await exported(shown.console.area)]
        found = [wanted.named(line) for line in lines]
        assert len(found) == len(set(found)) >= MANY - 1
        assert set(found) == wanted.there(client)

    show(at(daemon), look, size=(60, 16))


def test_a_single_thought_is_written_whole(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await to_thoughts(shown)
        await shown.press("enter")
        await shown.until(lambda: not isinstance(shown.console.focused, Table))
        (line,) = await exported(shown.console.area)
        assert json.loads(line)["content"] == f"{MANY - 1}: {LONG}"

    show(at(daemon), look)
