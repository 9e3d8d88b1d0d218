"""`beetle tui`: when it refuses, what it loads, and one real run in a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.worker import WorkerFailed

from beetle_tui.app import start_check
from tests.forked import Daemon
from tests.running import ROOT
from tests.tui.showing import SECONDS, Shown, at, commit, opened, running, show, turn
from tests.tui.terminal import Terminal as RealTerminal
from tests.tui.terminal import command_of

QUIET_SECONDS = 3.0
BEETLE = [sys.executable, "-m", "beetle"]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's configuration."""
    for name in [each for each in os.environ if each.startswith(("BEETLE_", "XDG_")) or each == "NO_COLOR"]:
        monkeypatch.delenv(name)
    (tmp_path / "beetle.toml").touch()
    monkeypatch.setenv("BEETLE_CONFIG", str(tmp_path / "beetle.toml"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TERM", "xterm-256color")
    # As a parent may have exported them; the size is the terminal's own all the same.
    monkeypatch.setenv("COLUMNS", "132")
    monkeypatch.setenv("LINES", "43")


class Terminal:
    """The command on a terminal of its own: 80 columns, 24 rows."""

    def __init__(self, *words: str, **env: str) -> None:
        import fcntl
        import struct
        import termios

        self.descriptor, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*BEETLE, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **env},
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = b""

    def read(self, seconds: float) -> bytes:
        """What comes next, or nothing when that takes longer or the command has ended."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:
            return b""
        self.seen += data
        return data

    def until(self, text: bytes) -> None:
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            assert self.read(end - time.monotonic()), self.seen[-2000:]

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def ended(self) -> int:
        """The exit code."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0):
            pass
        return self.process.wait(1)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.descriptor)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("missing", ["stdin", "stdout", "stderr"])
def test_no_terminal_is_refused_with_a_hint(missing: str, daemon: Daemon) -> None:
    ours, theirs = pty.openpty()
    streams = {name: theirs for name in ("stdin", "stdout", "stderr")} | {missing: subprocess.PIPE}
    done = subprocess.Popen([*BEETLE, "--socket", daemon.socket, "tui"], **streams)
    out, err = done.communicate(timeout=SECONDS)
    os.close(theirs)
    said = (err or b"").decode() if missing == "stderr" else os.read(ours, 65536).decode().replace("\r\n", "\n")
    os.close(ours)
    assert done.returncode == 2
    assert said.splitlines() == [
        f"beetle: invalid_request: the console needs a terminal, and {missing} is none",
        "without one, `beetle status` and `beetle memory inspect --json` show the same",
    ]
    assert not out


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("kind", ["dumb", "unknown", ""])
def test_a_terminal_that_can_only_print_lines_is_refused(kind: str, daemon: Daemon) -> None:
    with Terminal("--socket", daemon.socket, "tui", TERM=kind) as terminal:
        assert terminal.ended() == 2
        assert f"invalid_request: the console needs a terminal, and TERM={kind} can".encode() in terminal.seen
        assert b"set TERM, e.g. TERM=vt100" in terminal.seen
        assert b"\x1b" not in terminal.seen


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--socket", "/nowhere/b.sock", "tui"), 7, b"daemon_unavailable: no daemon answers at /nowhere/b.sock"),
        (("--store", "/nowhere/b.db", "tui"), 3, b"not_found: no store exists at /nowhere/b.db yet"),
    ],
)
def test_where_nobody_is_the_screen_is_not_touched(words: tuple[str, ...], code: int, said: bytes) -> None:
    with Terminal(*words) as terminal:
        assert terminal.ended() == code
        assert said in terminal.seen
        assert b"\x1b" not in terminal.seen


@pytest.mark.usefixtures("clean")
def test_while_nothing_changes_nothing_is_sent(daemon: Daemon) -> None:
    with Terminal("--socket", daemon.socket, "tui") as terminal:
        terminal.until(b" live ")
        terminal.until(b"Nothing.")
        end = time.monotonic() + SECONDS
        while terminal.read(QUIET_SECONDS):
            assert time.monotonic() < end, f"it goes on and on: {terminal.seen[-500:]!r}"
        terminal.type(b"q")
        assert terminal.ended() == 0
        assert terminal.seen.endswith((b"\x1b[?1004l", b"\x1b[?25h", b"\x1b[?1049l")), terminal.seen[-100:]


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_gives_the_terminal_back(daemon: Daemon, number: int) -> None:
    with Terminal("--socket", daemon.socket, "tui") as terminal:
        terminal.until(b" live ")
        terminal.process.send_signal(number)
        assert terminal.ended() == 0
        assert b"\x1b[?1049l" in terminal.seen
        assert b"Traceback" not in terminal.seen


