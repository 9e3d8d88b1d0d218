"""The `beetle` command."""

from __future__ import annotations

import sys

from beetle import __version__


def main(argv: list[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["version"]):
        # Answered before anything is imported: installers and health checks ask this often, on slow devices.
        sys.stdout.write(f"beetle {__version__}\n")
        return 0
    from beetle.transports.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
