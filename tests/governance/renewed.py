"""Renews the identity of copies of a store in processes that kill themselves; `python -m` with a folder and the points.

Loads the product once, and forks for each point before anything is opened.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from beetle.runtime.areas import renewing
from beetle.runtime.host.identity import Identity, KeyFile, State
from beetle.store import private, reseal
from tests.store.conftest import open_runtime

POINTS: dict[str, tuple[Any, str, bool, State]] = {
    "nothing is done yet": (Identity, "successor", False, "missing"),
    "before the file": (KeyFile, "write", False, "missing"),
    "behind the file": (KeyFile, "write", True, "wrong"),
    "rows are sealed anew": (reseal, "seal_anew", True, "wrong"),
    "the identity is replaced": (private, "succeed", True, "wrong"),
    "the head is signed": (renewing, "record_signed_head", True, "wrong"),
    "behind the commit": (Identity, "recheck", False, "usable"),
}
"""What dies, whether it does before its work or behind it, and the state of the identity that is found then."""


def _dies(at: Any, name: str, behind: bool) -> None:
    whole = getattr(at, name)

    def dying(*given: Any, **named: Any) -> None:
        if behind:
            whole(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(at, name, dying)


def _renew(path: Path, point: str) -> None:
    _dies(*POINTS[point][:3])
    with open_runtime(path) as memory:
        memory.renew_identity(token=memory.renew_identity(dry_run=True).token)


def main(folder: Path, *points: str) -> None:
    for number, point in enumerate(points):
        pid = os.fork()
        if pid == 0:
            try:
                _renew(folder / str(number) / "store.db", point)
            finally:
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(point, "killed" if status == -signal.SIGKILL else status, sep=": ", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
