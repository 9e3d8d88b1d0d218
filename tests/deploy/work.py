"""Runs install, roll_back or uninstall in a process of its own, which ends itself at a chosen step.

`python -m tests.deploy.work install|roll_back|uninstall ROOT TREE` reads numbers, one a line. For each it runs the
action in a child that kills itself (SIGKILL) before its n-th change to the filesystem, and answers how that ended:
`killed`, or its exit code when it made fewer. With no number at all it runs the action once and prints its steps.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from beetle.deploy.apply import install, roll_back
from beetle.deploy.remove import uninstall
from beetle.deploy.steps import StepResult
from tests.deploy.here import WANTED, layout_in

CHANGES = {
    "os.rename", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.link", "fcntl.flock", "os.truncate",
}  # fmt: skip


def act(action: str, root: str, tree: str, on_step: Callable[[StepResult], None]) -> None:
    layout = layout_in(Path(root))
    if action == "install":
        install(layout, Path(tree), WANTED, None, on_step)
    elif action == "roll_back":
        roll_back(layout, None, on_step)
    else:
        uninstall(layout, None, on_step)


def kill_before(number: int) -> None:
    """End this process at its n-th change: Python tells its audit hooks of each before it is made."""
    left = number

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGES or writes:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main() -> int:
    action, root, tree = sys.argv[1:]
    numbers = 0
    for line in sys.stdin:
        numbers += 1
        child = os.fork()
        if not child:
            kill_before(int(line))
            act(action, root, tree, lambda _: None)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print("killed" if code == -signal.SIGKILL else code, flush=True)
    if not numbers:
        act(action, root, tree, lambda step: print(step.step, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
