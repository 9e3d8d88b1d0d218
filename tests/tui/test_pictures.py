"""Pictures of every area: its characters, and the styles of two themes, held against those of the last time.

`BEETLE_PICTURES=write` writes them anew, and those in docs/console.md: look at what has changed before it is committed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from string import ascii_letters

import pytest
from rich.cells import cell_len
from rich.style import Style

from beetle.client import Client
from tests.running import ROOT, Daemon
from tests.tui.pictured import Steady, masked, new_store, workshop
from tests.tui.remembering import go, typed
from tests.tui.showing import Shown
from tui.app import Console
from tui.theme import DARK, LIGHT

PICTURES = Path(__file__).parent / "pictures"
PAGE = ROOT / "docs/console.md"
WRITE = os.environ.get("BEETLE_PICTURES") == "write"
SIZES = ((80, 24), (160, 48))
NOTHING = Style()


@pytest.fixture(scope="module")
def full() -> Iterator[Daemon]:
    with workshop() as found:
        yield found


@pytest.fixture(scope="module")
def empty() -> Iterator[Daemon]:
    with new_store() as found:
        yield found


async def overview(shown: Shown) -> None:
    await go(shown, "overview")
    await shown.until_shown("masked, deleted", "Latency", "candidate waits")


async def skills(shown: Shown) -> None:
    await go(shown, "skills")
    await shown.press("down", "down")
    await shown.until_shown("3 of 3 skills", "Quieten the pump", "Listen for a minute")


async def agent_skills(shown: Shown) -> None:
    await go(shown, "skills")
    await shown.press("right", "down")
    await shown.until_shown("2 of 2 skills", "─ read-gauges")


async def devices(shown: Shown) -> None:
    await go(shown, "devices")
    await shown.until_shown("1 of 3 devices", "─ Kitchen display", "recall  ")


async def transcripts(shown: Shown) -> None:
    await go(shown, "transcripts")
    await shown.until_shown("1 of 2 conversations")


async def timeline(shown: Shown) -> None:
    await transcripts(shown)
    await shown.press("down")
    await shown.until_shown("> local/workshop")
    await shown.press("enter")
    await shown.until_shown("6 of 6 turns", "─ Turn t6")


async def memory(shown: Shown) -> None:
    await go(shown, "memory")
    await shown.until_shown("1 of 3 facts", "Mara prefers", "1 revision")


def part(title: str, *texts: str) -> Callable[[Shown], Awaitable[None]]:
    async def look(shown: Shown) -> None:
        await memory(shown)
        for _ in range(("Facts", "Policies", "Tools", "Waiting", "Proposals").index(title)):
            await shown.press("right")
        await shown.until_shown(*texts)

    return look


async def recall(shown: Shown) -> None:
    await go(shown, "recall")
    await shown.press("slash")
    await typed(shown, "loud pump")
    await shown.press("enter")
    await shown.until_shown("> 1.000", "loud pump")


async def block(shown: Shown) -> None:
    await recall(shown)
    await shown.press("right")
    await shown.until_shown("Block: ", "As a model gets it")


async def log(shown: Shown) -> None:
    await go(shown, "log")
    await shown.until_shown("chain ok for", "device_id", "─ Row")


async def help_screen(shown: Shown) -> None:
    await skills(shown)
    await shown.press("question_mark")
    await shown.until_shown("edit the skill")


async def deletion(shown: Shown) -> None:
    await skills(shown)
    await shown.press("d")
    await shown.until_shown("y does it")


SCENES: dict[str, Callable[[Shown], Awaitable[None]]] = {
    "overview": overview,
    "skills": skills,
    "agent-skills": agent_skills,
    "devices": devices,
    "transcripts": transcripts,
    "timeline": timeline,
    "memory": memory,
    "policies": part("Policies", "1 of 1 policy"),
    "tools": part("Tools", "1 of 1 registry", "Succeeded in 3"),
    "waiting": part("Waiting", "No job is open", "needs_assertion"),
    "proposals": part("Proposals", "1 of 1 proposal", "+The pump"),
    "recall": recall,
    "block": block,
    "log": log,
    "help": help_screen,
    "deletion": deletion,
}
"""What leads to each picture."""
EMPTY = {
    "overview": ("Nothing.", "Latency"),
    "skills": ("No runtime skills yet.",),
    "devices": ("No device", "QR code"),
    "transcripts": ("Nothing was said yet.",),
    "memory": ("No such fact",),
    "recall": ("/ types a query.",),
    "log": ("1 of 1 row", "Subject"),
}
"""What stands in each area of a new store."""


class Picture:
    """What a terminal shows: its lines, and of each line the styles of its cells, in the order of the themes."""

    def __init__(self, lines: list[str], styles: dict[str, list[list[str]]]) -> None:
        self.lines = lines
        self.styles = styles

    def __str__(self) -> str:
        """The lines, below them how many cells of a line have which style, and what each style is in each theme."""
        letters: dict[tuple[str, ...], str] = {}
        told: list[str] = []
        for number in range(len(self.lines)):
            cells = list(zip(*(each[number] for each in self.styles.values()), strict=True))
            runs = ((style, len(list(same))) for style, same in groupby(cells))
            told.append(" ".join(f"{letters.setdefault(s, ascii_letters[len(letters)])}{n}" for s, n in runs))
        legend = [f"{letter}: {' | '.join(style)}" for style, letter in letters.items()]
        rows = [
            f"{' ' if n == 1 else f'{n} x '}{row}".strip() for row, n in ((r, len(list(g))) for r, g in groupby(told))
        ]
        return "\n".join([*self.lines, f"=== {' | '.join(self.styles)}", *legend, "---", *rows, ""])


def style_words(style: Style) -> str:
    """A style in words."""
    marks = [name for name in ("bold", "dim", "italic", "underline", "reverse", "strike") if getattr(style, name)]
    colours = [each.name if each is not None else "default" for each in (style.color, style.bgcolor)]
    return " ".join([*marks, f"{colours[0]} on {colours[1]}"])


def cells_of(shown: Shown) -> list[list[str]]:
    """The style of every cell. A blank is as what stands before it, where that makes no difference to the eye:
    how far a text goes is told by its characters."""
    lines: list[list[str]] = []
    for strip in shown.console.screen._compositor.render_strips(shown.console.size):
        cells: list[str] = []
        before = NOTHING
        for part in strip:
            style = part.style or NOTHING
            for character in part.text:
                drawn = style.reverse or style.underline or style.strike
                if character != " " or drawn or before.reverse or before.bgcolor != style.bgcolor:
                    before = style
                cells += [style_words(before)] * cell_len(character)
        lines.append(cells)
    return lines


async def taken(shown: Shown, folder: str) -> Picture:
    """A picture of what is shown, in both themes; taken once it has stayed the same."""
    styles: dict[str, list[list[str]]] = {}
    lines: list[str] = []
    for theme in (DARK, LIGHT):
        shown.console.theme = theme.name
        await shown.pilot.pause()
        lines = await settled(shown, folder)
        styles[theme.name] = cells_of(shown)
    shown.console.theme = DARK.name
    return Picture(lines, styles)


async def settled(shown: Shown, folder: str) -> list[str]:
    """The lines, once several looks in a row have shown the same."""
    before: list[str] = []
    same = 0

    def still() -> bool:
        nonlocal before, same
        now = [masked(each, folder).rstrip() for each in shown.lines]
        same = same + 1 if now == before else 0
        before = now
        return same >= 5

    await shown.until(still)
    return before


async def pictures(daemon: Daemon, lead: Callable[[Shown], Awaitable[None]]) -> dict[str, Picture]:
    """One of each size."""
    found: dict[str, Picture] = {}
    for size in SIZES:
        console = Console(Steady(Client(daemon.socket)))
        async with console.run_test(size=size) as pilot:
            shown = Shown(console, pilot)
            await lead(shown)
            found[f"{size[0]}x{size[1]}"] = await taken(shown, str(daemon.folder))
    return found


def held(name: str, daemon: Daemon, lead: Callable[[Shown], Awaitable[None]]) -> None:
    """Hold the pictures of a scene against those that are stored, or store them."""
    for size, picture in asyncio.run(pictures(daemon, lead)).items():
        path = PICTURES / f"{name}-{size}.txt"
        if WRITE:
            PICTURES.mkdir(exist_ok=True)
            path.write_text(str(picture))
        else:
            assert str(picture).splitlines() == path.read_text().splitlines(), path.name


def steady(names: Iterable[str]) -> list[str]:
    """The scenes that are compared. The overview's bars follow the machine's own clock: test_overview looks at it."""
    return [each for each in names if each != "overview" or WRITE]


@pytest.mark.parametrize("name", steady(SCENES))
def test_it_looks_as_it_did(full: Daemon, name: str) -> None:
    held(name, full, SCENES[name])


@pytest.mark.parametrize("name", steady(EMPTY))
def test_an_area_of_a_new_store_looks_as_it_did(empty: Daemon, name: str) -> None:
    async def lead(shown: Shown) -> None:
        await go(shown, name)
        await shown.until_shown(*EMPTY[name])

    held(f"empty-{name}", empty, lead)


SHOWN = re.compile(r"(<!-- picture: ([a-z-]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def test_the_page_shows_the_pictures_as_they_are() -> None:
    def stored(name: str) -> str:
        return (PICTURES / f"{name}-80x24.txt").read_text().partition("\n=== ")[0].rstrip() + "\n"

    page = PAGE.read_text()
    if WRITE:
        page = SHOWN.sub(lambda it: it[1] + stored(it[2]) + it[4], page)
        PAGE.write_text(page)
    found = {name: text for _, name, text, _ in SHOWN.findall(page)}
    assert {"overview", "skills", "devices", "transcripts", "memory", "recall", "log"} <= set(found)
    assert {name: stored(name) for name in found} == found
