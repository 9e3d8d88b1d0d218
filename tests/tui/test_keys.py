"""Keys, help, palette, themes, and a terminal that is too small."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import ClassVar

import pytest
from textual.app import ComposeResult
from textual.binding import Binding

from beetle_tui.app import Console
from beetle_tui.area import Area, AreaScreen, Body
from beetle_tui.help import HelpScreen, keys_of
from beetle_tui.keys import bindings_of, bound_classes, plain_key
from beetle_tui.palette import MOST_LINES, Entry, Palette, found
from beetle_tui.panels import Facts
from beetle_tui.screens import SCREENS
from tests.forked import Daemon
from tests.running import ROOT
from tests.tui.showing import Shown, at, commit, painted, running, show, turn


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def test_every_key_has_an_id_and_says_what_it_does() -> None:
    for kind in bound_classes():
        bindings = bindings_of(kind)
        assert [each for each in bindings if not (each.id and each.tooltip and each.description)] == [], kind
    owners: dict[str, set[str]] = {}
    for kind in bound_classes():
        for each in bindings_of(kind):
            owners.setdefault(each.id or "", set()).add(kind.__name__)
    assert {each: kinds for each, kinds in owners.items() if len(kinds) > 1} == {}


def test_the_help_lists_every_key_of_the_screen(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        below = shown.console.screen
        await shown.press("question_mark")
        await shown.until(lambda: isinstance(shown.console.screen, HelpScreen))
        for key, active in below.active_bindings.items():
            name = plain_key(active.binding.key)
            line = next((each for each in shown.lines if active.binding.tooltip in each), "")
            assert active.binding.tooltip and name in line, f"{key}: {line}"
        await shown.press("escape")
        await shown.until(lambda: shown.console.screen is below)

    show(at(daemon), look, size=(120, 60))


def test_the_page_of_the_console_lists_the_same_keys(daemon: Daemon) -> None:
    page = (ROOT / "docs/console.md").read_text()
    rows = re.findall(
        r"^\| (`.*`) \| (.*) \|$", page.partition("## Keys")[2].partition("## Terminals")[0], re.MULTILINE
    )

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert [(keys.replace("`", ""), told) for keys, told in rows] == keys_of(shown.console.screen)

    show(at(daemon), look)


def test_the_help_scrolls_where_it_does_not_fit(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("question_mark")
        await shown.until(lambda: isinstance(shown.console.screen, HelpScreen))
        await shown.press("end")
        await shown.until_shown("to the bottom")

    show(at(daemon), look, size=(60, 16))


def test_each_area_has_its_key_and_a_line_in_the_palette(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        titles = [entry.title for entry in shown.console.commands()]
        assert titles[: len(SCREENS)] == [area.title for area in SCREENS]
        for area in SCREENS:
            await shown.press(area.key)
            await shown.until(lambda screen=area.screen: isinstance(shown.console.screen, screen))
            assert f"{area.key} {area.title} " in shown.lines[0]

    show(at(daemon), look)


def test_a_command_is_found_by_typing_and_run(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        before = shown.console.theme
        await shown.press("ctrl+p")
        await shown.until_shown("Commands (enter runs", "> Overview")
        await shown.press("down")
        await shown.until_shown(f"> {SCREENS[1].title}")
        await shown.press(*"theme")
        await shown.until_shown("> Theme")
        assert SCREENS[1].title not in "\n".join(shown.lines[1:-1])
        await shown.press("enter")
        await shown.until(lambda: shown.console.theme != before)
        assert not isinstance(shown.console.screen, Palette)

    show(at(daemon), look)


def test_what_nothing_is_called_runs_nothing(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("ctrl+p", *"zzz", "enter", "up", "down")
        await shown.until_shown("Nothing is called that.")
        await shown.press("escape")
        await shown.until(lambda: not isinstance(shown.console.screen, Palette))

    show(at(daemon), look)


def test_titles_come_before_what_only_the_explanation_holds() -> None:
    entries = [Entry("Jobs", "", "what a theme is"), Entry("Theme", "", "light"), Entry("Other", "", "")]
    assert [each.title for each in found(entries, "THEME")] == ["Theme", "Jobs"]
    assert found(entries, "theme light") == [entries[1]]
    assert found(entries, " ") == entries


def test_a_long_list_shows_the_chosen_line(daemon: Daemon) -> None:
    entries = [Entry(f"Command {number}", "refresh", "[b]text[/b]") for number in range(3 * MOST_LINES)]

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.push_screen(Palette(entries))
        await shown.until_shown("> Command 0", "[b]text[/b]")
        await shown.press(*["down"] * (len(entries) + 5))
        await shown.until_shown(f"> Command {len(entries) - 1}")

    show(at(daemon), look)


def test_without_colours_everything_is_still_told_apart(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    def reversed_texts(shown: Shown) -> list[str]:
        strips = painted(shown.console)
        return [part.text.strip() for strip in strips for part in strip if part.style and part.style.reverse]

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert shown.console.no_color
        assert reversed_texts(shown) == ["1 Overview"]
        await shown.press("ctrl+p")
        await shown.until_shown("> Overview")
        assert any(each.startswith("> Overview") for each in reversed_texts(shown))

    show(at(daemon), look)


@pytest.mark.parametrize("size", [(40, 10), (59, 24), (80, 15)])
def test_a_terminal_that_is_too_small_is_told_and_used_once_it_is_larger(daemon: Daemon, size: tuple[int, int]) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown(f"This terminal has {size[0]} x {size[1]}.", "The console needs 60 x 16.", "press q")
        assert "Daemon" not in shown.text
        await shown.pilot.resize_terminal(80, 24)
        await shown.until_shown("live, read", daemon.socket)
        assert "This terminal" not in shown.text
        assert isinstance(shown.console.focused, Body), "the keys that scroll work again"
        await shown.pilot.resize_terminal(*size)
        await shown.until_shown("This terminal has")

    show(at(daemon), look, size=size)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_each_of_these_keys_ends_the_console(daemon: Daemon, key: str) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press(key)
        assert shown.console.return_code == 0

    show(at(daemon), look)


class Other(AreaScreen):
    """An area of this test's own."""

    loads = 0

    def compose_area(self) -> ComposeResult:
        yield Facts("Other", id="other")

    async def load(self) -> None:
        Other.loads += 1
        await self.link.call("hello")
        self.query_one("#other", Facts).show([("Loads", str(Other.loads))])


class Wider(Console):
    """A console with one area more."""

    areas = (*SCREENS, Area("other", "8", "Other", "what the test needs", Other))
    BINDINGS: ClassVar = [Binding("8", "show('other')", "Other", id="other", tooltip="Other: a test", show=False)]


def test_an_area_reads_when_it_is_first_shown_and_after_a_change_that_it_missed(daemon: Daemon) -> None:
    async def run() -> None:
        console = Wider(at(daemon))
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("live, read", " 8 ")
            assert Other.loads == 0
            await shown.press("8")
            await shown.until(lambda: shown.value("Loads") == "1")
            await shown.press("1")
            await shown.until_shown("refs to evidence")
            before = int(shown.value("turns"))
            with daemon.client() as client:
                commit(client, turn(7))
            await shown.until(lambda: shown.value("turns") == str(before + 1))
            assert Other.loads == 1, "what is hidden is not read"
            await shown.press("8")
            await shown.until(lambda: shown.value("Loads") == "2")
            await shown.press("1", "8")
            await shown.until_shown("Loads")
            assert Other.loads == 2, "nothing has changed"

    asyncio.run(run())
