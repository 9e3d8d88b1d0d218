"""Every key that the console knows, pressed in a real terminal: in each area, each list, and each dialog."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.binding import Binding

import beetle_tui
from beetle_tui.keys import bindings_of, bound_classes
from beetle_tui.screens import SCREENS
from beetle_tui.transcript_lists import ACTIONS
from tests.forked import Daemon
from tests.tui.pictured import broken
from tests.tui.terminal import COMMAND_NAMES, Terminal, command_of

STAY = re.compile(r"^(move|page_|page\(|edge|scroll)")
"""Actions that move within what is shown: the next key is pressed where they led to."""
ENDING = ("quit", "quit-always")
LEAVING = ("suspend",)
DIALOG = re.compile(r"\besc (closes|leaves|calls it off|does not)|enter runs, esc closes")
"""What stands in the frame of every dialog."""
MOST_TRIES = 12


class Keys(NamedTuple):
    """Keys that lead to a place; `type:` before a text types it. They are pressed until the text is shown, and not at
    all where it is shown already; without a text they are pressed once."""

    keys: tuple[str, ...]
    text: str = ""


class KeyTarget(NamedTuple):
    """Where keys are pressed: the area, what leads there from its list, and the classes whose keys work there."""

    area: str
    kinds: tuple[str, ...]
    steps: tuple[Keys, ...] = ()
    level: str = ""
    """Of the transcripts: which of the lists it is."""

    @property
    def name(self) -> str:
        """What it is called in a test's name."""
        return f"{self.area}-{self.kinds[0].lower()}{'-' + self.level if self.level else ''}"

    def bindings(self) -> Iterator[tuple[str, Binding]]:
        """What can be pressed here, each with the class that it is of; two with the same key are one to a person."""
        known = {kind.__name__: kind for kind in bound_classes()}
        for name in self.kinds:
            for each in bindings_of(known[name]):
                action = each.action.partition("(")[0]
                if not self.level or action not in ACTIONS or self.level in ACTIONS[action]:  # type: ignore[comparison-overlap]
                    yield name, each


