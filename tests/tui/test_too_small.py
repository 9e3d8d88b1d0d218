"""A terminal that is smaller than the console needs: nothing is done unseen, and it goes on once it is larger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from textual.events import MouseDown, MouseMove, MouseUp, Paste
from textual.screen import Screen

from beetle.client import Client
from beetle_tui.app import Console
from beetle_tui.dialogs import Ask, Confirm
from beetle_tui.diff import DiffScreen, DiffStep
from beetle_tui.editor import SkillEditor
from beetle_tui.help import HelpScreen
from beetle_tui.line_input import LineInput
from beetle_tui.palette import Palette
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.tui.remembering import learn
from tests.tui.showing import Shown, at, running, show
from tests.tui.skills_shown import skill, to_skills, write
from tests.tui.talking import open_workshop, pumps

LARGE, SMALL = (100, 30), (50, 14)
NOTICE = "Enlarge it, or press q to quit."


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            pumps(client)
            write(client, skill("pump"))
        yield found


async def shrink(shown: Shown, *texts: str) -> None:
    await shown.pilot.resize_terminal(*SMALL)
    await shown.until_shown("This terminal has 50 x 14.", "The console needs 60 x 16.", *(texts or (NOTICE,)))
    assert all(not each or each.startswith(" ") for each in shown.lines), "the notice is all that is shown"


async def grow(shown: Shown, *texts: str) -> None:
    await shown.pilot.resize_terminal(*LARGE)
    await shown.until(lambda: "This terminal has" not in shown.text)
    await shown.until_shown(*texts)


async def click(shown: Shown, x: int, y: int) -> None:
    """As the terminal tells of one: a pilot's goes to the screen, past the console."""
    for kind in (MouseMove, MouseDown, MouseUp):
        shown.console.post_message(kind(None, x, y, 0, 0, 1, False, False, False))
    await shown.pilot.pause()


def rows(client: Client) -> int:
    return client.inspect().event_log.rows


