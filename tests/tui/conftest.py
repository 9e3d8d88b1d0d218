"""What many tests of the console ask for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from beetle.client import Client
from tests.forked import Daemon

ROUNDS = 3


async def nothing_to_do(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until the loop has run all that it was given."""
    del min_sleep
    loop = asyncio.get_running_loop()
    end = time.monotonic() + max_sleep
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
        while loop._ready and time.monotonic() < end:  # type: ignore[attr-defined] - asyncio has no word for it
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def keys_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot sleeps at least 40 ms for a key, and longer while anything of the process runs."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", nothing_to_do)
    monkeypatch.setattr("textual.app.wait_for_idle", nothing_to_do)


PARSED: dict[tuple[Any, ...], list[RuleSet]] = {}
parse_rules = Stylesheet._parse_rules


def parsed_once(sheet: Stylesheet, css: str, **more: Any) -> list[RuleSet]:
    """The rules of a style sheet. A sheet keeps what it has parsed for itself; a process that runs hundreds of consoles
    keeps it for all of them, by the colours of the theme that it was parsed with."""
    key = (css, *more.values(), frozenset(sheet._variables.items()))
    if key not in PARSED:
        PARSED[key] = parse_rules(sheet, css, **more)
    return PARSED[key]


@pytest.fixture(autouse=True)
def styles_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console's start and each change of its theme parse all style sheets: a tenth of the time of these tests."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", parsed_once)


render_update = Compositor.render_update


def only_asked_for(compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False) -> Any:
    """A screen that is asked for whole, as a drawing of it is; else nothing, and it counts as painted."""
    if full:
        return render_update(compositor, full, screen_stack, simplify)
    compositor._dirty_regions.clear()
    return None


@pytest.fixture(autouse=True)
def painted_when_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console without a terminal paints each change for nobody, up to sixty times a second: here it is painted when
    the test looks at it. tests/tui/test_terminal*.py run the real thing."""
    monkeypatch.setattr(Compositor, "render_update", only_asked_for)


@pytest.fixture(autouse=True)
def reads_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is read a second after the reading before it, and devices are looked at every five seconds; no test
    waits for that but the one that tests it."""
    monkeypatch.setattr("beetle_tui.area.SECONDS_BETWEEN_READS", 0.1)
    monkeypatch.setattr("beetle_tui.screens.devices.LOOK_SECONDS", 0.5)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client at the test's own daemon."""
    with daemon.client() as found:
        yield found