RUNTIME = Keys(("left",), "of 3 skills")
BY_NAME = Keys(("s",), "skills; by name\n")
PUMP = Keys(("end",), "─ quieten-pump")
KITCHEN = Keys(("home",), "─ Kitchen display")
FACTS = (Keys(("right",), "Topic Fact"), Keys(("v",), "of 3 facts"), Keys(("home",), "─ Mara (current)"))
TALKS = Keys(("escape",), "Conversations, view")
ASKED = Keys(("slash", "ctrl+u", "type:loud pump", "enter"), " hits; ")
TURNS = (TALKS, Keys(("end", "enter"), "local/workshop, view"))
EVERYWHERE = ("AreaScreen", "Console")
PLACES = (
    KeyTarget("overview", ("Body", *EVERYWHERE)),
    KeyTarget("skills", ("Skills", "Table", *EVERYWHERE), (RUNTIME, BY_NAME, PUMP)),
    KeyTarget("skills", ("Document", "Skills"), (RUNTIME, BY_NAME, PUMP, Keys(("enter",), "━ quieten-pump"))),
    KeyTarget("skills", ("SkillEditor", "Plaintext"), (RUNTIME, BY_NAME, PUMP, Keys(("i",), "^s saves"))),
    KeyTarget("skills", ("DiffScreen",), (RUNTIME, BY_NAME, PUMP, Keys(("h",), "left older"))),
    KeyTarget("skills", ("Receipt", "Told"), (RUNTIME, BY_NAME, PUMP, Keys(("o", "v"), "┌─ Receipt"))),
    KeyTarget("devices", ("Devices", "Table", *EVERYWHERE), (KITCHEN,)),
    KeyTarget("devices", ("FilterBar",), (Keys(("slash",), "part of an id"),)),
    KeyTarget("devices", ("Checklist",), (KITCHEN, Keys(("c",), "space ticks"))),
    KeyTarget("devices", ("Ask",), (KITCHEN, Keys(("n",), "Rename the device"))),
    KeyTarget("devices", ("Confirm",), (KITCHEN, Keys(("o",), "Give it another key?"))),
    KeyTarget("devices", ("KeyShown",), (KITCHEN, Keys(("o", "y"), "it is not shown again"))),
    KeyTarget("transcripts", ("Transcripts", "Table", *EVERYWHERE), (TALKS,), "conversations"),
    KeyTarget("transcripts", ("Transcripts", "AreaScreen"), TURNS, "turns"),
    KeyTarget("transcripts", ("Document", "Transcripts"), (*TURNS, Keys(("enter",), "━ Turn")), "turns"),
    KeyTarget("transcripts", ("Transcripts",),
          (TALKS, Keys(("f", "ctrl+u", "type:pump", "enter"), "“pump” everywhere")), "hits"),
    KeyTarget("transcripts", ("Transcripts",), (TALKS, Keys(("p",), "Repair of all")), "issues"),
    KeyTarget("memory", ("Facts", "Section", "Memory", "Table", *EVERYWHERE), FACTS),
    KeyTarget("memory", ("Form",), (*FACTS, Keys(("c",), "Correct the fact"))),
    KeyTarget("memory", ("Choose",), (*FACTS, Keys(("i",), "Only facts of the kind"))),
    KeyTarget("memory", ("Chunks", "Section"), (Keys(("right",), "Type Chunk"),)),
    KeyTarget("memory", ("Policies", "Section"), (Keys(("right",), "Chat Since"),)),
    KeyTarget("memory", ("Tools", "Section"), (Keys(("right",), "Registry Scope"),)),
    KeyTarget("memory", ("Waiting", "Section"), (Keys(("right",), "Waits for What"),)),
    KeyTarget("memory", ("Proposals", "Section"), (Keys(("right",), "Why Made"), Keys(("v",), "1 of 1 proposal"))),
    KeyTarget("memory", ("Jobs", "Section"), (Keys(("right",), "State Last"),)),
    KeyTarget("recall", ("Recall", "Table", *EVERYWHERE), (ASKED,)),
    KeyTarget("recall", ("Switches",), (ASKED, Keys(("x",)))),
    KeyTarget("log", ("Log", "Table", *EVERYWHERE)),
    KeyTarget("log", ("Document", "Log"), (Keys(("enter",), "━ Row"),)),
    KeyTarget("chains", ("Chains", "Table", *EVERYWHERE),
              (Keys(("right",), "# Type"), Keys(("home",), "─ Thought"))),
    KeyTarget("time", ("Time", "Table", *EVERYWHERE), (Keys(("left",), "Keywords"),)),
    KeyTarget("backup", ("Snapshots", "Backup", "Table", *EVERYWHERE), (Keys(("left",), "Made (UTC)"),)),
    KeyTarget("log", ("HelpScreen",), (Keys(("question_mark",), "Keys (esc closes)"),)),
    KeyTarget("log", ("Palette",), (Keys(("ctrl+p",), "enter runs, esc closes"),)),
    KeyTarget("log", ("OperationForm",), (Keys(("ctrl+p", "type:memory.inspect", "enter"), "enter runs it"),)),
    KeyTarget("log", ("JsonTree", "ReportView"),
          (Keys(("ctrl+p", "type:memory.inspect", "enter"), "enter runs it"), Keys(("enter",), "enter opens a line"))),
)  # fmt: skip
APART = ("Working",)
"""Pressed in a test of its own: what takes long does so for a stopped daemon only."""


def everything() -> dict[str, type[Any]]:
    """Every class of the console that has keys, by its name, whatever module it is in."""
    for module in pkgutil.walk_packages(beetle_tui.__path__, "beetle_tui."):
        importlib.import_module(module.name)
    return {kind.__name__: kind for kind in bound_classes() if kind.__module__.startswith("beetle_tui.")}


everything()


def test_there_is_a_place_for_every_key_of_the_console() -> None:
    pressed = {(kind, each.id) for place in PLACES for kind, each in place.bindings()}
    wanted = {(name, each.id) for name, kind in everything().items() if name not in APART for each in bindings_of(kind)}
    assert wanted - pressed == set(), "give them a place above"
    assert pressed - wanted == set()


