"""`beetle bench`: measure this device, and compare two runs."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beetle.cli.calling_off import ended_by_signals
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.errors import InvalidRequest

if TYPE_CHECKING:
    from beetle.bench.daemon import Launch
    from beetle.bench.figures import Result

TURNS, CLIENTS = 2000, 8
MOST_TURNS, MOST_CLIENTS = 1_000_000, 32
DISK = "/var/tmp"
"""Where temporary files are on a disk: /tmp is in memory on many systems."""


def fill_bench(parser: Parser) -> None:
    """What `bench` takes."""
    parser.add_argument(
        "--turns", metavar="N", type=int, default=SUPPRESS, help=f"turns of each phase of writing (default {TURNS:,})"
    )
    parser.add_argument(
        "--clients", metavar="N", type=int, default=SUPPRESS, help=f"clients that write together (default {CLIENTS})"
    )
    parser.add_argument(
        "--replica", action="store_true", default=SUPPRESS, help="keep a replica in the same folder meanwhile"
    )
    parser.add_argument(
        "--folder", metavar="DIR", default=SUPPRESS, help=f"make the store in this folder (default {DISK}, or $TMPDIR)"
    )
    parser.add_argument("--out", metavar="FILE", default=SUPPRESS, help="also write the result to this file, as JSON")
    parser.add_argument(
        "--compare", metavar="FILE", nargs=2, default=SUPPRESS, help="measure nothing; show two results and their ratio"
    )


def run_bench(typed: Namespace) -> int:
    """Measure, or compare.

    Raises:
        InvalidRequest: a number, folder or file that is of no use.
        StorageFull: too little room on the disk.
        ServicesUnavailable: the daemon that was to be measured failed.
    """
    compared = typed_option(typed, "compare")
    if compared is not None:
        return _compare(*compared, json=bool(typed_option(typed, "json")))
    from beetle.bench.measure import Asked, measure
    from beetle.cli.render import as_json

    turns, clients = _number(typed, "turns", TURNS, MOST_TURNS), _number(typed, "clients", CLIENTS, MOST_CLIENTS)
    asked, folder, launch = Asked(turns, clients, bool(typed_option(typed, "replica"))), _folder(typed), _launch(typed)
    with ended_by_signals(), _out(typed) as write:
        result = measure(asked, folder, launch, _print_progress)
        write(as_json(result))
    print(as_json(result) if typed_option(typed, "json") else shown(result))
    return 0


def _number(typed: Namespace, name: str, usual: int, most: int) -> int:
    found = typed_option(typed, name)
    if found is None:
        return usual
    if not 1 <= found <= most:
        raise InvalidRequest(reason=f"--{name} must be from 1 to {most:,}")
    return found


def _folder(typed: Namespace) -> Path:
    found = typed_option(typed, "folder")
    if found is None:
        import tempfile

        usable = os.access(DISK, os.W_OK | os.X_OK) and not os.environ.get("TMPDIR")
        return Path(DISK if usable else tempfile.gettempdir())
    if not os.path.isdir(found):
        raise InvalidRequest(reason=f"--folder: {found} is no folder", hint="make it, or name another")
    return Path(found).resolve()


def _launch(typed: Namespace) -> Launch:
    """This program with the profile that was asked for, or with the one that fits this machine."""
    from beetle.bench.daemon import Launch
    from beetle.cli.control import environment, program
    from beetle.runtime.host.choosing import choose_profile, read_machine
    from beetle.runtime.host.profile import load_profile

    name = typed_option(typed, "profile") or "auto"
    profile = choose_profile(read_machine(Path.cwd())).name if name == "auto" else name
    load_profile(profile)
    # The daemon is started elsewhere.
    return Launch(program(), environment(), os.path.abspath(profile) if os.sep in profile else profile)


@contextmanager
def _out(typed: Namespace) -> Iterator[Callable[[str], None]]:
    """What writes the result; that the file can be made is known before anything is measured."""
    place = typed_option(typed, "out")
    if place is None:
        yield lambda _: None
        return
    from beetle.cli.new_file import new_file, write_all

    with new_file("--out", place) as descriptor:
        yield lambda text: write_all(descriptor, f"{text}\n".encode())


def _print_progress(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


def shown(result: Result) -> str:
    """The table of a run."""
    from beetle.cli.text import screen_width, table

    rows = [
        (each.title, _amount(each.value), each.unit, _amount(each.floor), _amount(each.ratio))
        for each in result.figures
    ]
    lines = [
        f"beetle {result.version}, {_pairs(result.device)}",
        _pairs(result.settings),
        "",
        table(rows, ("", "value", "unit", "plain SQLite", "ratio"), screen_width(), numbers=(1, 3, 4)),
    ]
    if not result.settings.get("bytes_counted"):
        lines += ["", "The system does not count what is written in this folder: give --folder on a disk."]
    return "\n".join(lines)


def _compare(first: str, second: str, *, json: bool) -> int:
    from beetle.bench.figures import alone, beside, differences, read_result
    from beetle.cli.render import as_json
    from beetle.cli.text import neutral, screen_width, table

    one, other = read_result(first), read_result(second)
    found, rest, differing = beside(one, other), alone(one, other), differences(one, other)
    if json:
        figures, unpaired = ([each.plain() for each in group] for group in (found, rest))
        print(as_json({"figures": figures, "alone": unpaired, "differences": differing}))
        return 0
    rows = [
        (each.figure.title, _amount(each.figure.value), _amount(each.other.value), each.figure.unit,
         _amount(each.change), _amount(each.figure.ratio), _amount(each.other.ratio), each.verdict)
        for each in found
    ]  # fmt: skip
    header = ("", "first", "second", "unit", "second ÷ first", "first ÷ SQLite", "second ÷ SQLite", "")
    print(table(rows, header, screen_width(), numbers=(1, 2, 4, 5, 6)))
    for each in rest:
        title = f"{each.figure.title} ({each.figure.unit}, {each.figure.better} is better)"
        print(neutral(f"Only in the {each.run}: {title}"))
    for each in differing:
        print(neutral(f"Not the same: {each}"))
    return 0


def _pairs(told: Mapping[str, Any]) -> str:
    from beetle.cli.text import neutral

    return neutral(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items()))


def _amount(value: float | None) -> str:
    """Three digits are what a run can tell; a dash where it tells nothing."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


OWN = {"bench": (fill_bench, run_bench)}
