"""What a person does with the console in a real terminal, from the checkout and from the one file of the build."""

from __future__ import annotations

import json
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Daemon
from tests.tui.pictured import workshop
from tests.tui.terminal import COMMAND_NAMES, Terminal, command_of

MASK_ME = "night-shift"
PUMP = "runtime_skill__quieten-pump"


@pytest.fixture(scope="module", params=COMMAND_NAMES)
def beetle(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(command_of(request.param))


@pytest.fixture(scope="module")
def daemon(beetle: tuple[str, ...]) -> Iterator[Daemon]:
    """A workshop; the tests here change different things of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_COMMAND", " ".join(beetle))
        with workshop() as world:
            yield world.daemon


@pytest.fixture
def terminal(beetle: tuple[str, ...], daemon: Daemon) -> Iterator[Terminal]:
    """The console at the daemon."""
    # A short path: a socket's may have about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder, Terminal(Path(folder)) as found:
        found.beside = (daemon.pid,)
        found.start(*beetle, "--socket", daemon.socket, "tui")
        found.until(" live ", "Needs a hand")
        yield found


def test_a_skill_is_found_read_fixed_and_deleted(terminal: Terminal, daemon: Daemon) -> None:
    terminal.press("3", "2")
    terminal.until("Runtime skills", "of 3 skills; by name")
    terminal.press("s")
    terminal.until("of 3 skills; latest change first")
    terminal.press("slash")
    terminal.type("pump")
    terminal.press("enter")
    terminal.until("1 of 1 skill;", "> quieten-pump", gone=["light-boiler"])
    terminal.press("enter")
    terminal.until("━ quieten-pump", "Close the valve before it.")
    terminal.press("escape", "i")
    terminal.until(f"Edit {PUMP}, revision 2", "^s saves")
    terminal.press("ctrl+home")
    terminal.type("Look first. ")
    terminal.press("tab")
    terminal.type("nobody looked")
    terminal.press("ctrl+s")
    terminal.until(f"{PUMP} revised, revision 3", "Look first. ", gone=["^s saves"])
    terminal.press("h")
    terminal.until("revision 2 to 3", "+Look first. # Steps")
    terminal.press("escape")
    terminal.until("> quieten-pump", gone=["revision 2 to 3"])
    terminal.press("o")
    terminal.until("disabled, revision 3; v shows the receipt")
    terminal.press("d")
    terminal.until(f"Delete {PUMP}?", "3 revisions")
    terminal.press("n")
    terminal.until("> quieten-pump", gone=[f"Delete {PUMP}?"])
    terminal.press("d")
    terminal.until(f"Delete {PUMP}?")
    terminal.press("y")
    terminal.until(f"{PUMP} deleted, last revision 3", gone=["> quieten-pump"])
    with daemon.client() as client:
        assert PUMP not in {each.name for each in client.list_runtime_skills(include_retired=True).runtime_skills}


def test_a_device_is_added_and_its_key_shown_copied_and_written(terminal: Terminal, daemon: Daemon) -> None:
    terminal.press("3")
    terminal.until("Kitchen display", "of 3 devices")
    terminal.press("a")
    terminal.until("Add a device")
    terminal.type("Gate")
    terminal.press("tab")
    terminal.type("gate")
    terminal.press("ctrl+s")
    terminal.until("What Gate may do", "> [ ] write", "0 of ")
    terminal.press("down", "space")
    terminal.until("[x] recall", "1 of ")
    terminal.press("enter")
    shown = terminal.until("Added: its key, this once", "c copies the key,")
    assert max(shown.count(block) for block in "▄▀█") > 100, "a QR code"
    key = re.search(r"[\w-]{32,}", shown)
    assert key is not None
    terminal.press("c")
    terminal.until("43 characters handed to")
    copied = terminal.clipboard
    assert copied.startswith(key[0])
    terminal.press("w")
    terminal.until("Credentials file", "mode 0600")
    terminal.type("~/gate.json")
    terminal.press("enter")
    file = terminal.folder / "gate.json"
    terminal.until("1 line written to")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"device_id": "gate", "app_key": copied}
    terminal.press("escape")
    terminal.until("of 4 devices", gone=["it is not shown again", copied])


def test_a_conversation_is_seen_through_each_view_and_a_turn_of_it_masked(terminal: Terminal) -> None:
    terminal.press("4")
    terminal.until("Conversations, view host_ui", f"radio/{MASK_ME}")
    terminal.press("end", "enter")
    terminal.until("local/workshop, view host_ui", "6 of 6 turns")
    for view in ("model_context", "operator_audit", "export", "host_ui"):
        terminal.press("v")
        terminal.until(f"local/workshop, view {view}")
    terminal.press("d")
    terminal.until("Go to a date")
    terminal.type("soon")
    terminal.press("enter")
    terminal.until("That is not a time")
    terminal.press("ctrl+u")
    terminal.type("2026-03-04")
    terminal.press("enter")
    terminal.until("4 of 6 turns", "─ Turn t4", "健太")
    terminal.press("escape")
    terminal.until("Conversations, view host_ui")
    terminal.press("home", "enter")
    terminal.until(f"radio/{MASK_ME}, view host_ui", "The boiler went out at two.")
    terminal.press("m")
    terminal.until("┌─ Mask", "1 turn, 1 message")
    terminal.type("nobody's business")
    terminal.press("enter")
    terminal.until("Mask: done", "beetle-receipt-1.")
    terminal.press("escape")
    terminal.until("[masked]", gone=["The boiler went out at two."])


def test_a_query_is_tried_now_and_as_of_a_time(terminal: Terminal) -> None:
    terminal.press("6", "slash")
    terminal.type("strainer cleaning")
    terminal.press("enter")
    terminal.until("> 1.000", " hits; ", "Cleaning the strainer helped.")
    terminal.press("a")
    terminal.until("Memory as it stood at a time")
    terminal.type("2026-03-02 08:20")
    terminal.press("enter")
    terminal.until("as of 2026-03-02 08:20:00Z", " hit", gone=["Cleaning the strainer helped."])
    terminal.press("right")
    terminal.until("As a model gets it")


def test_the_palette_runs_an_operation_and_its_report_is_exported(terminal: Terminal) -> None:
    terminal.press("ctrl+p")
    terminal.until("Commands (enter runs")
    terminal.type("device.list")
    terminal.until("> device.list")
    terminal.press("enter")
    terminal.until("┌─ device.list", "enter runs it")
    terminal.press("enter")
    terminal.until('"devices":', "enter opens a line")
    terminal.press("e")
    terminal.until("┌─ Export")
    terminal.type("~/devices.json")
    terminal.press("enter")
    terminal.until("written to")
    file = terminal.folder / "devices.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {each["device_id"] for each in json.loads(file.read_text())["devices"]} >= {"kitchen", "panel-2", "tablet"}
    terminal.press("escape")
    terminal.until("Needs a hand", gone=["enter opens a line"])


def test_help_theme_copy_and_export_work_from_an_area(terminal: Terminal) -> None:
    before = terminal.lines(styled=True)
    terminal.press("t")
    terminal.calm()
    assert terminal.lines(styled=True) != before
    terminal.press("question_mark")
    terminal.until("Keys (esc closes)", "every key of this screen")
    # A terminal's own escape, which may be the beginning of another key: nobody is told when it no longer is.
    terminal.send(b"\x1b")
    terminal.until("Needs a hand", gone=["Keys (esc closes)"])
    terminal.press("3")
    terminal.until("> kitchen")
    terminal.press("y")
    terminal.until("handed to the terminal's clipboard")
    assert terminal.clipboard == "kitchen"
    terminal.press("e")
    terminal.until("┌─ Export", "to a new file that only you may read")
    terminal.type("~/shown.txt")
    terminal.press("enter")
    terminal.until("lines written to")
    file = terminal.folder / "shown.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text().splitlines()[0])["device_id"] == "kitchen"
    terminal.press("e")
    terminal.until("┌─ Export")
    terminal.type("~/shown.txt")
    terminal.press("enter")
    terminal.until("exists already", "an export overwrites none")
    terminal.press("escape")
    terminal.until("What you have typed here is not kept")
    terminal.press("y")
    terminal.until("Filter", gone=["exists already"])
    terminal.press("q")
    assert terminal.ended() == 0


def test_the_log_is_filtered_turned_round_and_verified(terminal: Terminal) -> None:
    terminal.press("7")
    terminal.until("chain ok for the")
    terminal.press("slash")
    terminal.type("topic:device")
    terminal.press("enter")
    terminal.until("; chain ok for the", "device_id=ki", gone=["tools_observed"])
    terminal.press("s", "v")
    terminal.until("Verified, and clean:")
    terminal.press("enter")
    terminal.until("━ Row")
