"""The real command in a real terminal: a tmux server of the test's own, its keys, and what stands on its screen.

tmux's control mode tells when something was drawn, so that nothing here waits for a time to pass.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import pytest

from tests.built import ONE_FILE, need_build, why_not
from tests.running import ROOT

SECONDS = 60.0
LOOK_SECONDS = 0.5
"""A look is taken even when nothing was drawn: what is waited for may be there already."""
CALM_SECONDS = 0.025
"""For so long nobody may run and nothing may be drawn before all counts as done. Textual draws 60 times a second."""
PLAIN_ESCAPE = b"\x1b[27u"
SIZE = (80, 24)
OPTIONS = """
set -g default-terminal {kind}
set -g status off
set -g remain-on-exit on
set -s set-clipboard on
set -s escape-time 0
"""
COMMANDS: Mapping[str, Sequence[str]] = {
    "python": (sys.executable, "-m", "beetle"),
    "frozen": (str(ONE_FILE),),
}
"""The ways to start beetle, by what they are called in a test's name."""
COMMAND_NAMES = ("frozen",) if os.environ.get("BEETLE_REQUIRE_BUILD") or not why_not() else ("python",)
"""The one file where there is a build of this checkout, else the checkout: both run the same code."""
KEYS: Mapping[str, str] = {
    "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "pageup": "PageUp", "pagedown": "PageDown", "enter": "Enter", "escape": "Escape", "tab": "Tab",
    "shift+tab": "BTab", "space": "Space", "delete": "DC", "slash": "/", "question_mark": "?",
}  # fmt: skip
"""tmux's names of keys, by Textual's."""


def command_of(name: str) -> Sequence[str]:
    """How to start beetle this way. Skips the test where there is no tmux or no build of this checkout."""
    if shutil.which("tmux") is None:
        if os.environ.get("BEETLE_REQUIRE_BUILD"):
            pytest.fail("tmux is not installed")
        pytest.skip("tmux is not installed")
    if name == "frozen":
        need_build()
    return COMMANDS[name]


def named(key: str) -> str:
    """tmux's name of a key of Textual's."""
    *modifiers, base = key.split("+") if key not in KEYS else (key,)
    letters = {"ctrl": "C-", "shift": "S-", "alt": "M-"}
    return "".join(letters[each] for each in modifiers) + KEYS.get(base, base)


