"""Runs one long task in a child of its own and kills it before its n-th change to a file's name or its syncing.

Read from stdin: a number a line. Answered: `killed`, or `0` when the task came to its end before.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

CHANGES = ("rename", "link", "unlink", "fsync", "mkdir")


def die_at(number: int) -> None:
    """Let the n-th call of any of these not happen."""
    left = number

    def before(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **more)

        return changed

    for name in CHANGES:
        setattr(os, name, before(getattr(os, name)))


def no_links() -> None:
    """As on a filesystem without hard links."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    os.link = refuse  # type: ignore[assignment]


def act(action: str, store: str, backend: str, snapshot_id: str, number: int) -> None:
    from beetle import MemoryRuntime

    memory = MemoryRuntime.open(store, profile="dev-full", backend=backend)
    memory.inspect()
    if action.endswith("without links"):
        no_links()
    die_at(number)
    if action.startswith("restore"):
        memory.restore_snapshot(snapshot_id=snapshot_id)
    elif action == "create":
        memory.create_snapshot()
    else:
        assert [each.outcome for each in memory.recover().steps if each.step == "vacuum"] == ["done"]


def main() -> None:
    import beetle.contracts.methods
    import beetle.open  # noqa: F401 - loaded once, for every child

    action, store, backend, snapshot_id = sys.argv[1:]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            act(action, store, backend, snapshot_id, int(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
