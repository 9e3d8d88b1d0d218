"""Pictures of every screen: its characters, and the styles of two themes, held against those of the last time.

`BEETLE_PICTURES=write` writes them anew, those in docs/console.md, and docs/console.svg: look at what has changed
before it is committed.
With `BEETLE_PICTURES_SVG=FOLDER` each is also drawn there.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import groupby
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
from rich.cells import cell_len
from rich.style import Style

from beetle.client import Client
from beetle_tui.app import Console
from beetle_tui.text import DRIVES_A_TERMINAL
from tests.running import ROOT
from tests.tui.pictured import WORLDS, World, masked
from tests.tui.scenes import OWN, SCENES, Scene, Visit
from tests.tui.showing import painted
from tests.tui.steady import Steady

PICTURES = Path(__file__).parent / "pictures"
PAGE = ROOT / "docs/console.md"
WRITE = os.environ.get("BEETLE_PICTURES") == "write"
DRAWN = os.environ.get("BEETLE_PICTURES_SVG")
OF_README, THEME_OF_README = "memory-80x24", "beetle-dark"
"""The picture in the README, docs/console.svg: written anew with the others."""
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
LOOKS = 3
NOTHING = Style()
READING = frozenset({"read", "rows", "more", "detail", "look", "anew", "list", "links", "log", "turn", "go", "open",
                     "look-each"})  # fmt: skip
"""Work of the console's after which the screen may change."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[[str], World]]:
    """Worlds that no scene changes, by name: each is made when it is first wanted."""
    made: dict[str, World] = {}
    with ExitStack() as stack:

        def world(name: str) -> World:
            if name not in made:
                made[name] = stack.enter_context(WORLDS[name]())
            return made[name]

        yield world


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs by itself: the seconds of long work, the pauses before a lost daemon is tried."""
    times = iter([0.0])
    monkeypatch.setattr("beetle_tui.working.seconds", lambda: next(times, 12.0))
    monkeypatch.setattr("beetle_tui.link.FIRST_PAUSE_S", 30)


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


@cache
def style_words(style: Style) -> str:
    """A style in words."""
    marks = [name for name in ("bold", "dim", "italic", "underline", "reverse", "strike") if getattr(style, name)]
    colours = [each.name if each is not None else "default" for each in (style.color, style.bgcolor)]
    return " ".join([*marks, f"{colours[0]} on {colours[1]}"])


def cells_of(shown: Visit) -> list[list[str]]:
    """The style of every cell. A blank is as what stands before it, where that makes no difference to the eye:
    how far a text goes is told by its characters."""
    lines: list[list[str]] = []
    for strip in painted(shown.console):
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


async def taken(shown: Visit, scene: Scene, name: str) -> Picture:
    """A picture of what is shown, in every theme of the scene; taken once it has stayed the same."""
    styles: dict[str, list[list[str]]] = {}
    lines: list[str] = []
    for theme in scene.themes:
        shown.console.theme = theme.name
        await shown.pilot.pause()
        lines = await settled(shown)
        styles[theme.name] = cells_of(shown)
        if DRAWN:
            drawing = shown.console.export_screenshot(title="beetle tui")
            Path(DRAWN, f"{name}-{theme.name}.svg").write_text(drawing)
        if WRITE and (name, theme.name) == (OF_README, THEME_OF_README):
            # Without fonts from elsewhere: whoever reads the page is to ask nobody else.
            drawing = FONTS.sub("", shown.console.export_screenshot(title="beetle tui"))
            Path(ROOT, "docs/console.svg").write_text(drawing)
    return Picture(lines, styles)


async def settled(shown: Visit) -> list[str]:
    """The lines, once nothing is read any more and several looks in a row have shown the same."""
    before: list[str] = []
    same = 0

    def still() -> bool:
        nonlocal before, same
        area = shown.console.area
        reading = area._reading or area._timer is not None
        reading = reading or any(each.group in READING and not each.is_finished for each in shown.console.workers)
        now = [masked(each, str(shown.daemon.folder)).rstrip() for each in shown.lines]
        same = same + 1 if now == before and not reading else 0
        before = now
        return same >= LOOKS

    await shown.until(still)
    assert [each for each in before if DRIVES_A_TERMINAL.search(each)] == []
    return before


async def pictures(name: str, scene: Scene, world: World) -> dict[str, Picture]:
    """One of each size: the terminal is made larger and smaller under it."""
    found: dict[str, Picture] = {}

    def connect() -> Steady:
        return scene.source(Client(world.daemon.socket, auth=world.auth))

    console = Console(connect(), connect, theme=scene.themes[0].name)
    async with console.run_test(size=scene.sizes[0]) as pilot:
        shown = Visit(console, pilot, world.daemon)
        await scene.lead(shown)
        for width, height in scene.sizes:
            await pilot.resize_terminal(width, height)
            found[f"{width}x{height}"] = await taken(shown, scene, f"{name}-{width}x{height}")
    return found


EACH = 3
"""In a quick run one scene of so many is drawn in all its sizes, the others in their first; in the slow suite, all."""


def drawn() -> list[Any]:
    """Each scene, and whether in all its sizes."""
    whole = [name for number, name in enumerate(SCENES) if WRITE or number % EACH == 0 or len(SCENES[name].sizes) == 1]
    first = [pytest.param(name, False, id=name) for name in SCENES if name not in whole]
    later = [pytest.param(name, True, id=f"{name}-all", marks=pytest.mark.slow) for name in SCENES if name not in whole]
    return [*(pytest.param(name, True, id=name) for name in whole), *first, *later]


@pytest.mark.parametrize(("name", "whole"), drawn())
def test_it_looks_as_it_did(shared: Callable[[str], World], name: str, whole: bool) -> None:
    scene = SCENES[name]
    scene = scene if whole else scene._replace(sizes=scene.sizes[:1])
    with ExitStack() as stack:
        world = stack.enter_context(WORLDS[scene.world]()) if scene.world in OWN else shared(scene.world)
        found = asyncio.run(pictures(name, scene, world))
    for size, picture in found.items():
        path = PICTURES / f"{name}-{size}.txt"
        if WRITE:
            PICTURES.mkdir(exist_ok=True)
            path.write_text(str(picture))
        else:
            assert str(picture).splitlines() == path.read_text().splitlines(), path.name


@pytest.mark.skipif(WRITE, reason="they are being written")
def test_every_stored_picture_is_of_a_scene() -> None:
    known = {f"{name}-{width}x{height}.txt" for name, scene in SCENES.items() for width, height in scene.sizes}
    assert {each.name for each in PICTURES.iterdir()} == known


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
