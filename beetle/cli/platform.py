"""platform: the capabilities of a profile, the schema of the protocol; version."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace

from beetle import __version__
from beetle.cli.flags import read_text
from beetle.cli.parser import Parser, fill_nothing, typed_option
from beetle.contracts.errors import Conflict, UnknownOperation, nearest

SHOWN_LINES = 40


class _Differs(Conflict):
    template = "the capability snapshot of {profile} is not what {file} says"
    hint_template = "if the change is meant: beetle platform capability-snapshot --profile {profile} > {file}"


def fill_capability_snapshot(parser: Parser) -> None:
    """What `platform capability-snapshot` takes."""
    parser.add_argument(
        "--check", metavar="FILE", default=SUPPRESS, help="compare with this file; exit code 4 when they differ"
    )


def run_capability_snapshot(typed: Namespace) -> int:
    """Print the snapshot, or compare it with a file; the difference goes to stdout.

    Raises:
        InvalidRequest: no such profile, an unreadable file.
        Conflict: the file differs.
    """
    from pathlib import Path

    from beetle.runtime.host.capability_snapshot import capability_snapshot_text
    from beetle.runtime.host.profile import load_profile

    name = typed_option(typed, "profile") or "auto"
    if name == "auto":
        from beetle.runtime.host.choosing import choose_profile, read_machine

        name = choose_profile(read_machine(Path.cwd())).name
    profile = load_profile(name)
    text = capability_snapshot_text(profile)
    file = typed_option(typed, "check")
    if file is None:
        print(text, end="")
        return 0
    expected = read_text(file, "--check")
    if expected == text:
        print(f"{file} is the capability snapshot of {profile.name}")
        return 0
    _print_difference(expected, text, file)
    raise _Differs(profile=profile.name, file=file)


def _print_difference(expected: str, text: str, file: str) -> None:
    from difflib import unified_diff

    from beetle.cli.text import neutral

    lines = list(unified_diff(expected.splitlines(), text.splitlines(), file, "this build", lineterm="", n=1))
    for line in lines[:SHOWN_LINES]:
        print(neutral(line))
    if len(lines) > SHOWN_LINES:
        print(f"… and {len(lines) - SHOWN_LINES} lines more")
    if not lines:
        print("only line ends or the final newline differ")


def fill_schema(parser: Parser) -> None:
    """What `platform schema` takes."""
    parser.add_argument("operations", nargs="*", metavar="OP", help="only these operations; default: all")


def run_schema(typed: Namespace) -> int:
    """Print the JSON Schema of the protocol.

    Raises:
        UnknownOperation: it is asked for an operation that does not exist.
    """
    import json

    from beetle.contracts.operations import BY_NAME
    from beetle.contracts.schema import protocol_schema

    asked: list[str] = typed.operations or list(BY_NAME)
    for name in asked:
        if name not in BY_NAME:
            raise UnknownOperation(operation=name, nearest=nearest(name, BY_NAME))
    rows = [row for name, row in BY_NAME.items() if name in asked]
    print(json.dumps(protocol_schema(rows), indent=2, ensure_ascii=False))
    return 0


def run_version(typed: Namespace) -> int:
    """Print the version."""
    print(f'{{"version":"{__version__}"}}' if typed_option(typed, "json") else f"beetle {__version__}")
    return 0


OWN = {
    "platform capability-snapshot": (fill_capability_snapshot, run_capability_snapshot),
    "platform schema": (fill_schema, run_schema),
    "version": (fill_nothing, run_version),
}
