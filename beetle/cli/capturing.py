"""`beetle capture`: turns of hosts, from JSON lines on stdin or from a host's own transcript file."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import Session, open_session
from beetle.contracts.control import BatchReport
from beetle.contracts.errors import STATUS, BeetleError, InvalidRequest
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.contracts.progress import OnProgress
    from beetle.importing.files import Opened
    from beetle.importing.hosts import Captured

SOME_FAILED = 1
BATCH_TURNS = 50
BATCH_BYTES = 128 * 1024
CHUNK = 1 << 16
LINE_BYTES = 16 << 20
GONE = frozenset(key for key, status in STATUS.items() if status.exit_code in (7, 8, 9)) - {"overloaded"}
"""Errors of the store or the daemon, which every further turn would meet."""


def fill(parser: Parser) -> None:
    """Where the turns come from."""
    from beetle.importing.items import HOSTS

    parser.add_argument("path", nargs="?", metavar="PATH", help="the host's transcript file, with --host")
    parser.add_argument(
        "--host", default=SUPPRESS, metavar="|".join(HOSTS), help="read PATH, a transcript file of this host"
    )
    parser.add_argument("--watch", action="store_true", default=SUPPRESS, help="follow PATH as the host adds to it")
    parser.add_argument(
        "--hook", action="store_true", default=SUPPRESS,
        help="first word: capture one hook's JSON from stdin; always answers at once, spools without a daemon",
    )  # fmt: skip


class Turn(NamedTuple):
    """A turn to be captured: how results name it, its request, or why there is none."""

    place: str
    request: Any = None
    problem: str | None = None


class Counts:
    """What became of the turns."""

    def __init__(self) -> None:
        self.captured = self.duplicates = self.mismatches = self.failed = 0

    def to_dict(self) -> dict[str, int]:
        return dict(vars(self))


class Capturing:
    """Sends turns, many at once, and tells of each; `said` gets every result."""

    def __init__(self, session: Session, said: Callable[[dict[str, Any]], None]) -> None:
        self.counts = Counts()
        self._session = session
        self._said = said

    def send(self, turns: list[Turn]) -> None:
        """Capture turns in their order.

        Raises:
            BeetleError: the store or the daemon cannot go on.
        """
        good = [each for each in turns if each.problem is None]
        reports = self._at_once(good) if len(good) > 1 else None
        done = iter(()) if reports is None else iter(reports)
        for each in turns:
            if each.problem is not None:
                self._failed(each, InvalidRequest(reason=each.problem))
            elif reports is None:
                self._one(each)
            else:
                self._captured(each, next(done))

    def _at_once(self, turns: list[Turn]) -> list[dict[str, Any]] | None:
        """The reports of a batch; None where one of its turns was refused, so that nothing was written."""
        requests = [{"op": "turn.capture", "args": each.request} for each in turns]
        try:
            report = cast(BatchReport, self._session.call("batch", {"requests": requests}))
        except BeetleError as error:
            if error.key in GONE:
                raise
            return None
        return list(report.reports or ())

    def _one(self, turn: Turn) -> None:
        try:
            report = self._session.call("turn.capture", turn.request).to_dict()
        except BeetleError as error:
            if error.key in GONE:
                raise
            self._failed(turn, error)
        else:
            self._captured(turn, report)

    def _captured(self, turn: Turn, report: dict[str, Any]) -> None:
        self.counts.captured += not report["dedup_hit"]
        self.counts.duplicates += report["dedup_hit"]
        self.counts.mismatches += report["content_mismatch"]
        self._said({"at": turn.place, "ok": True, "report": report})

    def _failed(self, turn: Turn, error: BeetleError) -> None:
        self.counts.failed += 1
        told = {name: getattr(error, name) for name in ("key", "message", "hint", "details")}
        self._said({"at": turn.place, "ok": False, "error": told})


def run(typed: Namespace) -> int:
    """Capture what comes; exit code 1 if some of it was not taken in."""
    host, path = typed_option(typed, "host"), typed_option(typed, "path")
    if typed_option(typed, "hook"):
        raise InvalidRequest(
            reason="--hook is the first word behind capture", hint="beetle capture --hook [--socket P]"
        )
    if (host is None) != (path is None) or (typed_option(typed, "watch") and host is None):
        hint = "beetle capture < turns.jsonl, or beetle capture --host claude-code PATH [--watch]"
        raise InvalidRequest(reason="PATH and --watch need --host, and --host needs PATH", hint=hint)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(typed, "turn.capture"))
        if host is None:
            capturing = Capturing(session, _print_result)
            for turns in batches(lines_of(sys.stdin.fileno())):
                capturing.send(turns)
            return SOME_FAILED if capturing.counts.failed else 0
        return _run_host(typed, session, host, str(path), stack)


def _run_host(typed: Namespace, session: Session, host: str, path: str, stack: ExitStack) -> int:
    from beetle.importing.files import SourceFile, opened
    from beetle.importing.hosts import followed, read_host
    from beetle.importing.items import HOSTS

    if host not in HOSTS:
        raise InvalidRequest(reason=f"no host is called {host!r}", hint=f"known are: {', '.join(HOSTS)}")
    as_json = bool(typed_option(typed, "json"))
    capturing = Capturing(session, _print_result if as_json else _print_failed)
    try:
        if typed_option(typed, "watch"):
            for item in followed(path, host):
                capturing.send(list(_as_turns([item])))
                _print_progress(capturing.counts)
        else:
            stem = os.path.splitext(os.path.basename(os.path.abspath(path)))[0]
            with opened(SourceFile(path, stem, True), HOSTS[host]) as file:
                reading = read_host(file, host)
                progress = _progress(stack)
                for turns in batches(_as_turns(reading.turns)):
                    capturing.send(turns)
                    _show(progress, reading.done(), reading.size)
                if not any(capturing.counts.to_dict().values()):
                    _check_host(file, path, host)
    finally:
        _print_counts(capturing.counts, as_json)
    return SOME_FAILED if capturing.counts.failed else 0


def _check_host(file: Opened, path: str, host: str) -> None:
    """Raises InvalidRequest for a file without a turn whose content is not the host's."""
    from beetle.importing.formats import HEAD_BYTES, UnknownFormat, head_of
    from beetle.importing.items import HOSTS

    stream = file.source.stream
    stream.seek(0)
    if not stream.read(HEAD_BYTES).strip():
        return
    stream.seek(0)
    try:
        found = head_of(stream, path).format
    except UnknownFormat:
        reason, how = "its format is not known", f"hosts are: {', '.join(HOSTS)}"
    else:
        if found == HOSTS[host]:
            return
        other = next((each for each, format in HOSTS.items() if format == found), None)
        reason = f"its format is {found}"
        how = f"beetle import {path}" if other is None else f"beetle capture --host {other} {path}"
    raise InvalidRequest(reason=f"{path} has no turn of {host}: {reason}", hint=how)


