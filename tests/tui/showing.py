"""A console without a terminal, on real daemons and stores, and what its screen shows."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.strip import Strip

from beetle.client import Client
from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.open import open_embedded
from beetle_tui.app import Console
from beetle_tui.area import AreaScreen
from beetle_tui.source import DaemonSource, Source, StoreSource
from beetle_tui.title_bar import TitleBar
from tests.forked import Daemon

PROFILE = "profile-linux-device-standalone-memory"
SECONDS = 60.0
LOOK_ANYWAY_S = 0.2
SIZE = (80, 24)


class Shown:
    """A running console under test."""

    def __init__(self, console: Console, pilot: Pilot[Any]) -> None:
        self.console = console
        self.pilot = pilot
        self.displays = 0
        """How often something was displayed."""
        console.post_display_hook = self._displayed  # type: ignore[method-assign]

    def _displayed(self) -> None:
        self.displays += 1

    @property
    def lines(self) -> list[str]:
        """What is on the screen, line by line."""
        return [strip.text.rstrip() for strip in painted(self.console)]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def value(self, label: str) -> str:
        """What stands behind a label, up to the end of its box."""
        line = next((each for each in self.lines if f" {label} " in each), "")
        return line.partition(f" {label} ")[2].partition("│")[0].strip()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + SECONDS
        while not happened():
            if time.monotonic() > end:
                raise AssertionError(f"did not happen; the screen shows:\n{self.text}\n{self._doing()}")
            # The pilot's own pause has every widget of the screen answer each time. A look paints the screen, so looks
            # are few.
            await asyncio.sleep(0.02)
        await self.pilot.pause()  # what changed together is laid out together

    def _doing(self) -> str:
        """What the console is at: its screens, the workers that have not ended, where each task waits."""
        at = io.StringIO()
        print(self.console.current_mode, self.console.screen_stack, self.state, file=at)
        print(*(each for each in self.console.workers if not each.is_finished), sep="\n", file=at)
        for task in asyncio.all_tasks():
            task.print_stack(limit=4, file=at)
        return at.getvalue()

    @property
    def state(self) -> str:
        """How current the shown area is, in the words for which the title bar may have no room."""
        bars = self.console.screen.query(TitleBar)
        return bars.first().state if bars else ""

    async def until_shown(self, *texts: str) -> None:
        """Wait until all of these are on the screen; the state of the area counts as if it had all the room."""

        # Laying out a screen takes longer than the pause between two looks: only what was displayed since is looked at.
        looked, last = -1, 0.0

        def all_shown() -> bool:
            nonlocal looked, last
            if self.displays == looked and time.monotonic() < last + LOOK_ANYWAY_S:
                return False
            looked, last = self.displays, time.monotonic()
            shown = "\n".join((self.text, self.state))
            return all(each in shown for each in texts)

        await self.until(all_shown)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


def painted(console: Console) -> list[Strip]:
    """What the terminal would show, with what shines through from the screens below."""
    visible_screen_stack.set(console._background_screens)
    return console.screen._compositor.render_strips(console.size)


def show(
    source: Source,
    look: Callable[[Shown], Awaitable[None]],
    reconnect: Callable[[], Source] | None = None,
    size: tuple[int, int] = SIZE,
) -> None:
    """Run a console and look at it."""

    async def run() -> None:
        console = Console(source, reconnect)
        async with console.run_test(size=size) as pilot:
            await look(Shown(console, pilot))

    asyncio.run(run())


async def exported(area: AreaScreen) -> list[str]:
    """The lines of an export."""
    return [line async for page in area.exported() for line in page]


def at(daemon: Daemon, **options: Any) -> DaemonSource:
    """A source at a daemon."""
    return DaemonSource(Client(daemon.socket, **options))


def opened(path: str, profile: str = PROFILE, backend: str | None = None) -> StoreSource:
    """A source on a store of this process."""
    embedded = open_embedded(
        store=path, profile=profile, backend=backend, identity=MemoryIdentity(), scope=MemoryScope(), transport="cli"
    )
    return StoreSource(embedded)


def turn(number: int, text: str = "The pump is loud.") -> dict[str, Any]:
    """One turn of one message."""
    message = {"message_id": f"m{number}", "role": "user", "content": text}
    return {"turn_id": f"t{number}", "at": "2026-03-02T08:12:00Z", "messages": [message]}


def commit(client: Client, *turns: dict[str, Any]) -> None:
    client.commit_transcript(conversation={"conversation_id": "workshop"}, turns=list(turns))


@contextmanager
def running() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as daemon:
        yield daemon
