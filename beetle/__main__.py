"""The `beetle` command."""

from __future__ import annotations

import sys

from beetle import __version__

GOING = 7
"""Exit code of services_unavailable, which `contracts/errors.py` knows; that is not loaded for this."""
STARTING = 50_000
"""Objects that a command makes before the first look for cyclic garbage, more than the start of a daemon has. At
CPython's 700, looking at what was just imported is an eighth of the time in which a command starts."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the process's exit code."""
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
