"""A console on a terminal of its own, and how long after a key its effect has come there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.running import ROOT

PATIENCE = 60.0
QUIET = 0.06
"""Seconds without a byte after which what a key has set off counts as over."""
CONTROL = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78cM])")
"""What moves and colours: between two pieces of one line it leaves nothing."""
LONGEST_CONTROL = 256


class Painted(NamedTuple):
    """What came of a key: milliseconds until each of the marks was on the terminal, and bytes until it was quiet."""

    ms: tuple[float, ...]
    sent: int


class Silent(AssertionError):
    """What was waited for did not come."""


class Screen:
    """The text of what comes, as it comes: no picture of the screen, but what was written to it since a moment."""

    def __init__(self) -> None:
        self.text = ""
        self.sent = 0
        self._left = b""

    def forget(self) -> None:
        self.text, self.sent = "", 0

    def add(self, data: bytes) -> None:
        self.sent += len(data)
        data = self._left + data
        # A sequence, or a letter, may be cut in two by the end of a read.
        end = data.rfind(b"\x1b", max(0, len(data) - LONGEST_CONTROL))
        cut = end if end >= 0 and CONTROL.match(data, end) is None else len(data)
        while cut and cut == len(data) and _begins_a_letter(data[-4:]):
            cut -= next(back for back in range(1, 5) if data[-back] & 0xC0 != 0x80)
            break
        self._left = data[cut:]
        self.text += CONTROL.sub(b"", data[:cut]).decode(errors="replace")


def _begins_a_letter(tail: bytes) -> bool:
    """Whether the last letter of some UTF-8 bytes is not whole yet."""
    for back in range(1, len(tail) + 1):
        byte = tail[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return needed > back
    return False


class Terminal:
    """The command in a terminal of some columns and rows, without any of this machine's own settings.

    `pause` is for who waits until nothing comes any more: after a second the console may read again.
    """

    def __init__(self, command: Sequence[str], size: tuple[int, int], folder: Path, pause: float = 1.5) -> None:
        self.pause = pause
        config = folder / "beetle.toml"
        config.touch()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEETLE_", "XDG_", "NO_CO"))}
        own = {
            "TERM": "xterm-256color", "COLORTERM": "truecolor", "BEETLE_CONFIG": str(config), "PYTHONPATH": str(ROOT),
            "BEETLE_CACHE": str(folder / "cache"),
        }  # fmt: skip
        self.screen = Screen()
        self.descriptor, theirs = pty.openpty()
        columns, rows = size
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, **own}, start_new_session=True
        )
        os.close(theirs)

    def read(self, seconds: float) -> bool:
        """Take what comes next; whether anything came."""
        if not select.select([self.descriptor], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.screen.add(data)
        return bool(data)

    def until(self, *marks: str, since: float | None = None) -> Painted:
        """Wait until every one of these patterns has come, counted from a moment, then until it is quiet.

        Raises:
            Silent: one did not come.
        """
        return self._follow(time.perf_counter() if since is None else since, lambda: marks)

    def press(self, keys: bytes, *marks: str) -> Painted:
        """Press keys and wait as `until`."""
        self.screen.forget()
        began = time.perf_counter()
        os.write(self.descriptor, keys)
        return self._follow(began, lambda: marks)

    def move(self, keys: bytes, foot: str, marks: Callable[[int], Sequence[str]]) -> tuple[int, Painted]:
        """Press keys that choose another row: its number out of the pattern `foot`, and when it and each of the marks
        that such a row has were on the terminal."""
        self.screen.forget()
        began = time.perf_counter()
        os.write(self.descriptor, keys)

        def number() -> int | None:
            found = re.findall(foot, self.screen.text)
            return int(found[-1].replace(",", "")) if found else None

        def wanted() -> Sequence[str]:
            chosen = number()
            return (foot,) if chosen is None else (foot, *marks(chosen))

        painted = self._follow(began, wanted)
        chosen = number()
        assert chosen is not None
        return chosen, painted

    def _follow(self, began: float, wanted: Callable[[], Sequence[str]]) -> Painted:
        """What is wanted may become more while it comes. A mark that came before it was known counts from then."""
        ends: list[tuple[int, float]] = []
        give_up = began + PATIENCE
        while True:
            patterns = wanted()
            found = [re.search(each, self.screen.text) for each in patterns]
            if all(found) and patterns == wanted():
                break
            if not self.read(give_up - time.perf_counter()):
                missing = [each for each, match in zip(patterns, found, strict=True) if match is None]
                raise Silent(f"{missing} did not come; what came ends with {self.screen.text[-1500:]!r}")
            ends.append((len(self.screen.text), time.perf_counter()))
        self.settle()
        times = (next(at for end, at in ends if end >= match.end()) for match in found if match is not None)
        return Painted(tuple((at - began) * 1000 for at in times), self.screen.sent)

    def settle(self, quiet: float = QUIET) -> None:
        """Read until nothing comes any more."""
        end = time.perf_counter() + PATIENCE
        while self.read(quiet):
            if time.perf_counter() > end:
                raise Silent(f"it goes on and on: {self.screen.text[-500:]!r}")

    def listen(self, seconds: float) -> int:
        """Bytes that come in so many seconds."""
        self.screen.forget()
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)
        return self.screen.sent

    def quit(self) -> int:
        """Press `q`: the exit code."""
        os.write(self.descriptor, b"q")
        end = time.perf_counter() + PATIENCE
        while self.process.poll() is None and time.perf_counter() < end:
            self.read(0.05)
        return self.process.wait(1)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.descriptor)