class Terminal:
    """A window of a tmux server with one command in it."""

    def __init__(self, folder: Path, size: tuple[int, int] = SIZE, *, kind: str = "tmux-256color") -> None:
        """`folder` takes the server's socket, and is the command's home; `kind` is TERM inside."""
        self.folder = folder
        self.size = size
        self.kind = kind
        self.beside: tuple[int, ...] = ()
        """Processes that the command waits for: `calm` waits for them too."""
        self._socket = folder
        self._started = 0
        self._tmux: subprocess.Popen[bytes] | None = None
        self._read = b""
        self._drawn = False
        self._pid = 0
        self._tty = -1

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Run a command in it; once it ends, the screen says `Pane is dead` with its exit code."""
        config = self.folder / "tmux.conf"
        config.write_text(OPTIONS.format(kind=self.kind))
        given = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8",
                 "BEETLE_CONFIG": str(self.folder / "beetle.toml")}  # fmt: skip
        (self.folder / "beetle.toml").touch()
        for name in ("BEETLE_CACHE", "XDG_RUNTIME_DIR"):
            if name in os.environ:
                given[name] = os.environ[name]
        started = ["env", "-i", *(f"{name}={value}" for name, value in {**given, **(env or {})}.items())]
        if "TERM" not in (env or {}):
            started.append(f"TERM={self.kind}")
        self._started += 1  # the server before may be on its way out
        self._socket = self.folder / f"tmux-{self._started}"
        server = ["tmux", "-u", "-f", str(config), "-S", str(self._socket), "-C"]
        self._tmux = subprocess.Popen(
            [*server, "new-session", "-c", str(self.folder), "--", *started, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", "HOME": str(self.folder)},
        )
        assert self._tmux.stdout is not None
        os.set_blocking(self._tmux.stdout.fileno(), False)
        self._answer()
        self.resize(*self.size)
        self._find()

    def again(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        """In the place of a command that has ended, another one."""
        self.stop()
        self.start(*words, env=env)

    def _find(self) -> None:
        """The pane's process and terminal."""
        pid, terminal = self.tmux("display-message", "-p", "#{pane_pid} #{pane_tty}")[0].split()
        self._pid = int(pid)
        if self._tty >= 0:
            os.close(self._tty)
        self._tty = os.open(terminal, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)

    def stop(self) -> None:
        """End the server, and with it what runs in it."""
        if self._tty >= 0:
            os.close(self._tty)
            self._tty = -1
        if self._tmux is not None:
            subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False, capture_output=True)
            assert self._tmux.stdin is not None and self._tmux.stdout is not None
            self._tmux.wait(SECONDS)
            self._tmux.stdin.close()
            self._tmux.stdout.close()
            self._tmux = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The command's process."""
        return self._pid

    def tmux(self, *words: str) -> list[str]:
        """Run a command of tmux's; its lines. RuntimeError: with what tmux says is wrong."""
        assert self._tmux is not None and self._tmux.stdin is not None
        self._tmux.stdin.write((" ".join(_quoted(each) for each in words) + "\n").encode())
        self._tmux.stdin.flush()
        return self._answer()

    def _answer(self) -> list[str]:
        """What stands between the next %begin and its end."""
        lines: list[str] | None = None
        end = ""
        while True:
            line = self._line(SECONDS)
            if line is None:
                raise RuntimeError("tmux does not answer")
            if lines is None:
                if line.startswith("%begin "):
                    lines, end = [], line.removeprefix("%begin ")
                else:
                    self._note(line)
            elif line == f"%end {end}":
                return lines
            elif line == f"%error {end}":
                raise RuntimeError("\n".join(lines))
            else:
                lines.append(line)

    def _line(self, seconds: float) -> str | None:
        """The next line of tmux's, or None when there is none in that time."""
        assert self._tmux is not None and self._tmux.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._read:
            left = end - time.monotonic()
            if not select.select([self._tmux.stdout], [], [], max(0.0, left))[0]:
                return None
            data = os.read(self._tmux.stdout.fileno(), 1 << 16)
            if not data:
                raise RuntimeError("tmux has ended")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace")

    def _note(self, line: str) -> None:
        self._drawn = self._drawn or line.startswith("%output")

    def drawn(self, seconds: float) -> bool:
        """Whether anything is drawn until so many seconds have passed; true as soon as it is."""
        while (line := self._line(0)) is not None:
            self._note(line)
        if not self._drawn and (line := self._line(seconds)) is not None:
            self._note(line)
            while (line := self._line(0)) is not None:
                self._note(line)
        drawn, self._drawn = self._drawn, False
        return drawn

    def press(self, *keys: str) -> None:
        """Press keys, by Textual's names. What a terminal sends for escape may be the beginning of another key, for a
        tenth of a second: here it is sent as terminals do that tell keys apart."""
        for each in keys:
            if each == "escape":
                self.send(PLAIN_ESCAPE)
            else:
                self.tmux("send-keys", *(("-l", each) if len(each) == 1 else (named(each),)))

    def type(self, text: str) -> None:
        """Press the key of each character."""
        self.tmux("send-keys", "-l", text)

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.tmux("send-keys", "-H", *(f"{each:02x}" for each in data))

    def paste(self, text: str) -> None:
        """Paste, as a terminal does where the command has asked for brackets around it."""
        file = self.folder / "paste"
        file.write_text(text)
        self.tmux("load-buffer", "-b", "pasted", str(file))
        self.tmux("paste-buffer", "-p", "-r", "-b", "pasted")

    def resize(self, columns: int, rows: int) -> None:
        """Make it another size, and wait until the command can know it: tmux tells that somewhat later."""
        self.size = columns, rows
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        end = time.monotonic() + SECONDS
        while self._tty >= 0 and os.get_terminal_size(self._tty) != (columns, rows):
            self.drawn(CALM_SECONDS)
            assert time.monotonic() < end, "tmux does not resize it"

    def lines(self, *, styled: bool = False) -> list[str]:
        """What is on the screen; with its escape sequences when `styled`."""
        return self.tmux("capture-pane", "-p", *(("-e",) if styled else ()))

    @property
    def text(self) -> str:
        """The screen, with one blank where there are several: how far apart things stand is no matter here."""
        return re.sub(" +", " ", "\n".join(self.lines()))

    @property
    def clipboard(self) -> str:
        """What was copied last."""
        return "\n".join(self.tmux("show-buffer"))

    def until(self, *texts: str, gone: Sequence[str] = ()) -> str:
        """The screen, once it shows all of these and none of what is to be gone."""
        end = time.monotonic() + SECONDS
        while True:
            shown = self.text
            if all(each in shown for each in texts) and not any(each in shown for each in gone):
                return shown
            if time.monotonic() > end or ("Pane is dead" in shown and "Pane is dead" not in texts):
                wanted = [*(each for each in texts if each not in shown), *(f"no {each}" for each in gone)]
                raise AssertionError(f"never showed {wanted}:\n" + "\n".join(self.lines()))
            self.drawn(LOOK_SECONDS)

    def until_so(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so of what is on the screen."""
        end = time.monotonic() + SECONDS
        while not happened():
            assert time.monotonic() < end, "it never came to that:\n" + "\n".join(self.lines())
            self.drawn(LOOK_SECONDS)

    def ended(self) -> int:
        """The exit code of the command, once it has ended."""
        self.until("Pane is dead")
        return int(self.tmux("display-message", "-p", "#{pane_dead_status}")[0])

    def check(self) -> str:
        """The screen; the command lives and has told of no defect."""
        shown = self.text
        dead = self.tmux("display-message", "-p", "#{pane_dead}")[0]
        if dead != "0" or "Traceback" in shown or "stopped on a defect" in shown:
            raise AssertionError("it has ended, or is broken:\n" + "\n".join(self.lines()))
        return shown

    def calm(self) -> str:
        """The screen, once every key was taken and nobody runs any more: neither the command nor who is beside it."""
        end = time.monotonic() + SECONDS
        while True:
            before = self._activity()
            if before is not None and not self.drawn(CALM_SECONDS) and _alike(before, self._activity()):
                return self.check()
            if before is None:
                self.drawn(CALM_SECONDS / 4)
            assert time.monotonic() < end, "it goes on and on:\n" + "\n".join(self.lines())

    def _activity(self) -> dict[str, int] | None:
        """How often each thread went to sleep so far; None while one runs, or a key waits to be read."""
        try:
            unread = fcntl.ioctl(self._tty, termios.FIONREAD, b"\0" * 4)
        except OSError:
            return {}  # the terminal is closed: the command has ended
        if any(unread):
            return None
        found: dict[str, int] = {}
        for pid in (self._pid, *self.beside):
            try:
                threads = os.listdir(f"/proc/{pid}/task")
                told = {each: Path(f"/proc/{pid}/task/{each}/status").read_text() for each in threads}
            except (FileNotFoundError, ProcessLookupError):
                continue
            for thread, text in told.items():
                if re.search(r"^State:\s+[RD]", text, re.MULTILINE):
                    return None
                found[thread] = sum(int(number) for number in re.findall(r"ctxt_switches:\s+(\d+)", text))
        return found


def _alike(before: Mapping[str, int], now: Mapping[str, int] | None) -> bool:
    """Whether nothing has happened between two looks; a thread that looked for a key and found none did nothing."""
    if now is None or before.keys() != now.keys():
        return False
    woken = [now[each] - before[each] for each in now if now[each] != before[each]]
    return woken in ([], [1])


def _quoted(word: str) -> str:
    """A word as tmux reads it on a line of its own."""
    return "'" + word.replace("'", "'\\''") + "'"


@contextmanager
def terminal(folder: Path, command: Sequence[str], *words: str, **options: object) -> Iterator[Terminal]:
    """A console in a terminal, ended with the block."""
    env = options.pop("env", None)
    beside = options.pop("beside", ())
    with Terminal(folder, **options) as found:  # type: ignore[arg-type]
        found.beside = tuple(beside)  # type: ignore[arg-type]
        found.start(*command, *words, env=env)  # type: ignore[arg-type]
        yield found
