"""Themes, keys of one's own, the mouse: what a person chooses, by flag or in the configuration."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.color import ColorType
from textual.color import Color

from beetle.contracts.errors import InvalidRequest
from beetle.runtime.host.config import THEME_NAMES as CONFIGURED
from beetle.runtime.host.config import read_config
from beetle_tui.app import Console
from beetle_tui.area import AreaScreen
from beetle_tui.help import HelpScreen
from beetle_tui.keys import KeyTaken, NoSuchKey, bound_classes, check_keys
from beetle_tui.palette import Palette
from beetle_tui.places import places
from beetle_tui.theme import CONTRAST, THEME_NAMES, THEMES, usual_theme
from tests.forked import Daemon
from tests.tui.showing import Shown, at, painted, running, show
from tests.tui.test_command import Terminal, clean  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def looked(daemon: Daemon, look: Any, **options: Any) -> None:
    async def run() -> None:
        console = Console(at(daemon), **options)
        async with console.run_test(size=(80, 24)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("live, read")
            await look(shown)

    asyncio.run(run())


def colours(shown: Shown) -> set[ColorType]:
    """The kinds of colours that are sent to the terminal."""
    found: set[ColorType] = set()
    for strip in painted(shown.console):
        styles = [part.style for part in strip if part.style is not None]
        found |= {each.type for style in styles for each in (style.color, style.bgcolor) if each is not None}
    return found


def luminance(colour: str) -> float:
    """As WCAG 2 has it."""
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_configuration_and_the_console_know_the_same_themes() -> None:
    assert tuple(CONFIGURED) == tuple(THEME_NAMES)
    names = [set(each.variables) - {"block-cursor-text-style"} for each in THEMES]
    assert all(set(THEMES[0].variables) <= each for each in names)


def test_t_goes_through_every_theme_and_each_shows_the_same_frame(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        first = shown.lines[0], shown.lines[-1]
        seen = []
        for _ in THEMES:
            await shown.press("t")
            await shown.pilot.pause()
            seen.append(shown.console.theme)
            assert (shown.lines[0], shown.lines[-1]) == first
            for key, kind in (("question_mark", HelpScreen), ("ctrl+p", Palette)):
                await shown.press(key)
                await shown.until(lambda kind=kind: isinstance(shown.console.screen, kind))
                await shown.press("escape")
                await shown.until(lambda: isinstance(shown.console.screen, AreaScreen))
        assert seen == [*THEME_NAMES[1:], THEME_NAMES[0]]

    looked(daemon, look)


@pytest.mark.parametrize(
    ("theme", "kinds"),
    [("ansi", {ColorType.DEFAULT, ColorType.STANDARD}), ("monochrome", {ColorType.DEFAULT})],
)
def test_these_themes_send_only_the_terminals_own_colours(daemon: Daemon, theme: str, kinds: set[ColorType]) -> None:
    async def look(shown: Shown) -> None:
        assert colours(shown) <= kinds
        await shown.press("ctrl+p", "x")
        await shown.until(lambda: isinstance(shown.console.screen, Palette))
        assert colours(shown) <= kinds

    looked(daemon, look, theme=theme)


def test_high_contrast_is_seven_to_one_everywhere() -> None:
    own = CONTRAST.variables
    pairs = [(own["bar-text"], own["bar"]), (own["alarm-text"], own["alarm"])]
    pairs += [(each, CONTRAST.background) for each in (CONTRAST.foreground, own["label"], own["line"], CONTRAST.warning,
                                                       CONTRAST.error, CONTRAST.success, CONTRAST.primary)]  # fmt: skip
    for one, other in pairs:
        dark, light = sorted((luminance(one or ""), luminance(other or "")))
        assert (light + 0.05) / (dark + 0.05) >= 7, (one, other)


def test_no_color_means_none_and_t_says_so(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(shown: Shown) -> None:
        assert shown.console.theme == "monochrome"
        assert colours(shown) <= {ColorType.DEFAULT}
        await shown.press("t")
        await shown.until_shown("NO_COLOR is set")
        assert shown.console.theme == "monochrome"

    looked(daemon, look, theme="beetle-light")


@pytest.mark.parametrize(
    ("terminal", "theme"),
    [
        ("xterm-256color", "beetle-dark"), ("tmux-256color", "beetle-dark"), ("linux", "ansi"),
        ("xterm-16color", "ansi"), ("vt100", "monochrome"), ("vt220", "monochrome"), ("", "beetle-dark"),
    ],
)  # fmt: skip
def test_the_first_theme_fits_the_terminal(terminal: str, theme: str) -> None:
    assert usual_theme(terminal) == theme


def test_keys_of_ones_own_work_and_are_shown(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        assert "X Help" in shown.lines[-1] and "B Commands" in shown.lines[-1]
        await shown.press("question_mark")
        await shown.pilot.pause()
        assert isinstance(shown.console.screen, AreaScreen), "the usual key does nothing any more"
        await shown.press("X")
        await shown.until_shown("every key of this screen")
        assert any("X" in line and "every key of this screen" in line for line in shown.lines)
        await shown.press("escape")
        await shown.press("D")
        await shown.until(lambda: shown.console.current_mode == "devices")
        assert "D Devices" in shown.lines[0]

    looked(daemon, look, keys={"help": "X", "palette": "B", "refresh": "f5,E", "devices": "D"})


def test_two_keys_can_be_swapped(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.press("7")
        await shown.until(lambda: shown.console.current_mode == "skills")
        await shown.press("2")
        await shown.until(lambda: shown.console.current_mode == "log")

    looked(daemon, look, keys={"skills": "7", "log": "2"})


@pytest.mark.parametrize(
    ("keys", "said", "hint"),
    [
        ({"row-upp": "k"}, "no key of the console has this id", "did you mean row-up or "),
        ({"\x1b[2J": "k"}, "no key of the console has this id", "beetle help console"),
        ({"row-up": "hyper+k"}, "'hyper+k' is not a key", "write a letter"),
        ({"row-up": ""}, "'' is not a key", "write a letter"),
        ({"help": "X", "quit": "X"}, "help: X is the key of quit as well", "help and quit a key of its own"),
        ({"refresh": "d"}, "refresh: d is the key of skill-delete as well", "refresh and skill-delete"),
        ({"quit": "f5", "fact-delete": "f5"}, "fact-delete: f5 is the key of quit as well", "fact-delete and quit"),
        ({"row-down": "s"}, "row-down: s is the key of skill-sort as well", "a key of its own"),
        ({"line-next-link": "y"}, "line-next-link: y is the key of copy as well", "a key of its own"),
        ({"checklist-tick": "up"}, "checklist-tick: up is the key of row-up as well", "a key of its own"),
    ],
)
def test_a_key_that_cannot_be_is_refused(keys: dict[str, str], said: str, hint: str) -> None:
    with pytest.raises((NoSuchKey, KeyTaken)) as raised:
        check_keys(keys, places(Console))
    assert said in raised.value.message and hint in raised.value.hint


def configured(folder: Path, text: str) -> Path:
    file = folder / "console.toml"
    file.write_text(text)
    return file


def test_the_configuration_names_theme_and_keys(tmp_path: Path) -> None:
    file = configured(tmp_path, '[console]\ntheme = "high-contrast"\nkeys = { "row-up" = "K", quit = "ctrl+n" }\n')
    console = read_config(file, {}, 1000).console
    assert (console.theme, dict(console.keys)) == ("high-contrast", {"row-up": "K", "quit": "ctrl+n"})
    check_keys(console.keys, places(Console))


@pytest.mark.parametrize(
    "keys",
    [
        {"refresh": "d", "skill-delete": "D", "device-remove": "D", "fact-delete": "D", "policy-lift": "D",
         "waiting-reject": "D", "chunk-delete": "D", "registry-delete": "D", "transcripts-date": "D", "time-date": "D",
         "snapshot-prune": "D"},
        {"row-up": "up,f7", "line-up": "up,f7", "json-up": "f7"},
        {"transcripts-mask": "m,M"},
        {"skills": "7", "log": "2"},
    ],
)  # fmt: skip
def test_a_key_may_be_of_several_actions_that_are_never_reached_from_one_place(keys: dict[str, str]) -> None:
    check_keys(keys, places(Console))


def test_every_key_of_the_console_has_its_place() -> None:
    placed = {kind for place in places(Console) for each in place for kind in each.__mro__}
    assert [each for each in bound_classes() if each not in placed] == []


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ('theme = "beetle-drak"', "$.console.theme", "did you mean beetle-dark"),
        ("theme = 3", "$.console.theme", ""),
        ("keys = { quit = 3 }", "$.console.keys", ""),
        ('kyes = "x"', "$.console.kyes", ""),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_at_its_place(
    tmp_path: Path, text: str, path: str, hint: str
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_config(configured(tmp_path, f"[console]\n{text}\n"), {}, 1000)
    assert raised.value.details["path"].startswith(path) and hint in raised.value.hint


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (("--theme", "beetle"), "", b"'beetle' is none of the themes"),
        ((), '[console]\nkeys = { "row-upp" = "k" }\n', b"$.console.keys.row-upp: no key of the console has this id"),
    ],
)
def test_what_was_chosen_wrong_is_told_before_the_screen_is_touched(
    daemon: Daemon, words: tuple[str, ...], text: str, said: bytes
) -> None:
    Path(os.environ["BEETLE_CONFIG"]).write_text(text)
    with Terminal("--socket", daemon.socket, "tui", *words) as terminal:
        assert terminal.ended() == 2
        assert said in terminal.seen
        assert b"\x1b" not in terminal.seen


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("mouse", [True, False])
def test_the_mouse_is_taken_only_when_it_is_asked_for(daemon: Daemon, mouse: bool) -> None:
    with Terminal("--socket", daemon.socket, "tui", "--theme", "ansi", *(["--mouse"] if mouse else [])) as terminal:
        terminal.until(b" live ")
        terminal.type(b"q")
        assert terminal.ended() == 0
        assert (b"\x1b[?1000h" in terminal.seen) is mouse
        assert not re.search(rb"[;\[][34]8;[25];", terminal.seen), "sixteen colours are enough"


@pytest.mark.usefixtures("clean")
def test_a_click_on_the_title_bar_goes_to_an_area(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.pilot.click("#title", offset=(shown.lines[0].index("3 Dev") + 2, 0))
        await shown.until(lambda: shown.console.current_mode == "devices")

    show(at(daemon), look)


@pytest.mark.usefixtures("clean")
def test_a_megabyte_pasted_into_a_real_terminal_is_lived_through(daemon: Daemon) -> None:
    with Terminal("--socket", daemon.socket, "tui") as terminal:
        terminal.until(b" live ")
        terminal.type(b"\x10")  # ctrl+p
        terminal.until(b"ype part of a name")  # the cursor stands on the first letter
        data, sent = b"\x1b[200~" + b"abcdefgh " * 120_000 + b"\x1b[201~", 0
        while sent < len(data):
            sent += os.write(terminal.descriptor, data[sent : sent + 1000])
            terminal.read(0)
        terminal.until(b"Nothing is called that.")
        terminal.type(b"\x1b")
        terminal.type(b"\x03")
        assert terminal.ended() == 0
