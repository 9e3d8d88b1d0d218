"""What goes wrong around a console in a real terminal: it says what happened, and lives."""

from __future__ import annotations

import os
import random
import re
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from beetle_tui.charset import ASCII, UTF_8, charset_of, fitting
from tests.forked import Daemon
from tests.tui.pictured import workshop
from tests.tui.showing import PROFILE, commit, turn
from tests.tui.terminal import COMMAND_NAMES, Terminal, command_of

MEGABYTE = "pump 鍵 " * 120_000
FRAME = "┌─┐│└┘"
SEED = 6
SMALLEST = (20, 5)
LARGEST = (300, 100)
SIZES = 30
GARBAGE = (
    b"\xff\xfe\xe9\x80\x1b[1114112u\x1b[99999999999u\x1b[<9;9\x1b\x1b[200~\xff\x1b[201~\x1b[?2048;1$y\x1b]0;x\x07\x1b["
)


@pytest.fixture(scope="module", params=COMMAND_NAMES)
def beetle(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(command_of(request.param))


@pytest.fixture(scope="module")
def daemon(beetle: tuple[str, ...]) -> Iterator[Daemon]:
    """A workshop that nobody changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_COMMAND", " ".join(beetle))
        with workshop() as world:
            yield world.daemon


@contextmanager
def shown(
    beetle: tuple[str, ...], daemon: Daemon, *, env: dict[str, str] | None = None, **options: Any
) -> Iterator[Terminal]:
    """The console in a terminal, once it shows something. What it does is seen to in the end: `q` ends it with 0."""
    # A short path: a socket's may have about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder, Terminal(Path(folder), **options) as found:
        found.beside = (daemon.pid,)
        found.start(*beetle, "--socket", daemon.socket, "tui", env=env)
        found.until(" live ", "Needs a hand", daemon.socket)
        yield found
        found.press("q")
        assert found.ended() == 0


@contextmanager
def own_daemon(beetle: tuple[str, ...], config: str = "") -> Iterator[Daemon]:
    """A daemon of one test's own, with a configuration of its own."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="beetle-") as folder:
        patch.setenv("BEETLE_COMMAND", " ".join(beetle))
        patch.setenv("BEETLE_CONFIG", f"{folder}/beetle.toml")
        Path(folder, "beetle.toml").write_text(config)
        with Daemon(profile=PROFILE, folder=folder) as found:
            with found.client() as client:
                commit(client, turn(1))
            yield found


def test_a_daemon_that_is_killed_is_told_and_found_again(beetle: tuple[str, ...]) -> None:
    with own_daemon(beetle) as daemon, shown(beetle, daemon) as terminal:
        terminal.press("4")
        terminal.until("> local/workshop")
        daemon.kill()
        terminal.until("LOST", "The daemon is lost", "> local/workshop")
        terminal.press("enter", "2", "ctrl+p")
        terminal.until("Commands (enter runs", "no operations: ")
        terminal.press("escape")
        daemon.start()
        terminal.until(" live ", gone=["LOST", "The daemon is lost"])
        with daemon.client() as client:
            commit(client, turn(2))
        terminal.press("4")
        terminal.until(" 2 2026-03-02 08:12")
        terminal.press("enter")
        terminal.until("2 of 2 turns")


def test_a_capability_that_is_taken_away_is_told_and_given_back(beetle: tuple[str, ...]) -> None:
    def may(*names: str) -> str:
        granted = ", ".join(f'"{each}"' for each in names)
        return f"[principals.person]\nuid = {os.getuid()}\ncapabilities = [{granted}]\n"

    def reload(daemon: Daemon, *names: str) -> None:
        (daemon.folder / "beetle.toml").write_text(may(*names))
        os.kill(daemon.pid, signal.SIGHUP)

    with own_daemon(beetle, may("inspect", "transcript", "recall")) as daemon, shown(beetle, daemon) as terminal:
        terminal.press("4")
        terminal.until("> local/workshop")
        reload(daemon, "inspect", "recall")
        terminal.press("r")
        # A reload is told to nobody: what is read next is refused.
        while "forbidden" not in terminal.calm():
            terminal.press("r")
        terminal.until("Could not read: forbidden:", "Hint: ", "> local/workshop")
        terminal.press("6", "slash")
        terminal.type("pump")
        terminal.press("enter")
        terminal.until(" hit", "The pump is loud.", gone=["forbidden"])
        reload(daemon, "inspect", "transcript", "recall")
        terminal.press("4", "r")
        while "forbidden" in terminal.calm():
            terminal.press("r")
        terminal.until("> local/workshop", gone=["Could not read"])


def test_it_is_resized_wildly_and_readable_in_the_end(beetle: tuple[str, ...], daemon: Daemon) -> None:
    sizes = random.Random(SEED)
    with shown(beetle, daemon) as terminal:
        for area, filled in (
            ("3", ("> kitchen", "(fingerprint)")),
            ("4", ("> radio/night-shift", "of 2 conversations")),
            ("7", ("chain ok for", "Chain follows, ok")),
            ("1", ("Activity", "Needs a hand")),
        ):
            terminal.press(area)
            terminal.until(*filled)
            terminal.press("home")
            terminal.calm()
            before = steady(terminal)
            for _ in range(SIZES // 4 + 1):
                columns, rows = (sizes.randint(*each) for each in zip(SMALLEST, LARGEST, strict=True))
                terminal.resize(columns, rows)
                if columns < 60 or rows < 16:
                    terminal.until(f"{columns} x {rows}") if columns > 40 and rows > 6 else terminal.calm()
                terminal.press("down", "up")
            # A key that comes with a size that is too small does nothing: which of the two it was is chance.
            terminal.resize(80, 24)
            terminal.calm()
            terminal.press("home")
            # Pages are folded anew after the frame that has their new size.
            terminal.until_so(lambda before=before: steady(terminal) == before)


def steady(terminal: Terminal) -> list[str]:
    """The screen without what changes by itself: the time, the bars, and where a scrollbar stands."""
    lines = [re.sub(r"\d\d:\d\dZ|[▁▂▃▄▅▆▇█]|[\d.,]+ (?:\w?B|m?s|/s)\b|[\d.]+/s", "", each) for each in terminal.lines()]
    return [re.sub(" +", " ", each) for each in lines if not re.search(r"│ (Caller|Size)", each)]


def test_a_pasted_megabyte_is_cut_or_refused(beetle: tuple[str, ...], daemon: Daemon) -> None:
    with shown(beetle, daemon) as terminal:
        for keys, told in (
            (("3", "slash"), "0 of 0|No device"),
            (("6", "slash"), " hit"),
            (("ctrl+p",), "Nothing is called that."),
        ):
            terminal.press(*keys)
            terminal.paste(MEGABYTE)
            terminal.press("enter")
            # A terminal hands a megabyte over in pieces, and may pause in between for longer than a screen is calm.
            assert any(re.search(told, terminal.calm()) for _ in range(10)), terminal.text
            terminal.press("escape", "escape")
            terminal.calm()
        terminal.press("3", "2")
        terminal.until("─ find-key")
        terminal.press("i")
        terminal.until("^s saves")
        terminal.paste(MEGABYTE)
        terminal.until("what was pasted", "^s saves")
        terminal.press("escape")
        terminal.until("Runtime skills", gone=["^s saves"])


def test_what_is_typed_and_pasted_behind_the_palette_s_key_is_in_it(beetle: tuple[str, ...], daemon: Daemon) -> None:
    with shown(beetle, daemon) as terminal:
        for typed in (b"\x10zzq", b"\x10\x1b[200~zzq\x1b[201~"):
            terminal.send(typed)
            terminal.until("Nothing is called that.", "zzq")
            terminal.press("escape")
            terminal.until("Activity", gone=["Nothing is called that."])


def test_bytes_that_are_no_keys_do_no_harm(beetle: tuple[str, ...], daemon: Daemon) -> None:
    noise = random.Random(SEED)
    with shown(beetle, daemon) as terminal:
        for data in (GARBAGE, *(noise.randbytes(200).replace(b"\x03", b"").replace(b"\x11", b"") for _ in range(3))):
            terminal.press("3", "slash")
            # What is typed goes into a line here; a beginning of a paste that never ends would take all that follows.
            terminal.send(data.replace(b"\x1a", b"").replace(b"\n", b"").replace(b"\r", b"") + b"\x1b[201~")
            terminal.calm()
            # What was typed into a dialog is asked about before it closes: the lines are emptied first.
            for _ in range(3):
                terminal.press("escape", "escape", *("ctrl+u", "tab") * 4, "escape")
            terminal.calm()
        terminal.press("3")
        terminal.until("> kitchen")


def test_keys_that_come_all_at_once_are_taken_in_their_order(beetle: tuple[str, ...], daemon: Daemon) -> None:
    with shown(beetle, daemon) as terminal:
        # As a slow line brings them: another area, its filter, words, and back; then a form with its fields.
        terminal.send(b"3/wrong\x15panel\r")
        terminal.until("> panel-2", "1 of 1 device; 2 hidden", "/ panel", gone=["> kitchen"])
        terminal.send(b"/\x1b[27u" + b"a")
        terminal.until("Add a device")
        terminal.send(b"Gate\tgate-7\tsomebody\x13")
        terminal.until("What Gate may do")
        terminal.press("escape")
        terminal.until("gate-7", gone=["What Gate may do"])
        terminal.press("escape")
        terminal.until("is not kept")
        terminal.press("y")


def test_it_is_suspended_and_comes_back_under_a_shell(beetle: tuple[str, ...], daemon: Daemon) -> None:
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder, Terminal(Path(folder)) as terminal:
        terminal.start("sh", "-i", env={"PS1": "ready> "})
        terminal.until("ready>")
        terminal.type(" ".join([*beetle, "--socket", daemon.socket, "tui"]))
        terminal.press("enter")
        terminal.until(" live ", "Needs a hand")
        for times in (1, 2):
            terminal.press("3", "ctrl+z")
            # The shell's screen comes back before the shell does, and what is typed in between is thrown away.
            terminal.until_so(lambda times=times: terminal.text.count("Stopped") == times)
            terminal.until("ready>")
            terminal.type("fg; echo ended with $?")
            terminal.press("enter")
            terminal.until("> kitchen", " live ", gone=["ready>"])
        terminal.press("q")
        terminal.until("ended with 0", gone=["> kitchen"])


def test_a_terminal_that_stands_still_is_waited_for(beetle: tuple[str, ...], daemon: Daemon) -> None:
    with shown(beetle, daemon) as terminal:
        server = int(terminal.tmux("display-message", "-p", "#{pid}")[0])
        tty = terminal.tmux("display-message", "-p", "#{pane_tty}")[0]
        terminal.press(*"1234567" * 3)
        os.kill(server, signal.SIGSTOP)
        try:
            # Nobody reads what it draws; what fills the line is of another writer.
            descriptor = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            filled = 0
            while filled < 1 << 20:
                try:
                    filled += os.write(descriptor, b"\0" * 4096)
                except BlockingIOError:
                    break
            os.close(descriptor)
            with daemon.client() as client:
                client.call("skill.set_enabled", {"name": "runtime_skill__light-boiler", "enabled": True})
        finally:
            os.kill(server, signal.SIGCONT)
        terminal.press("3")
        terminal.until("> kitchen", " live ")


@pytest.mark.parametrize(
    ("env", "allowed"),
    [
        ({"NO_COLOR": "1"}, r"0?|[1247]|2[2-7]|39|49"),
        ({"TERM": "vt100"}, r"0?|[1247]|2[2-7]|39|49"),
        ({"TERM": "linux"}, r"0?|[1-57]|2[2-7]|[34][0-79]|9[0-7]|10[0-7]"),
    ],
)
def test_a_terminal_with_few_colours_gets_no_others(
    beetle: tuple[str, ...], daemon: Daemon, env: dict[str, str], allowed: str
) -> None:
    with shown(beetle, daemon, env=env) as terminal:
        for area in "1234567":
            terminal.press(area)
            terminal.calm()
            codes = {
                code
                for line in terminal.lines(styled=True)
                for found in re.findall(r"\x1b\[([\d;]*)m", line)
                for code in found.split(";")
            }
            assert [each for each in codes if not re.fullmatch(allowed, each)] == [], area
        terminal.press("ctrl+p")
        terminal.until("> Overview")
        terminal.press("escape")


@pytest.mark.parametrize(
    ("env", "framed"),
    [
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": ""}, True),
        ({"LANG": "C"}, False),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "", "TERM": "vt220"}, False),
        ({"LANG": "C.UTF-8", "TERM": "vt220"}, True),
    ],
)
def test_what_the_locale_has_no_character_for_is_shown_as_what_comes_nearest(
    beetle: tuple[str, ...], daemon: Daemon, env: dict[str, str], framed: bool
) -> None:
    with shown(beetle, daemon, env=env) as terminal:
        lines = terminal.lines()
        assert all(each in "\n".join(lines) for each in FRAME) == framed
        if framed:
            return
        assert "\n".join(lines).isascii()
        assert lines[1].startswith("+- Daemon and store ---")
        terminal.press("3")
        terminal.until("> kitchen", "????")
        assert "\n".join(terminal.lines()).isascii()
        assert {len(each) for each in terminal.lines() if each.startswith("+-")} <= {80}


def test_a_character_set_has_what_it_has_and_the_rest_takes_as_many_cells() -> None:
    assert charset_of({"LANG": "en_GB.UTF-8", "TERM": "vt100"}) == UTF_8
    assert charset_of({"LC_CTYPE": "UTF-8"}) == UTF_8
    assert charset_of({"LANG": "de_DE@euro"}) == UTF_8
    assert charset_of({"LANG": "xx_XX.NOT-THERE"}) == ASCII
    assert charset_of({"LC_ALL": "", "LANG": "POSIX"}) == ASCII
    latin = fitting(charset_of({"LANG": "de_DE.ISO-8859-1@euro"}))
    assert latin("Straße │ 青い箱…") == "Straße | ??????~"
    assert fitting(ASCII)("█▄ 👩‍👩‍👧 e\u0301 \x1b[1m") == "#= ?? e \x1b[1m"
    assert fitting(UTF_8)("青い箱…") == "青い箱…"
