"""Ending the console while something is typed: it asks before it is lost, and ends when it is told again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle_tui.dialogs import Ask, QuitUnsaved
from beetle_tui.editor import SkillEditor
from beetle_tui.form import Field, Form
from beetle_tui.line_input import LineInput
from beetle_tui.operation_form import OperationForm
from beetle_tui.plaintext import Plaintext
from tests.forked import Daemon
from tests.tui.showing import Shown, at, show
from tests.tui.skills_shown import skill, to_skills, with_a_turn, write
from tests.tui.test_command import Terminal


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with with_a_turn() as found:
        with found.client() as client:
            write(client, skill("pump"))
        yield found


def ended(shown: Shown) -> bool:
    return shown.console.return_code == 0


async def editing(shown: Shown) -> SkillEditor:
    await to_skills(shown, "1 of 1 skill")
    await shown.press("i")
    await shown.until(lambda: isinstance(shown.console.screen, SkillEditor))
    await shown.until_shown("^s saves")
    found = shown.console.screen
    assert isinstance(found, SkillEditor)
    return found


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q"])
def test_a_skill_that_is_edited_is_asked_about_and_a_second_key_ends_it(daemon: Daemon, key: str) -> None:
    async def look(shown: Shown) -> None:
        await editing(shown)
        await shown.press("x", key)
        await shown.until_shown("Quit?", "What you have typed is not saved.", "^q or ^c once more quits too.")
        assert not ended(shown)
        await shown.press(key)
        assert ended(shown)

    show(at(daemon), look)


def test_who_does_not_want_to_quit_goes_on_with_what_was_typed(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        editor = await editing(shown)
        await shown.press("x", "y")
        for key in ("n", "escape"):
            await shown.press("ctrl+c")
            await shown.until(lambda: isinstance(shown.console.screen, QuitUnsaved))
            await shown.press(key)
            await shown.until(lambda: shown.console.screen is editor)
        assert editor.query_one("#procedure", Plaintext).text.startswith("xy")
        await shown.press("ctrl+c")
        await shown.until(lambda: isinstance(shown.console.screen, QuitUnsaved))
        await shown.press("y")
        assert ended(shown)

    show(at(daemon), look)


def test_an_editor_in_which_nothing_was_changed_is_left_at_once(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await editing(shown)
        await shown.press("x", "backspace", "ctrl+c")
        assert ended(shown)

    show(at(daemon), look)


def test_a_form_with_something_typed_asks_and_an_untouched_one_does_not(daemon: Daemon) -> None:
    fields = [Field("a", "A", value="as it was"), Field("b", "B", several=True, value="one\r\ntwo")]

    async def look(shown: Shown, typed: bool) -> None:
        await shown.until_shown("live, read")
        shown.console.push_screen(Form("A form", fields))
        await shown.until_shown("A form", "as it was", "one")
        await shown.press(*(["tab", "x"] if typed else []), "ctrl+c")
        if typed:
            await shown.until_shown("Quit?")
            await shown.press("n")
            await shown.until_shown("A form", "xone")
        else:
            assert ended(shown)

    show(at(daemon), lambda shown: look(shown, True))
    show(at(daemon), lambda shown: look(shown, False))


def test_arguments_of_an_operation_are_asked_about_and_are_there_when_it_goes_on(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.action_operation("skill.delete")
        await shown.until(lambda: isinstance(shown.console.screen, OperationForm))
        await shown.press(*"pump", "ctrl+c")
        await shown.until_shown("Quit?")
        await shown.press("n")
        await shown.until(lambda: isinstance(shown.console.screen, OperationForm))
        assert shown.console.screen.query_one("#argument-name", LineInput).value == "pump"
        await shown.press("enter")
        await shown.until_shown("Run skill.delete?", '"pump"')
        await shown.press("ctrl+c")
        await shown.until_shown("Quit?")
        await shown.press("n")
        await shown.until_shown("Run skill.delete?")
        await shown.press("n")
        await shown.until(lambda: isinstance(shown.console.screen, OperationForm))
        assert shown.console.screen.query_one("#argument-name", LineInput).value == "pump"
        await shown.press("ctrl+u", "ctrl+c")
        assert ended(shown)

    show(at(daemon), look)


def test_the_letter_that_quits_is_typed_where_one_types(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        editor = await editing(shown)
        await shown.press("q")
        await shown.until(lambda: editor.query_one("#procedure", Plaintext).text.startswith("q"))
        editor.query_one("#title", LineInput).focus()
        await shown.press("end", "q")
        await shown.until(lambda: editor.query_one("#title", LineInput).value.endswith("q"))
        await shown.press("escape")
        await shown.until_shown("Leave without saving?")
        await shown.press("y")
        await shown.until(lambda: shown.console.screen is shown.console.area)
        await shown.press("slash", "q", "enter")
        await shown.until_shown("filtered")
        shown.console.push_screen(Ask("Name"))
        await shown.until(lambda: isinstance(shown.console.screen, Ask))
        await shown.press("q")
        assert shown.console.screen.query_one(LineInput).value == "q"
        await shown.press("escape")
        await shown.until_shown("is not kept")
        await shown.press("y")
        shown.console.action_operation("memory.recall")
        await shown.until(lambda: isinstance(shown.console.screen, OperationForm))
        await shown.press("q")
        assert shown.console.screen.query_one("#argument-query", LineInput).value == "q"
        await shown.press("escape")
        await shown.until_shown("is not kept")
        await shown.press("y")
        shown.console.push_screen(Form("A form", [Field("a", "A")]))
        await shown.until(lambda: isinstance(shown.console.screen, Form))
        await shown.press("q")
        assert shown.console.screen.query_one("#field-a", LineInput).value == "q"
        assert shown.console.return_code is None

    show(at(daemon), look)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_at_once_whatever_was_typed(
    daemon: Daemon, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEETLE_CONFIG", str(tmp_path / "beetle.toml"))
    (tmp_path / "beetle.toml").touch()
    terminal = Terminal("--socket", daemon.socket, "tui")
    try:
        terminal.until(b" live ")
        terminal.type(b"\x10")
        terminal.until(b"enter runs, esc closes")
        terminal.type(b"memory.recall")
        terminal.until(b"> memory.recall")
        terminal.type(b"\r")
        terminal.until(b"enter runs it")
        terminal.type(b"pump")
        terminal.until(b"pump")
        terminal.type(b"\x03")
        terminal.until(b"not saved")
        terminal.process.send_signal(number)
        assert terminal.process.wait(60) in (0, -number)
    finally:
        terminal.__exit__()