def test_no_key_acts_on_what_is_not_shown(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("home", "down")
        await shown.until_shown("─ Turn t2")
        table = shown.console.screen.focused
        assert isinstance(table, Table)
        chosen, before = table.index, rows(client)
        await shrink(shown)
        await shown.press("down", "x", *"gone", "enter", "y", "escape", "3", "question_mark", "ctrl+p", "t")
        assert (shown.console.screen, shown.console.current_mode) == (shown.console.area, "transcripts")
        assert (table.index, rows(client)) == (chosen, before)
        await grow(shown, "─ Turn t2", "Pump 2 is loud.")
        assert table.has_focus
        await shown.press("down", "x")
        await shown.until_shown("Delete for good", "why?")
        await shown.press("escape")
        assert rows(client) == before

    show(at(daemon), look, size=LARGE)


def test_a_dialog_is_answered_by_nothing_that_is_typed_pasted_or_clicked(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("x")
        await shown.until_shown("Delete for good", "why?")
        asked, before = shown.console.screen, rows(client)
        line = asked.query_one(LineInput)
        await shown.press(*"wrong")
        await shrink(shown)
        shown.console.post_message(Paste("pasted"))
        await shown.press(*"ly", "backspace", "enter", "y", "escape")
        assert (shown.console.screen, line.value) == (asked, "wrong")
        await grow(shown, "Delete for good", "wrong")
        await shown.press("enter")
        await shown.until_shown("Delete for good?", "y does it")
        confirm = shown.console.screen
        await shrink(shown)
        await shown.press("y", "enter", "escape", "n")
        await click(shown, 1, 1)
        assert (shown.console.screen, rows(client)) == (confirm, before)
        await grow(shown, "Delete for good?", "y does it")
        await shown.press("n")
        await shown.until_shown("Nothing was done.", "wrong")
        assert line.has_focus and rows(client) == before

    show(at(daemon), look, size=LARGE)


STEP = DiffStep("What changed", ("one note",), "-one\n+two\n")
PUSHED: tuple[Callable[[], Screen[Any]], ...] = (
    lambda: Confirm("Sure?", ["It is done."]),
    lambda: DiffScreen([STEP], 0),
)


def test_the_notice_stands_over_every_kind_of_screen_which_is_as_it_was_afterwards(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        async def covered(kind: type[Screen[Any]]) -> None:
            await shown.until(lambda: isinstance(shown.console.screen, kind))
            screen = shown.console.screen
            await shown.until(lambda: screen.focused is not None or not screen.focus_chain)
            focused, before = screen.focused, shown.lines[1:]
            await shrink(shown)
            await shown.press("escape", "y", "down", "ctrl+p", "question_mark", "tab", "ctrl+s")
            assert (shown.console.screen, screen.focused) == (screen, focused)
            await grow(shown)
            assert shown.lines[1:] == before, "but for the clock in the first line"
            await shown.press("escape")
            await shown.until(lambda: shown.console.screen is shown.console.area)

        await to_skills(shown, "1 of 1 skill")
        for pushed in PUSHED:
            screen = pushed()
            await shown.console.push_screen(screen)
            await covered(type(screen))
        for key, kind, text in (
            ("question_mark", HelpScreen, "Keys ("),
            ("ctrl+p", Palette, "> Overview"),
            ("i", SkillEditor, "^s saves"),
        ):
            await shown.press(key)
            await shown.until_shown(text)
            await covered(kind)

    show(at(daemon), look, size=LARGE)


def test_what_opens_meanwhile_is_covered_and_an_area_goes_on_reading(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shrink(shown)
        before = shown.console.area.read_at
        learn(client, "Read meanwhile.", "meanwhile")
        await shown.until(lambda: shown.console.area.read_at != before)
        shown.console.push_screen(Ask("Name"))
        await shown.until(lambda: isinstance(shown.console.screen, Ask))
        await shown.until_shown(NOTICE)
        await shown.press(*"unseen", "enter")
        assert "Name" not in shown.text
        await grow(shown, "Name")
        await shown.press(*"seen")
        assert shown.console.screen.query_one(LineInput).value == "seen"

    show(at(daemon), look, size=LARGE)


def test_a_click_does_nothing_and_what_the_mouse_was_dragging_is_let_go(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        table = shown.console.screen.focused
        assert isinstance(table, Table)
        region, chosen = table.region, table.index
        first = (region.x + 4, region.y + 1)
        await shrink(shown)
        await click(shown, *first)
        assert table.index == chosen
        shown.console.capture_mouse(table)
        await click(shown, *first)
        assert shown.console.mouse_captured is None
        await grow(shown, "─ Turn t5")
        await click(shown, *first)
        await shown.until(lambda: table.index != chosen)

    show(at(daemon), look, size=LARGE)


@pytest.mark.parametrize(("key", "typed"), [("q", "Mara"), ("ctrl+c", "Mara"), ("q", "")])
def test_a_key_that_quits_does_so_over_a_dialog_and_asks_on_the_notice_once_something_is_typed(
    daemon: Daemon, key: str, typed: str
) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.push_screen(Ask("Name"))
        await shown.until_shown("Name")
        await shown.press(*typed)
        await shrink(shown)
        await shown.press(key)
        if typed:
            again = "press q once more to quit."
            await shown.until_shown("This terminal has", "What you have typed is not saved.", again)
            await shown.press("y", "enter")
            assert shown.console.return_code is None
            await grow(shown, "Quit?", "y quits")
            await shrink(shown, again)
            await shown.press(key)
        assert shown.console.return_code == 0

    show(at(daemon), look, size=LARGE)


def test_a_person_s_own_key_quits_and_the_usual_one_no_longer(daemon: Daemon) -> None:
    async def run() -> None:
        console = Console(at(daemon), keys={"quit": "X, f10"})
        async with console.run_test(size=SMALL) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("press X,f10 to quit.")
            await shown.press("q")
            assert console.return_code is None
            await shown.press("f10")
            assert console.return_code == 0

    asyncio.run(run())