def _as_turns(items: Iterable[Captured]) -> Iterator[Turn]:
    from beetle.importing.hosts import HostTurn
    from beetle.importing.items import Problem

    for item in items:
        if isinstance(item, HostTurn):
            yield Turn(str(item.place), item.request)
        elif isinstance(item, Problem):
            yield Turn(str(item.place or "file"), None, item.reason)


def lines_of(descriptor: int) -> Iterator[Turn | None]:
    """The turns of JSON lines as they come; None where nothing more is there yet."""
    number, rest, skipping = 0, b"", False
    while True:
        chunk = os.read(descriptor, CHUNK)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole if chunk else (rest,):
            number += 1
            if skipping:
                skipping = False
            elif line.strip():
                yield _line(number, line)
        if not chunk:
            return
        if len(rest) > LINE_BYTES or (skipping and rest):
            if not skipping:
                yield Turn(f"line {number + 1}", None, f"the line is longer than {LINE_BYTES:,} bytes")
            skipping, rest = True, b""
        yield None


def _line(number: int, line: bytes) -> Turn:
    from beetle.contracts.codec import unpack_json
    from beetle.importing.lines import UNREADABLE, why

    try:
        request = unpack_json(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
    except UNREADABLE as error:
        return Turn(f"line {number}", None, f"no JSON: {why(error)}")
    if not isinstance(request, dict):
        return Turn(f"line {number}", None, "no JSON object")
    return Turn(f"line {number}", request)


def batches(turns: Iterable[Turn | None]) -> Iterator[list[Turn]]:
    """Turns that are there, so many at once; None among them ends a batch."""
    waiting: list[Turn] = []
    size = 0
    for each in turns:
        if each is not None:
            waiting.append(each)
            size += len(str(each.request))
        if waiting and (each is None or len(waiting) == BATCH_TURNS or size > BATCH_BYTES):
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _print_result(result: dict[str, Any]) -> None:
    from beetle.contracts.codec import pack_json

    sys.stdout.write(pack_json(result).decode() + "\n")
    sys.stdout.flush()


def _print_failed(result: dict[str, Any]) -> None:
    from beetle.cli.text import neutral

    if not result["ok"]:
        print(f"beetle: {result['at']}: {neutral(result['error']['message'])}", file=sys.stderr)


def _progress(stack: ExitStack) -> OnProgress | None:
    if not sys.stderr.isatty():
        return None
    from beetle.cli.progress import progress_line

    return stack.enter_context(progress_line("capture"))


def _show(progress: OnProgress | None, done: int, size: int) -> None:
    from beetle.contracts.progress import ProgressStep

    if progress is not None:
        progress(ProgressStep("reading", 1, 1, min(done, size), size))


def _print_progress(counts: Counts) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{_summary(counts)} ")
        sys.stderr.flush()


def _summary(counts: Counts) -> str:
    parts = [f"{counts.captured:,} captured", f"{counts.duplicates:,} already there"]
    if counts.mismatches:
        parts.append(f"{counts.mismatches:,} of them with other content")
    if counts.failed:
        parts.append(f"{counts.failed:,} not taken in")
    return ", ".join(parts)


def _print_counts(counts: Counts, as_json: bool) -> None:
    if as_json:
        _print_result({"counts": counts.to_dict()})
    else:
        print(_summary(counts))


OWN: Mapping[str, Any] = {"capture": (fill, run)}