@pytest.mark.usefixtures("clean")
def test_a_terminal_that_goes_away_takes_the_console_with_it(daemon: Daemon) -> None:
    terminal = Terminal("--socket", daemon.socket, "tui")
    try:
        terminal.until(b" live ")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.process.wait(SECONDS)
    finally:
        terminal.__exit__()


def test_the_build_check_finds_nothing_wrong_here() -> None:
    assert start_check() == ""


def test_the_build_check_tells_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle_tui.app.CHECK_PROFILE", "profile-that-is-missing")
    assert start_check().startswith("InvalidRequest: ")


def test_a_defect_is_told_in_one_line_without_anything_that_was_shown(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from beetle.cli.console import _where
    from beetle_tui.screens.overview import Overview

    secret = "app-key-of-nobody"

    async def broken(self: Overview) -> None:
        raise ZeroDivisionError(secret)

    monkeypatch.setattr(Overview, "load", broken)
    consoles = []

    async def look(shown: Shown) -> None:
        consoles.append(shown.console)
        await shown.until(lambda: shown.console.defect is not None)

    with pytest.raises(WorkerFailed):
        show(at(daemon), look)
    assert isinstance(consoles[0].defect, ZeroDivisionError)
    assert consoles[0].return_code == 1
    assert _where(consoles[0].defect).startswith(("test_command.py:", "area.py:"))
    said = capfd.readouterr()
    assert secret not in said.out + said.err
    assert "Traceback" not in said.out + said.err


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.splitlines()[-1].split())


def test_help_and_completion_load_no_console() -> None:
    loaded = modules_after("from beetle.__main__ import main; main(['tui', '--help']); main(['completion', 'bash'])")
    assert loaded & {"textual", "rich", "asyncio", "apsw", "beetle_tui"} == set()


def test_the_console_loads_no_parser_of_languages_and_no_store() -> None:
    loaded = modules_after("import beetle_tui.app")
    heavy = {
        "pygments", "markdown_it", "mdit_py_plugins", "linkify_it", "tree_sitter", "rich.markdown", "rich.syntax",
        "textual.widgets._markdown", "textual.widgets._text_area", "textual.widgets._data_table", "importlib.metadata",
        "apsw", "beetle.store", "beetle.runtime", "beetle.open", "xml.dom", "http.client", "multiprocessing",
    }  # fmt: skip
    assert loaded & heavy == set()


def test_starting_it_loads_no_more_of_them() -> None:
    loaded = modules_after("from beetle_tui.app import start_check; assert start_check() == ''")
    heavy = {"pygments", "markdown_it", "linkify_it", "tree_sitter", "rich.markdown", "rich.traceback", "rich.syntax"}
    assert loaded & heavy == set()


@pytest.fixture
def window(clean: None) -> Iterator[RealTerminal]:
    command_of("python")
    # A short path: a socket's may have about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder, RealTerminal(Path(folder)) as found:
        yield found


def test_a_session_in_a_real_terminal(window: RealTerminal, daemon: Daemon) -> None:
    window.beside = (daemon.pid,)
    window.start(*BEETLE, "--socket", daemon.socket, "tui")
    window.until(" live ", "Needs a hand", "Nothing.", "q Quit")
    window.calm()
    assert (max(map(len, window.lines())), len(window.lines())) == (80, 24)
    with daemon.client() as client:
        commit(client, turn(501))
        turns = f" turns {client.inspect().counts.turns} "
    window.until(turns)
    window.resize(50, 12)
    window.until("This terminal has 50 x 12.")
    window.resize(160, 48)
    window.until("live, read", turns)
    window.calm()  # a screen that is half drawn may show these already
    assert max(map(len, window.lines())) == 160
    window.press("question_mark")
    window.until("Keys (esc closes)")
    window.press("escape")
    window.until(turns, gone=["Keys (esc closes)"])
    window.press("q")
    assert window.ended() == 0


def test_a_store_without_a_daemon_in_a_real_terminal(window: RealTerminal, tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    opened(store).close()
    window.size = (100, 30)
    window.start(*BEETLE, "--store", store, "tui")
    window.until("no daemon: this console", " no daemon", store)
    window.press("q")
    assert window.ended() == 0
    opened(store).close()


def test_the_store_of_a_lost_daemon_is_left_to_its_next_daemon(window: RealTerminal) -> None:
    with running() as daemon:
        window.start(*BEETLE, "--store", daemon.store, "tui")
        window.until(" live ", f"pid {daemon.pid},")
        daemon.kill()
        window.until("The daemon is lost", "no daemon holds", "Hint: start one with `beetle start`")
        daemon.start()
        window.press("r")
        window.until(" live ", f"pid {daemon.pid},", gone=["LOST"])
        window.press("q")
        assert window.ended() == 0
