"""The `beetle` command."""

from __future__ import annotations

import os
import sys

from beetle import __version__

GOING = 7
"""Exit code of services_unavailable, which `contracts/errors.py` knows; that is not loaded for this."""
STARTING = 50_000
"""Objects that a command makes before the first look for cyclic garbage, more than the start of a daemon has. At
CPython's 700, looking at what was just imported is an eighth of the time in which a command starts."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    _open_streams()
    if getattr(sys, "frozen", False) and not _tree_is_held():
        sys.stderr.write("beetle: services_unavailable: this beetle is being removed\nstart it again\n")
        return GOING
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["version"]):
        # Answered before anything is imported: installers and health checks ask this often, on slow devices.
        sys.stdout.write(f"beetle {__version__}\n")
        return 0
    if arguments[:2] == ["capture", "--hook"]:
        # A host waits for it at every turn.
        from beetle.hook import main as hook

        return hook(arguments[2:])
    from beetle.cli.app import run

    return run(arguments)


def _open_streams() -> None:
    """Give /dev/null to what was closed of the three streams: a socket or a store of that number would be written to
    by mistake, here or in a child."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken, and all below are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))  # noqa: SIM115


def _tree_is_held() -> bool:
    """Keep whoever cleans up from removing what this process runs from, until it ends."""
    from beetle.deploy.frozen import TreeBeingRemoved, hold_tree

    try:
        hold_tree(sys.executable)
    except TreeBeingRemoved:
        return False
    return True


if __name__ == "__main__":
    import gc

    # Nearly all that a start makes stays. A daemon looks for garbage as usual once it serves (beetle/garbage.py).
    gc.set_threshold(STARTING)
    sys.exit(main())
