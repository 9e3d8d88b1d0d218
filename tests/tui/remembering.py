"""A daemon with facts, policies, tools and proposals: what the tests of Memory and Recall look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from beetle.client import Client
from beetle.contracts.envelope import DeviceAuth
from beetle_tui.screens.memory import Memory
from tests.forked import Daemon
from tests.tui.showing import Shown

PROFILE = "profile-server-linux-dev-full"
"""One that has all parts of the area."""
SAID = (
    "The pump on line 2 is loud.",
    "Cleaning the strainer helped with the pump.",
    "The spare key is in the blue box 🔑 青い箱.",
    "When was the pump serviced?",
)


@contextmanager
def remembering() -> Iterator[Daemon]:
    """A daemon that has been told what SAID says."""
    with Daemon(profile=PROFILE) as daemon, daemon.client() as client:
        turns = [
            {"turn_id": f"t{number}", "at": f"2026-03-02T08:{number:02}:00Z", "messages": [
                {"message_id": f"m{number}", "role": "user", "content": text}]}
            for number, text in enumerate(SAID)
        ]  # fmt: skip
        client.commit_transcript(conversation={"conversation_id": "workshop"}, turns=turns)
        yield daemon


def learn(client: Client, content: str, topic: str = "", **more: Any) -> str:
    """Have a fact accepted; its ref."""
    wanted = {
        "candidate_id": "c", "target": "long_term", "privacy": "shared_with_subject", "authority": "user_asserted",
        "topic": topic, "content": content, **more,
    }  # fmt: skip
    ref = client.write(kind="candidates", candidates=[wanted]).outcomes[0].ref
    assert ref is not None
    return ref


def device(client: Client, *capabilities: str) -> DeviceAuth:
    """A device that may do just that."""
    added = client.add_device(label="panel", capabilities=list(capabilities))
    return DeviceAuth(device_id=added.device.device_id, app_key=added.appKeyOnce)


async def go(shown: Shown, area: str) -> None:
    """To an area by its key."""
    key = next(each.key for each in shown.console.areas if each.name == area)
    await shown.until_shown("read ")
    await shown.press(key)
    await shown.until(lambda: shown.console.current_mode == area and shown.console.area.filled)


async def typed(shown: Shown, text: str) -> None:
    """Type into what has the keys."""
    await shown.press(*("space" if each == " " else each for each in text))


def memory(shown: Shown) -> Memory:
    """The area, which is shown."""
    screen = shown.console.area
    assert isinstance(screen, Memory)
    return screen


async def only(shown: Shown, words: str) -> None:
    """To the facts that hold these words."""
    await go(shown, "memory")
    await shown.press("slash")
    await typed(shown, words)
    await shown.press("enter")
    await shown.until_shown(f"holding “{words}”")


async def part(shown: Shown, title: str) -> None:
    """To a part of the area."""
    await go(shown, "memory")
    while title != memory(shown).part.TITLE:
        await shown.press("right")
    await shown.until(lambda: memory(shown).part.table.rows is not None)


async def dialog(shown: Shown, kind: type) -> None:
    """Until a dialog of that kind is shown."""
    await shown.until(lambda: isinstance(shown.console.screen, kind))
