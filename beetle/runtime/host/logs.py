"""The daemon's own log: one line for each thing that happened, on standard error, in the journal or in a file.

A line of the journal or of a file is a JSON object: `time`, `level`, `component`, `event`, `message`, and where they
are known `op`, `principal`, `ms` and `error`. It names what was done by ids of ours; nothing that a caller wrote, and
no key, is put into it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from beetle.named_tuple import NamedTuple

LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
FIELDS: Final = ("op", "principal", "ms", "error")
"""What a line says beside its message, by the names that `extra` gives them."""
PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""The journal's priority from a level on; below them it is 7."""
LEVEL_NAMES: Final = {"WARNING": "warn"}
LOOK_S = 1.0
"""So often a file that grows looks whether another program has moved it."""


class Bounds(NamedTuple):
    """How long a log's file may become, and how many there may be with it: `FILE`, `FILE.1`, and so on."""

    file_bytes: int = 1_048_576
    files: int = 4


USUAL: Final = Bounds()
"""Until the profile is known."""


class JsonLine(logging.Formatter):
    """A record as one line of JSON. Line breaks of its message are escaped, so no text can begin a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        component = record.name.removeprefix("beetle.")
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": LEVEL_NAMES.get(record.levelname, record.levelname.lower()),
            "component": component,
            "event": getattr(record, "event", component),
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        return msgspec.json.encode(line).decode()


class JournalLine(JsonLine):
    """As `JsonLine`, behind the prefix by which the journal knows its priority (sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        priority = next((number for level, number in PRIORITIES if record.levelno >= level), 7)
        return f"<{priority}>{super().format(record)}"


class RotatingFile(logging.Handler):
    """Appends to a file of mode 0600. At `file_bytes` it becomes `FILE.1` and a new one is begun; the oldest goes.

    A file that was moved or removed is made anew. Where standard error is the file too, as with `beetle start`, it
    follows, so that the message of a crash is found there.
    """

    def __init__(self, path: str, bounds: Bounds) -> None:
        """Raises OSError: the file cannot be written."""
        super().__init__()
        self.setFormatter(JsonLine())
        self.bounds = bounds
        self._path = path
        self._looked = 0.0
        self._failed = False
        self._file = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        try:
            self._make_room(len(line))
            os.write(self._file, line)
            self._failed = False
        except OSError as error:
            # The log must not keep the daemon from its work; once is enough to say so.
            if not self._failed:
                self._failed = True
                with contextlib.suppress(OSError):
                    os.write(2, f"beetle: the log {self._path} cannot be written: {error.strerror}\n".encode())

    def close(self) -> None:
        with self.lock or contextlib.nullcontext():
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
        super().close()

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, 0o600)
        found = os.fstat(descriptor)
        # One that others could read before is theirs no more; what is no file (/dev/null) stays as it is.
        if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077 and found.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
        return descriptor

    def _make_room(self, needed: int) -> None:
        """See that the file is the one of that name, and has room for so many bytes."""
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            return
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            if not _is_at(self._path, found):
                self._begin()
                found = os.fstat(self._file)
        if found.st_size and found.st_size + needed > self.bounds.file_bytes:
            self._rotate()

    def _rotate(self) -> None:
        if self.bounds.files == 1:
            os.ftruncate(self._file, 0)
            return
        for number in range(self.bounds.files - 1, 0, -1):
            older = self._path if number == 1 else f"{self._path}.{number - 1}"
            with contextlib.suppress(FileNotFoundError):
                os.replace(older, f"{self._path}.{number}")
        self._begin()

    def _begin(self) -> None:
        before, self._file = self._file, self._open()
        with contextlib.suppress(OSError):  # standard error is closed
            if os.path.samestat(os.fstat(before), os.fstat(2)):
                os.dup2(self._file, 2)
        os.close(before)


def _is_at(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), found)
    except OSError:
        return False


def is_journal(env: Mapping[str, str], descriptor: int = 2) -> bool:
    """Whether a descriptor leads into the journal, as $JOURNAL_STREAM says (systemd.exec(5)): it is inherited, so that
    it is believed only of the very stream that it names."""
    device, _, inode = env.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return (device, inode) == (str(found.st_dev), str(found.st_ino))


def start(place: str, level: str, env: Mapping[str, str], bounds: Bounds = USUAL) -> None:
    """Log from now on to `place`: `stderr`, which may be the journal, or a file.

    Raises:
        OSError: the file cannot be written.
    """
    handler: logging.Handler
    if place != "stderr":
        handler = RotatingFile(place, bounds)
    else:
        handler = logging.StreamHandler(sys.stderr)
        text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
        handler.setFormatter(JournalLine() if is_journal(env) else text)
    root = logging.getLogger("beetle")
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    root.propagate = False


def bound(bounds: Bounds) -> None:
    """Hold a file to a profile's bounds, which are known only when a store's place is."""
    for each in logging.getLogger("beetle").handlers:
        if isinstance(each, RotatingFile):
            each.bounds = bounds
