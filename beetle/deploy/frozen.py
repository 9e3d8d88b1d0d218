"""The tree that a frozen program runs from, held for as long as it runs.

Whoever wants to remove a tree first takes the exclusive lock on its file `in-use`. Every start imports this module, so
it imports next to nothing.
"""

from __future__ import annotations

import fcntl
import os

IN_USE = "in-use"
HOLD_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe of that name must not keep a program from starting; a link is nothing that who removes the tree would lock."""


class TreeBeingRemoved(Exception):
    """Somebody is removing the tree at this moment."""


def tree_of(program: str) -> str:
    """The folder of the tree that a program belongs to, whatever links led to it."""
    return os.path.dirname(os.path.realpath(program))


def hold_tree(program: str) -> int | None:
    """Take the shared lock on the program's tree.

    Returns:
        The descriptor, which nobody may close; None where there is nothing to hold: no built tree, or a filesystem
        without locks.

    Raises:
        TreeBeingRemoved: the lock is held by who removes the tree, or was until just now.
    """
    try:
        descriptor = os.open(os.path.join(tree_of(program), IN_USE), HOLD_FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TreeBeingRemoved(program) from None
    except OSError:
        os.close(descriptor)
        return None
    if not os.fstat(descriptor).st_nlink:
        # It was removed between the two calls.
        os.close(descriptor)
        raise TreeBeingRemoved(program)
    return descriptor
