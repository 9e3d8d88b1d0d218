"""Hints name the keys as they are: with other keys configured, no text tells of the usual ones."""

from __future__ import annotations

import ast
import asyncio
import pkgutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

import beetle_tui
from beetle.contracts.capabilities import CAPABILITIES
from beetle_tui.app import Console
from beetle_tui.charset import UTF_8
from beetle_tui.device_dialogs import Checklist, Credentials, KeyShown
from beetle_tui.dialogs import Ask, Confirm, Told, Working
from beetle_tui.diff import DiffScreen, DiffStep
from beetle_tui.form import Choose, Field, Form, Option
from beetle_tui.json_view import ReportView
from beetle_tui.keys import HOLE, bindings_of, bound_classes, check_keys, hinted, key_for, short_key
from beetle_tui.palette import Entry, Palette
from beetle_tui.places import places
from beetle_tui.source import Source
from beetle_tui.steps import Receipt
from tests.forked import Daemon
from tests.running import ROOT
from tests.tui.remembering import learn, remembering
from tests.tui.showing import Shown, at, opened

FROM = "from beetle_tui.keys import bindings_of, bound_classes; "
SOURCES = Path(beetle_tui.__file__).parent
OWN = {
    "confirm-yes": "f2", "confirm-no": "f3", "confirm-close": "f4", "ask-close": "f4", "told-close": "f4,x",
    "working-stop": "f4", "palette-close": "f4", "form-take": "ctrl+t", "form-next": "f5", "form-close": "f4",
    "choose-close": "f4", "row-open": "f6", "checklist-tick": "f7", "checklist-all": "f8", "checklist-close": "f4",
    "key-copy": "f9", "key-write": "f10", "key-close": "f4", "help-close": "f4", "json-fold": "f6",
    "report-copy": "f9", "report-export": "f10", "report-close": "f4", "operation-next": "f5", "operation-close": "f4",
    "operation-run": "f6", "receipt-copy": "f9", "diff-older": "f2", "diff-newer": "f3", "diff-close": "f4",
    "edit-save": "ctrl+t", "edit-leave": "f4", "quit-always": "f12",
    "memory-previous": "ctrl+b", "memory-next": "ctrl+g", "skill-side": "ctrl+b,ctrl+g", "recall-previous": "ctrl+b",
    "recall-next": "ctrl+g",
    "fact-state": "f2", "policy-pause": "f2", "policy-suppress": "f3", "proposal-submit": "f2",
    "proposal-withdraw": "f3", "proposal-state": "f7", "recall-query": "f2", "recall-switches": "f3",
    "switch-change": "f4", "device-add": "f2", "device-suspend": "f3", "filter": "f9", "transcripts-search": "f2",
    "transcripts-links": "f3", "refresh": "f11",
}  # fmt: skip
"""A key of one's own for every binding that some text names."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found, found.client() as client:
        learn(client, "The pump is loud.", "pump")
        yield found


def with_own_keys(source: Source, look: Callable[[Shown], Awaitable[None]]) -> None:
    async def run() -> None:
        console = Console(source, keys=OWN)
        async with console.run_test(size=(100, 40)) as pilot:
            shown = Shown(console, pilot)
            await shown.until_shown("read ")
            await look(shown)

    asyncio.run(run())


def named_in(file: Path) -> Iterator[str]:
    """The ids that the texts of a source file name, and its calls for one key."""
    for each in ast.walk(ast.parse(file.read_text())):
        match each:
            case ast.Constant(value=str(text)):
                yield from (hole[1] for hole in HOLE.finditer(text) if "-" in hole[1] or hole[1] in OWN)
            case ast.Call(func=ast.Name(id="key_for" | "keys_for"), args=[_, ast.Constant(value=str(name))]):
                yield name
            case _:
                pass


def test_every_hint_names_bindings_that_there_are() -> None:
    check_keys(OWN, places(Console))
    known = {each.id for kind in bound_classes() for each in bindings_of(kind)}
    named = {name for file in SOURCES.rglob("*.py") for name in named_in(file)}
    assert len(named) > len(OWN) / 2
    assert named <= known


def test_a_hint_has_the_first_key_or_all_of_them_or_the_usual_ones(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        app = shown.console
        assert hinted(app, "{told-close} closes, {told-close*} too, {palette}") == "f4 closes, f4, x too, ^p"
        assert hinted(app, "{skill-delete} and {1} and {}") == "d and {1} and {}"
        assert (key_for(app, "edit-save"), key_for(app, "help")) == ("^t", "?")
        with pytest.raises(KeyError):
            key_for(app, "no-such")

    with_own_keys(at(daemon), look)


def test_what_is_loaded_late_can_have_other_keys_too() -> None:
    program = (
        "from beetle_tui.app import Console; from beetle_tui.keys import check_keys; "
        "from beetle_tui.places import places; check_keys({'edit-save': 'f9'}, places(Console))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
    modules = [each.name for each in pkgutil.walk_packages(beetle_tui.__path__, "beetle_tui.")]
    everything = "import importlib; [importlib.import_module(each) for each in MODULES]; " + FROM
    ids = "print(sorted(each.id for kind in bound_classes() for each in bindings_of(kind)))"
    told = [
        subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True, capture_output=True).stdout
        for text in (
            everything.replace("MODULES", repr(modules)) + ids,
            f"import beetle_tui.editor, beetle_tui.app\n{FROM}{ids}",
        )
    ]
    assert told[0] == told[1], "there is nothing else that check_keys would have to load"


@pytest.mark.parametrize(
    ("key", "told"),
    [("escape", "esc"), ("slash", "/"), ("ctrl+s", "^s"), ("shift+tab", "shift+tab"), ("full_stop", "."),
     ("pageup", "page up"), ("+", "+"), ("ctrl+alt+x", "^alt+x")],
)  # fmt: skip
def test_a_key_is_told_in_few_letters(key: str, told: str) -> None:
    assert short_key(key) == told


DIALOGS: tuple[tuple[Callable[[], Screen[Any]], tuple[str, ...]], ...] = (
    (lambda: Confirm("Sure?", ["It goes."]), ("f2 does it, f3 or f4 does not",)),
    (lambda: Ask("Name?"), ("enter takes it, f4 closes",)),
    (lambda: Told("Told", ["So."]), ("f4 closes",)),
    (lambda: Working("At work"), ("f4 calls it off",)),
    (lambda: Palette([Entry("One", "refresh", "two")]), ("(enter runs, f4 closes)",)),
    (lambda: Form("A form", [Field("a", "A")]), ("^t takes it, f5 goes on, f4 closes",)),
    (lambda: Choose("Which?", [Option("a", "A")]), ("f6 chooses, f4 closes",)),
    (lambda: Checklist("May", CAPABILITIES, ()), ("f7 ticks, f8 all, f6 takes it, f4 closes",)),
    (
        lambda: KeyShown("Its key", "panel", Credentials("panel", "k" * 40), "f" * 16, UTF_8),
        ("f4 closes; it is not shown again", "f9 copies the key,", "f10 writes a credentials file."),
    ),
    (lambda: ReportView("a report", {"a": 1}), ("f6 opens a line, f9 copies, f10 exports, f4 closes",)),
    (lambda: Receipt("Done", ["So."], "beetle-receipt-1.x"), ("f9 copies the receipt, f4 closes",)),
    (lambda: DiffScreen([DiffStep("1 to 2", (), "-a\n+b")], 0), ("1 of 1; f2 older, f3 newer, f4 closes",)),
)


@pytest.mark.parametrize(("dialog", "told"), DIALOGS, ids=[type(make()).__name__ for make, _ in DIALOGS])
def test_a_dialog_says_its_keys_as_they_are(
    daemon: Daemon, dialog: Callable[[], Screen[Any]], told: tuple[str, ...]
) -> None:
    async def look(shown: Shown) -> None:
        shown.console.push_screen(dialog())
        await shown.until_shown(*told)
        assert "esc" not in "\n".join(shown.lines[1:-1]).replace("description", "").split()

    with_own_keys(at(daemon), look)


def test_the_keys_that_a_dialog_names_work(daemon: Daemon) -> None:
    answers: list[bool | None] = []

    async def look(shown: Shown) -> None:
        for key in ("f2", "f3", "f4"):
            shown.console.push_screen(Confirm("Sure?", []), answers.append)
            await shown.until_shown("Sure?")
            await shown.press("y", "n", "escape")
            assert "Sure?" in shown.text
            await shown.press(key)
            await shown.until(lambda: shown.console.screen is shown.console.area)

    with_own_keys(at(daemon), look)
    assert answers == [True, False, False]


def test_forms_of_operations_help_and_editor_say_their_keys(daemon: Daemon) -> None:
    one = {"name": "pump", "topic": "t", "title": "t", "summary": "s", "content": "c"}
    with daemon.client() as client:
        client.write(kind="procedural", source="manual", writes=[one])

    async def look(shown: Shown) -> None:
        shown.console.action_operation("memory.capabilities")
        await shown.until_shown("enter runs it, f5 goes on, f4 closes", "It takes no arguments: f6 runs it.")
        await shown.press("f4")
        await shown.press("question_mark")
        await shown.until_shown("Keys (f4 closes)")
        await shown.press("f4", "2")
        await shown.until_shown("1 of 1 skill", "^b, ^g: another part")
        await shown.press("i")
        await shown.until_shown("^t saves, tab to the next field, f4 leaves")
        await shown.press("x", "f12")
        await shown.until_shown("f2 quits, f3 or f4 does not", "f12 once more quits too")
        await shown.press("f3", "f4")
        await shown.until_shown("Leave without saving?")
        await shown.press("f2")

    with_own_keys(at(daemon), look)


def test_empty_areas_say_their_keys(tmp_path: Path) -> None:
    said = {
        "3": ("No device: f2 adds one", "`f2` asks what it is called"),
        "5": ("f2 shows stale", "^b, ^g: another part"),
        "6": ("press f2 and type a question", "f2 types a query.", "f3 goes there, f4 changes one", "^b, ^g: another"),
        "7": ("f9 filters them.",),
    }

    async def look(shown: Shown) -> None:
        for key, texts in said.items():
            await shown.press(key)
            if key == "7":
                await shown.until(lambda: shown.console.area.filled)
                await shown.press("f9", *"topic:job", "enter")
            await shown.until_shown(*texts)
        await shown.press("5", "ctrl+g", "ctrl+g")
        await shown.until_shown("f2 puts off, f3 refuses")
        await shown.press("ctrl+b", "ctrl+b", "ctrl+b", "ctrl+b")
        await shown.until_shown("f2 submits, f3 withdraws. f7 shows")

    with_own_keys(opened(str(tmp_path / "own.db"), "profile-server-linux-dev-full"), look)


def test_hints_beside_what_is_stored_say_their_keys(daemon: Daemon) -> None:
    with daemon.client() as client:
        added = client.add_device(label="{device-add} panel", device_id="panel", capabilities=["recall"])
        client.update_device(device_id=added.device.device_id, state="suspended")

    async def look(shown: Shown) -> None:
        await shown.press("3")
        await shown.until_shown("SUSPENDED: f3 lets it in again", "{device-add} panel")
        await shown.press("4")
        await shown.until_shown("local/workshop")
        await shown.press("f6")
        await shown.until_shown("f3: what was derived from this turn")
        await shown.press("escape", "f9", *"zzz", "enter")
        await shown.until_shown("holds “zzz”; f2 finds words.")
        await shown.press("6", "f2", *"pump", "enter")
        await shown.until_shown(" hits; ")
        with daemon.client() as client:
            learn(client, "Another fact.", "another")
        await shown.until_shown("memory has changed since: f11 runs it again")

    with_own_keys(at(daemon), look)
