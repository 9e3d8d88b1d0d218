"""What every area stands in: going to a ref, work that takes long, the filter, copies and exports."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from beetle.contracts.control import StoreVerifyReport
from beetle.contracts.errors import BeetleError, DeadlineExceeded, NotFound
from beetle_tui.app import Console
from beetle_tui.area import Area, AreaScreen, Body
from beetle_tui.dialogs import Ask, Working
from beetle_tui.exporting import COPY_BYTES, Pages, copy
from beetle_tui.filter import FilterBar
from beetle_tui.line_input import MOST, LineInput
from beetle_tui.link import Cancelled
from beetle_tui.screens import SCREENS
from beetle_tui.split import Detail, Split
from tests.forked import Daemon
from tests.tui.showing import Shown, at, opened, running, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


class Plain(AreaScreen):
    """An area that shows what it was told to."""

    SCROLLS: ClassVar[bool] = True
    chosen: str | None = None

    def compose_area(self) -> ComposeResult:
        yield Static("first line\nsecond line", markup=False)
        yield FilterBar("rows that hold this")
        yield Static("", id="said", markup=False)

    async def load(self) -> None:
        await self.link.call("hello")

    def copied(self) -> str | None:
        return self.chosen

    async def exported(self) -> Pages:
        yield ["first line"]
        yield ["second line"]

    def open_ref(self, ref: str) -> None:
        self._say(f"ref {ref}")

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        self._say(f"filter <{event.text}>")

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(text)


class Framed(Console):
    """A console of the overview and an area of this test's own, in the place of the skills."""

    areas = (SCREENS[0], Area("skills", "2", "Plain", "what the test needs", Plain))


def framed(daemon: Daemon, look: Any, **options: Any) -> None:
    async def run() -> None:
        console = Framed(at(daemon, **options))
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.press("2")
            await shown.until_shown("live, read", "second line")
            await look(shown)

    asyncio.run(run())


def plain(shown: Shown) -> Plain:
    assert isinstance(shown.console.screen, Plain)
    return shown.console.screen


def test_a_ref_is_shown_by_the_area_of_its_plane_even_when_that_was_never_open(daemon: Daemon) -> None:
    async def run() -> None:
        console = Framed(at(daemon))
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("live, read")
            console.go("procedural:runtime_skill__x/2")
            await shown.until_shown("ref procedural:runtime_skill__x/2", "2 Plain")
            console.go("agent_skill:a/b")
            await shown.until_shown("ref agent_skill:a/b")

    asyncio.run(run())


@pytest.mark.parametrize("ref", ["chunks:7", "evidence:local/a/b", "\x1b[2Jno ref", ""])
def test_a_ref_that_no_area_shows_is_told_where_one_is(daemon: Daemon, ref: str) -> None:
    async def look(shown: Shown) -> None:
        shown.console.go(ref)
        await shown.until_shown("no area of the console shows")
        assert "\x1b" not in shown.text

    framed(daemon, look)


