"""platform capability-snapshot: what a profile allows, and whether that is what a file says."""

from __future__ import annotations

from argparse import Namespace

from beetle.contracts.errors import Conflict
from beetle.transports.cli.flags import read_text
from beetle.transports.cli.parser import typed_option

SHOWN_LINES = 40


class _Differs(Conflict):
    template = "the capability snapshot of {profile} is not what {file} says"
    hint_template = "if the change is meant: beetle platform capability-snapshot --profile {profile} > {file}"


def run_capability_snapshot(typed: Namespace) -> int:
    """Print the snapshot, or compare it with a file; the difference goes to stdout.

    Raises:
        InvalidRequest: no such profile, an unreadable file.
        Conflict: the file differs.
    """
    from pathlib import Path

    from beetle.runtime.profile import choose_profile, load_profile, read_machine
    from beetle.runtime.snapshot import snapshot_text

    name = typed_option(typed, "profile") or "auto"
    if name == "auto":
        name = choose_profile(read_machine(Path.cwd())).name
    profile = load_profile(name)
    text = snapshot_text(profile)
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

    from beetle.transports.cli.text import neutral

    lines = list(unified_diff(expected.splitlines(), text.splitlines(), file, "this build", lineterm="", n=1))
    for line in lines[:SHOWN_LINES]:
        print(neutral(line))
    if len(lines) > SHOWN_LINES:
        print(f"… and {len(lines) - SHOWN_LINES} lines more")
    if not lines:
        print("only line ends or the final newline differ")
