"""The last line: what the keys do, in whatever room there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.dom import DOMNode

from beetle_tui.app import Console
from beetle_tui.footer import GAP, MORE, Footer, Hint, line_of
from beetle_tui.help import HelpScreen
from beetle_tui.palette import Palette
from beetle_tui.too_small import SMALLEST
from tests.forked import Daemon
from tests.tui.showing import Shown, at, commit, running, show, turn

NODE = DOMNode()
ALWAYS = (Hint("?", "Help", "help", NODE), Hint("q", "Quit", "quit", NODE))
END = "? Help  q Quit "
HINTS = st.lists(
    st.tuples(st.sampled_from(("a", "^p", "esc", "page up")), st.text("Filter鍵", min_size=1, max_size=12)), max_size=12
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            commit(client, turn(1))
        yield found


def text_of(hints: list[Hint], width: int) -> str:
    return "".join(
        f"{each.key} {each.told}" if isinstance(each, Hint) else each for each in line_of(hints, ALWAYS, width)
    )


@given(HINTS, st.booleans(), st.integers(SMALLEST[0], 200))
def test_it_is_one_line_that_ends_with_help_and_quit(keys: list[tuple[str, str]], palette: bool, width: int) -> None:
    hints = [Hint(key, told, f"act{number}", NODE) for number, (key, told) in enumerate(keys)]
    hints += [Hint("^p", "Commands", "palette", NODE)] * palette
    line = text_of(hints, width)
    assert cell_len(line) == width
    assert line.endswith(END)
    shown = [each for each in line_of(hints, ALWAYS, width) if isinstance(each, Hint) and each not in ALWAYS]
    assert shown == hints[: len(shown)], "the first ones are the most important"
    assert (MORE in line) == (len(shown) < len(hints))


def test_a_turn_that_can_be_masked_and_unmasked_has_both_or_a_mark() -> None:
    words = ("/ Filter", "v View", "d Date", "f Search", "m Mask", "u Unmask", "x Delete", "^p Commands")
    hints = [Hint(key, told, told, NODE) for key, told in (each.split(" ") for each in words)]
    assert text_of(hints, 80).startswith(" / Filter  v View  d Date  f Search  m Mask  u Unmask  …  ")
    assert text_of(hints, 120).startswith(f" {GAP.join(words[:-1])}  ")


@pytest.mark.parametrize("width", [60, 72, 80, 100, 160])
def test_every_area_says_how_to_get_help_and_out(daemon: Daemon, width: int) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        for area in shown.console.areas:
            shown.console.switch_mode(area.name)
            await shown.until(lambda name=area.name: shown.console.current_mode == name and shown.console.area.filled)
            await shown.until(lambda: f"{shown.lines[-1]} ".endswith(END))
            assert shown.console.area.query_one(Footer).size.height == 1

    show(at(daemon), look, size=(width, 24))


def test_a_key_of_ones_own_is_named_where_the_usual_one_stood(daemon: Daemon) -> None:
    async def run() -> None:
        console = Console(at(daemon), keys={"skill-edit": "ctrl+e", "filter": "f3,F", "quit": "Q"})
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("read ")
            await shown.press("2")
            await shown.until(lambda: shown.lines[-1].startswith(" f3 Filter  ^e Edit  o On/off  "))
            assert shown.lines[-1].endswith("? Help  Q Quit")

    asyncio.run(run())


async def click(shown: Shown, word: str) -> None:
    """On a word of the last line."""
    footer = shown.console.screen.query_one(Footer)
    await shown.pilot.click(footer, offset=(shown.lines[-1].index(word), 0))


def test_a_click_does_what_the_key_does(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        await click(shown, "Commands")
        await shown.until(lambda: isinstance(shown.console.screen, Palette))
        await shown.press("escape")
        await shown.press("7")
        await shown.until_shown("s Order", "chain ok")
        await click(shown, "s Order")
        await shown.until_shown("oldest first")
        await shown.press("2")
        await shown.until(lambda: MORE in shown.lines[-1])
        await click(shown, MORE)
        await shown.until(lambda: isinstance(shown.console.screen, HelpScreen))
        await shown.press("escape")
        await shown.until(lambda: bool(shown.console.screen.query(Footer)))
        await shown.pilot.click(Footer, offset=(0, 0))
        await click(shown, "q Quit")
        await shown.until(lambda: shown.console.return_code == 0)

    show(at(daemon), look)


def test_where_letters_are_typed_it_names_the_keys_that_still_work(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        await shown.press("2")
        await shown.until_shown("/ Filter", "o On/off")
        await shown.press("slash")
        await shown.until(lambda: shown.lines[-1].startswith(" esc Clear  "))
        assert shown.lines[-1].endswith("^p Commands  f1 Help  ^c Quit")
        await shown.press("f1")
        await shown.until(lambda: isinstance(shown.console.screen, HelpScreen))

    show(at(daemon), look)


def test_what_cannot_be_reached_while_letters_are_typed_is_faint_and_can_be_clicked(daemon: Daemon) -> None:
    async def run(**keys: str) -> None:
        console = Console(at(daemon), keys=keys)
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("read ")
            await shown.press("2")
            await shown.until_shown("/ Filter", "H Help")
            await shown.press("slash")
            await shown.until_shown("esc Clear", "H Help")
            footer = console.screen.query_one(Footer)
            assert any("dim" in str(each.style) for each in footer.render().spans)
            await click(shown, "H Help")
            await shown.until(lambda: isinstance(console.screen, HelpScreen))

    asyncio.run(run(help="H"))


def test_it_draws_nothing_while_the_keys_are_the_same(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        await shown.press("2")
        await shown.until_shown("o On/off")
        await shown.until(lambda: not any(each.group == "read" for each in shown.console.workers))
        footer = shown.console.screen.query_one(Footer)
        monkeypatch.setattr(footer, "refresh", lambda *_: drawn.append(1))
        for _ in range(5):
            shown.console.screen.refresh_bindings()
            await shown.pilot.pause()
        assert drawn == []

    show(at(daemon), look)