def test_long_work_leaves_the_other_calls_alone(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        link = shown.console.link
        work = asyncio.ensure_future(link.long("store.verify", {"pages": True}))
        await link.call("hello")
        report = await work
        assert isinstance(report, StoreVerifyReport) and report.clean

    framed(daemon, look)


def test_long_work_of_a_silent_daemon_is_called_off_at_once(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        stops = []
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            work = asyncio.ensure_future(shown.console.link.long("store.verify", None, stops.append))
            await shown.until(lambda: bool(stops))
            stops[0]()
            with pytest.raises(Cancelled):
                await work
            stops[0]()
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        await shown.press("r")
        await shown.until_shown("live, read")

    framed(daemon, look)


def test_long_work_that_is_refused_raises_what_was_answered(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        with pytest.raises(NotFound):
            await shown.console.link.long("snapshot.verify", {"snapshot_id": "none"})

    framed(daemon, look)


def test_long_work_on_a_store_of_this_process_runs_too(tmp_path: Path) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        report = await shown.console.link.long("store.verify")
        assert isinstance(report, StoreVerifyReport) and report.clean

    show(opened(str(tmp_path / "own.db")), look)


def test_a_dialog_says_how_long_work_has_been_and_esc_calls_it_off(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        console = shown.console
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            console.run_worker(console.area.ask_long("Verify the store", "store.verify"))
            await shown.until_shown("Verify the store", "1 second so far", "esc calls it off")
            await shown.press("escape")
            await shown.until_shown("Verify the store: called off.")
            assert not isinstance(console.screen, Working)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)

    framed(daemon, look)


def test_work_that_is_refused_is_told_with_its_hint_and_work_that_is_done_answers(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        console = shown.console
        refused = console.run_worker(console.area.ask_long("Verify", "snapshot.verify", {"snapshot_id": "none"}))
        await shown.until_shown("not_found: ")
        assert await refused.wait() is None
        done = console.run_worker(console.area.ask_long("Verify", "store.verify"))
        assert isinstance(await done.wait(), StoreVerifyReport)
        await shown.until(lambda: console.screen is console.area)
        assert "not_found" not in shown.text, "what was told before is over"

    framed(daemon, look)


def test_a_filter_is_typed_applied_shown_and_cleared(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        assert "/ Filter" in shown.lines[-1]
        await shown.press("slash")
        await shown.until_shown("rows that hold this")
        await shown.press(*"pump q", "enter")
        await shown.until_shown("filter <pump q>")
        assert " / " in shown.text and plain(shown).query_one(FilterBar).shown
        assert isinstance(shown.console.focused, Body), "the keys of the area work again"
        await shown.press("slash", "escape")
        await shown.until_shown("filter <>")
        assert not plain(shown).query_one(FilterBar).shown
        assert isinstance(shown.console.focused, Body)

    framed(daemon, look)


def test_where_there_is_no_list_there_is_no_filter(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.press("1")
        await shown.until_shown("Daemon")
        assert "Filter" not in shown.lines[-1]

    framed(daemon, look)


def test_a_pasted_megabyte_is_cut_and_cannot_drive_the_terminal(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        from textual.events import Paste

        shown.console.push_screen(Ask("Name"))
        await shown.until(lambda: isinstance(shown.console.screen, Ask))
        line = shown.console.screen.query_one(LineInput)
        line.post_message(Paste("\x1b]0;owned\x07two\nlines\u202e " + "宽" * 1_000_000))
        await shown.until(lambda: len(line.value) == MOST)
        assert line.value.startswith(" ]0;owned two lines ")
        assert "\x1b" not in shown.text and "\u202e" not in shown.text
        line.post_message(Paste("more"))
        await shown.press("x")
        await shown.pilot.pause()
        assert len(line.value) == MOST
        await shown.press("escape")

    framed(daemon, look)


def test_what_is_chosen_is_copied_harmless(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.press("y")
        await shown.until_shown("nothing is chosen that could be copied")
        plain(shown).chosen = "one\ntwo\x1b[2J 宽"
        await shown.press("y")
        await shown.until_shown("16 characters handed to the terminal's clipboard")
        assert shown.console.clipboard == "one\ntwo\\x1b[2J 宽"

    framed(daemon, look)


def test_what_no_terminal_takes_is_not_copied(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        assert "handed" in copy(shown.console, "a" * COPY_BYTES)
        assert "too much" in copy(shown.console, "a" * (COPY_BYTES + 1))
        assert len(shown.console.clipboard) == COPY_BYTES

    framed(daemon, look)


def test_what_is_shown_is_written_to_a_new_file_that_only_its_owner_may_read(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "shown.txt"

    async def look(shown: Shown) -> None:
        await shown.press("e")
        await shown.until_shown("Export", "whole, to a new file")
        await shown.press("enter")
        await shown.until_shown("name a file")
        shown.console.screen.query_one(LineInput).value = str(file)
        await shown.press("enter")
        await shown.until_shown("lines written to")

    framed(daemon, look)
    assert file.read_text().splitlines()[:2] == ["first line", "second line"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["file", "link", "folder", "missing folder"])
def test_an_export_overwrites_nothing_and_says_why(daemon: Daemon, tmp_path: Path, kind: str) -> None:
    kept, target = tmp_path / "kept", tmp_path / "target"
    kept.write_text("kept")
    match kind:
        case "file":
            target.write_text("kept")
        case "link":
            target.symlink_to(kept)
        case "folder":
            target.mkdir()
        case _:
            target = tmp_path / "missing" / "file"

    async def look(shown: Shown) -> None:
        await shown.press("e")
        await shown.until(lambda: isinstance(shown.console.screen, Ask))
        shown.console.screen.query_one(LineInput).value = str(target)
        await shown.press("enter")
        await shown.until_shown("invalid_request:" if kind == "missing folder" else "conflict:", "Hint: name a")

    framed(daemon, look)
    assert kept.read_text() == "kept"
    assert kind != "file" or target.read_text() == "kept"


@pytest.mark.parametrize("many", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_a_storm_of_sizes_leaves_a_screen_that_fits(daemon: Daemon, many: int) -> None:
    sizes = random.Random(6)

    async def look(shown: Shown) -> None:
        for _ in range(many):
            await shown.pilot.resize_terminal(sizes.randint(1, 220), sizes.randint(1, 70))
            if sizes.random() < 0.2:
                await shown.press("1", "2", "question_mark", "escape")
        await shown.pilot.resize_terminal(80, 24)
        await shown.until_shown("second line", "q Quit")
        assert (len(shown.lines), max(map(len, shown.lines))) <= (24, 80)

    framed(daemon, look)


def test_a_page_is_folded_to_its_room_though_textual_sends_no_resize(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.press("3")
        await shown.until_shown("No device", "A device speaks")
        page, split = shown.console.screen.query_one(Detail), shown.console.screen.query_one(Split)
        wide = page.texts
        split.styles.width = 40
        # What Textual does when a style has changed, and then somebody asks where the page is before it is laid out.
        for each in (split, *split.ancestors):
            if isinstance(each, Widget):
                each._clear_arrangement_cache()
        shown.console.screen._compositor._full_map_invalidated = True
        assert shown.console.screen.find_widget(page).region.width == 40
        await shown.until(lambda: page.size.width == 38 and page.texts != wide)
        assert max(map(len, page.texts)) <= 37

    show(at(daemon), look)


def test_a_capability_that_is_taken_away_is_told_and_found_again_when_it_is_given() -> None:
    mine = f'[principals.me]\nuid = {os.getuid()}\nviews = ["host_ui"]\ncapabilities = ["inspect", "transcript"]\n'
    with running() as daemon:
        config = daemon.folder / "beetle.toml"
        config.touch()
        daemon.stop()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BEETLE_CONFIG", str(config))
            daemon.start()

        async def look(shown: Shown) -> None:
            await shown.until_shown("live, read", "operator")
            await shown.press("3")
            await shown.until_shown("3 Devices")
            await shown.until(lambda: shown.console.area.filled)
            config.write_text(mine)
            os.kill(daemon.pid, signal.SIGHUP)
            # The subscription ends with the rights; the console comes back as who it is now.
            await shown.until_shown("forbidden: ")
            await shown.press("1")
            await shown.until_shown("live, read")
            await shown.until(lambda: shown.value("Caller") == "me")
            config.write_text("")
            os.kill(daemon.pid, signal.SIGHUP)
            await shown.until_shown("live, read", "operator; ")
            await shown.press("3")
            await shown.until(lambda: shown.console.area.filled)
            assert "forbidden" not in shown.text

        show(at(daemon), look, lambda: at(daemon))


def test_what_is_lost_is_told_before_long_work_begins(daemon: Daemon) -> None:
    with running() as own:

        async def look(shown: Shown) -> None:
            await shown.until_shown("live, read")
            own.kill()
            await shown.until_shown("The daemon is lost")
            with pytest.raises(BeetleError) as raised:
                await shown.console.link.long("store.verify")
            assert not isinstance(raised.value, DeadlineExceeded)

        show(at(own), look, lambda: at(own))
