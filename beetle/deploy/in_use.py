"""The lock of a tree: every process that runs from it holds `in-use` shared, who removes it holds it alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from beetle.deploy.frozen import IN_USE
from beetle.deploy.manifest import NotAFile, open_regular


@contextlib.contextmanager
def alone(tree: Path, *, without_mine: bool = False) -> Iterator[bool]:
    """Hold a tree alone while the block runs; False when somebody runs from it.

    The kernel decides, so processes of other containers and users count too. Locks belong to open files, not to
    processes: this process's own shared ones, the launcher's inherited one among them, would stand in its way for ever.
    `without_mine` gives those up first, and takes them again afterwards. What another process shares with us by
    inheritance is not lost to it: each program of a tree opens and locks `in-use` itself when it starts.
    """
    mine = _mine(tree) if without_mine else []
    for descriptor in mine:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    try:
        with contextlib.ExitStack() as stack:
            yield _take(tree, stack)
    finally:
        for descriptor in mine:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _take(tree: Path, stack: contextlib.ExitStack) -> bool:
    try:
        stream = stack.enter_context(open_regular(tree / IN_USE))
    except (FileNotFoundError, NotAFile):
        # Nobody can hold what is no file. What runs all the same, another user's too, root can see.
        return not pids(tree)
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Also where the filesystem has no locks: what cannot be known to be free stays.
        return False
    return True


def _mine(tree: Path) -> list[int]:
    """This process's descriptors of the tree's `in-use`."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        wanted = os.stat(tree / IN_USE)
        for name in os.listdir("/proc/self/fd"):
            # The descriptor of that listing is gone by now.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(int(name)), wanted):
                    found.append(int(name))
    return found


def pids(tree: Path) -> list[int]:
    """Processes whose program is in the tree, as far as this user may see them; for a message, not for a decision."""
    inside = f"{os.path.realpath(tree)}/"
    others = (int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid())
    return sorted(each for each in others if program(each).startswith(inside))


def program(pid: int) -> str:
    """The file that a process runs, empty where this user may not see it."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""