@pytest.fixture(scope="module", params=COMMAND_NAMES)
def beetle(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(command_of(request.param))


@pytest.fixture(scope="module")
def daemon(beetle: tuple[str, ...]) -> Iterator[Daemon]:
    """A workshop with one count that is wrong, so that there is something to repair."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_COMMAND", " ".join(beetle))
        with broken() as world:
            yield world.daemon


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's may have about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="beetle-") as found:
        yield Path(found)


class Person:
    """Somebody in front of a console, who finds every place again."""

    def __init__(self, terminal: Terminal, start: tuple[str, ...]) -> None:
        self.terminal = terminal
        self._start = start

    def begin(self) -> None:
        """Start the console."""
        self.terminal.again(*self._start)
        self.terminal.until(" live ")
        self.terminal.calm()

    def close(self) -> None:
        """Close what is open above the area, save nothing, and have the list take the keys."""
        while DIALOG.search(shown := self.terminal.check()):
            self.terminal.press("y" if "Leave without saving?" in shown else "escape")
            self.terminal.calm()
        self.terminal.press("escape")

    def go(self, place: KeyTarget) -> str:
        """To a place, from wherever that is calm; the screen."""
        self.close()
        self.terminal.press(next(each.key for each in SCREENS if each.name == place.area))
        shown = self.terminal.calm()
        for step in place.steps:
            shown = self.take(step, shown)
        return shown

    def take(self, step: Keys, shown: str) -> str:
        """A step, as often as it needs; the screen."""
        for _ in range(MOST_TRIES):
            if step.text and step.text in shown:
                return shown
            for key in step.keys:
                if key.startswith("type:"):
                    self.terminal.type(key.removeprefix("type:"))
                else:
                    self.terminal.press(key)
                shown = self.terminal.calm()
            if not step.text:
                return shown
        raise AssertionError(f"{step} does not lead there:\n{shown}")

    def press_all(self, place: KeyTarget, keys: Mapping[str, Binding]) -> None:
        """Press keys of a place; after each of them the console lives, and it is calm."""
        there = False
        for key, binding in keys.items():
            if not there:
                self.go(place)
            self.terminal.press(key)
            self.terminal.calm()
            there = bool(STAY.match(binding.action))


def keys_of(place: KeyTarget, *, again: bool) -> dict[str, Binding]:
    """The keys of a place that do not end the console: those of bindings that no place before it has, or the others."""
    before = {(kind, each.id) for other in PLACES[: PLACES.index(place)] for kind, each in other.bindings()}
    found: dict[str, Binding] = {}
    for kind, each in place.bindings():
        if each.id not in (*ENDING, *LEAVING) and again == ((kind, each.id) in before):
            found.setdefault(each.key, each)
    return found


@contextmanager
def person(folder: Path, beetle: tuple[str, ...], daemon: Daemon) -> Iterator[Person]:
    with Terminal(folder) as terminal:
        terminal.beside = (daemon.pid,)
        found = Person(terminal, (*beetle, "--socket", daemon.socket, "tui"))
        found.begin()
        yield found


QUICK = ("overview", "memory", "time")
"""A terminal is slower than Pilot, which presses every key of every area: these stand for the others in a quick run."""


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "everywhere"])
@pytest.mark.parametrize(
    "area",
    [pytest.param(each.name, marks=[pytest.mark.slow] * (each.name not in QUICK)) for each in SCREENS],
)
def test_every_key_is_pressed_and_the_console_lives(
    area: str, again: bool, folder: Path, beetle: tuple[str, ...], daemon: Daemon
) -> None:
    """Each binding once; at every place where it works in the slow suite."""
    with person(folder, beetle, daemon) as found:
        for place in PLACES:
            if place.area == area:
                found.press_all(place, keys_of(place, again=again))
        found.close()
        found.terminal.calm()
        found.terminal.press("q")
        assert found.terminal.ended() == 0


def test_the_keys_that_end_it_end_it_and_above_a_dialog_too(
    folder: Path, beetle: tuple[str, ...], daemon: Daemon
) -> None:
    with person(folder, beetle, daemon) as found:
        for key, dialog in (("q", ""), ("ctrl+q", ""), ("ctrl+c", ""), ("ctrl+q", "ctrl+p"), ("ctrl+c", "e")):
            if dialog:
                found.begin()
                found.terminal.press(dialog)
                assert DIALOG.search(found.terminal.calm())
            elif key != "q":
                found.begin()
            found.terminal.press(key)
            assert found.terminal.ended() == 0, key


def test_work_that_takes_long_is_called_off_with_escape(folder: Path, beetle: tuple[str, ...], daemon: Daemon) -> None:
    with person(folder, beetle, daemon) as found:
        found.terminal.press("7")
        found.terminal.calm()
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            found.terminal.press("v")
            found.terminal.until("Verify the store", "esc calls it off", "1 second so far")
            found.terminal.press("escape")
            found.terminal.until("Verify the store: called off.", gone=["esc calls it off"])
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        found.terminal.press("q")
        assert found.terminal.ended() == 0
