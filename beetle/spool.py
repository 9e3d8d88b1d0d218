"""The spool of hooks: events that wait in files of their user's own until a daemon takes them.

Hooks and `beetle status` load it: nothing is imported that a start would not load anyway.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SPOOL_FILES = 4096
"""So many events wait at most."""
SPOOL_FILE_BYTES = 512 * 1024
REFUSED_FILES = 256
HELD = ".held.json"
"""How the name of a file of the spool ends that stayed once: those that never did are delivered first."""


def spool_folder(env: Mapping[str, str]) -> str:
    """Where events wait: $XDG_STATE_HOME/beetle/spool, else ~/.local/state/beetle/spool."""
    state = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "beetle", "spool")


def spool_names(folder: str) -> Iterator[str]:
    """The files of complete events, in any order."""
    try:
        with os.scandir(folder) as entries:
            yield from (each.name for each in entries if each.name.endswith(".json"))
    except FileNotFoundError:
        return


def spool_state(folder: str) -> dict[str, Any]:
    """What waits in the spool: `events`, `oldest_at` (RFC 3339, or None), and how many no daemon took (`refused`).

    Raises:
        OSError: it cannot be read.
    """
    names = list(spool_names(folder))
    oldest = min((int(each[:20]) for each in names if each[:20].isdecimal()), default=None)
    at = None if oldest is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest // 10**9))
    return {
        "events": len(names),
        "oldest_at": at,
        "refused": sum(1 for _ in spool_names(os.path.join(folder, "refused"))),
    }


def spool_line(state: Mapping[str, Any]) -> str:
    """What `spool_state` tells, for people."""
    oldest = f", the oldest since {state['oldest_at']}" if state["oldest_at"] else ""
    refused = f"; {state['refused']:,} refused" if state["refused"] else ""
    events = "1 event waits" if state["events"] == 1 else f"{state['events']:,} events wait"
    return f"{events} for a daemon{oldest}{refused}"


def own_content(path: str, most: int, *, flags: int = 0, hidden_from: int = 0) -> bytes:
    """What stands in a regular file of this user's own; a pipe or a device is not waited for.

    Args:
        hidden_from: bits of the mode that it must not have.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such file, or longer than `most`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise ValueError(f"{path!r} is not a regular file of this user's own")
        if found.st_mode & hidden_from:
            raise ValueError(f"{path!r} may be read by others: chmod 600 it")
        data = os.read(descriptor, most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise ValueError(f"{path!r} is longer than {most} bytes")
    return data


def save(spool: str, data: bytes, *, refused: bool = False) -> str:
    """Put a record into the spool, or among what no daemon takes: complete, or not at all; the folder that it is in.

    Raises:
        OSError: the folder is full, or cannot be written.
    """
    folder, most = (os.path.join(spool, "refused"), REFUSED_FILES) if refused else (spool, SPOOL_FILES)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if sum(1 for _ in spool_names(folder)) >= most:
        hint = "look at them, then remove them" if refused else "start the daemon: beetle start"
        raise OSError(f"{folder} holds {most} events already; {hint}")
    if len(data) > SPOOL_FILE_BYTES:
        raise OSError(f"it is larger than {SPOOL_FILE_BYTES} bytes, and no daemon took it")
    name = f"{time.time_ns():020}-{os.getpid()}-{os.urandom(4).hex()}"
    place = os.path.join(folder, name)
    descriptor = os.open(f"{place}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.rename(f"{place}.new", f"{place}.json")
    except OSError:
        os.unlink(f"{place}.new")
        raise
    return folder


class Outcome:
    """What became of what waited in a spool: how many were `delivered`; why others were `refused` and put aside, or
    `left` where they were, each with their number. Nothing is removed that was not delivered."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._refused_folder = os.path.join(folder, "refused")
        self.delivered = 0
        self.refused: dict[str, int] = {}
        self.left: dict[str, int] = {}

    def waiting(self) -> list[str]:
        """The files, the oldest first. What stayed before comes last, and begins anywhere: time is short, and none is
        always behind the others.

        Raises:
            OSError: the spool cannot be read.
        """
        found = sorted(spool_names(self.folder))
        fresh, held = ([each for each in found if each.endswith(HELD) is wanted] for wanted in (False, True))
        begin = int.from_bytes(os.urandom(2), "big") % len(held) if held else 0
        return [*fresh, *held[begin:], *held[:begin]]

    def remove(self, name: str) -> None:
        """One that was delivered."""
        self.delivered += 1
        try:
            os.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            return  # another hook delivered it at the same time
        except OSError as error:
            self.leave(name, f"delivered, but {error.strerror}")

    def put_aside(self, name: str, why: str) -> None:
        """Keep what no daemon takes for somebody to look at; where there is no room for it, it stays."""
        try:
            os.makedirs(self._refused_folder, mode=0o700, exist_ok=True)
            if sum(1 for _ in spool_names(self._refused_folder)) >= REFUSED_FILES:
                self.leave(name, f"{why}, and {self._refused_folder} is full")
                return
            os.rename(os.path.join(self.folder, name), os.path.join(self._refused_folder, name))
        except FileNotFoundError:
            return  # another hook put it aside at the same time
        except OSError as error:
            self.leave(name, f"{why}, and not put aside: {error.strerror}")
        else:
            self.refused[why] = self.refused.get(why, 0) + 1

    def leave(self, name: str, why: str) -> None:
        """One that is to be tried again, behind the others."""
        self.left[why] = self.left.get(why, 0) + 1
        self.hold(name)

    def hold(self, name: str) -> None:
        """One of which nobody need be told stays, behind the others."""
        if name.endswith(HELD):
            return
        place = os.path.join(self.folder, name)
        try:
            os.rename(place, place.removesuffix(".json") + HELD)
        except OSError:
            return  # in a folder that cannot be written it keeps its turn

    def told(self) -> str:
        """What somebody should know of it, in one line; nothing where all went well."""
        found = ((self.refused, f"put aside in {self._refused_folder}"), (self.left, f"left in {self.folder}"))
        parts = [f"{sum(whys.values())} {where} ({'; '.join(list(whys)[:3])})" for whys, where in found if whys]
        return f"spooled events were not taken: {', '.join(parts)}" if parts else ""
