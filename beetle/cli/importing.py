"""`beetle import` and `beetle export`: files of other programs, and files for them."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, get_args

from beetle.cli.flags import conversation
from beetle.cli.new_file import new_file, write_all
from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import open_session
from beetle.contracts.codec import convert_request
from beetle.contracts.common import Conversation
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.governance import Authority

if TYPE_CHECKING:
    from beetle.importing.items import Format
    from beetle.importing.prepare import Options
    from beetle.importing.report import Failed, FileReport, ImportReport

SOME_FAILED = 1
"""Exit code when all but some lines or items were taken in."""
WRITE_BYTES = 64 * 1024


def fill_import(parser: Parser) -> None:
    """The files, and what they do not say."""
    from beetle.importing.items import FORMATS, VISIBLE, Role

    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or a folder of them")
    parser.add_argument(
        "--format", default=SUPPRESS, metavar="FORMAT", choices=FORMATS,
        help=f"{', '.join(FORMATS)}; detected from the content when left out",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", default=SUPPRESS, help="only show what would be taken in")
    group = parser.add_argument_group("what a file does not say")
    group.add_argument(
        "--conversation", default=SUPPRESS, metavar="[CHANNEL/]ID", help="take in everything as this conversation"
    )
    group.add_argument(
        "--speaker", action="append", default=SUPPRESS, metavar="[ROLE=]NAME",
        help=f"who speaks in messages without a name; ROLE: {', '.join(get_args(Role))} (user; may be repeated)",
    )  # fmt: skip
    group.add_argument("--time", default=SUPPRESS, metavar="TIME", help="when it was; default: the file's last change")
    group.add_argument(
        "--authority", default=SUPPRESS, metavar="|".join(get_args(Authority)), choices=get_args(Authority),
        help="authority of the facts of another memory (default host)",
    )  # fmt: skip
    group.add_argument(
        "--visibility", default=SUPPRESS, metavar="|".join(VISIBLE), choices=VISIBLE,
        help="of messages and facts (default shared)",
    )  # fmt: skip


def run_import(typed: Namespace) -> int:
    """Take in the files; what is not taken in is told on stderr, and by the exit code."""
    from beetle.importing.running import Watch, import_files

    forced: Format | None = typed_option(typed, "format")
    options = _options(typed)
    as_json = bool(typed_option(typed, "json"))
    with ExitStack() as stack:
        session = (
            None if typed_option(typed, "dry_run") else stack.enter_context(open_session(typed, "transcript.commit"))
        )
        on_progress = None
        if sys.stderr.isatty():
            from beetle.cli.progress import progress_line

            on_progress = stack.enter_context(progress_line("import"))
        watch = Watch(None if as_json else _print_failed, on_progress)
        try:
            report = import_files(None if session is None else session.call, typed.files, forced, options, watch)
        except KeyboardInterrupt:
            if session is None:
                raise
            raise KeyboardInterrupt("what was taken in stays: run it again for the rest") from None
    from beetle.cli import render

    print(render.as_json(report.to_dict()) if as_json else "\n".join(_lines(report)))
    return SOME_FAILED if report.failed else 0


def _options(typed: Namespace) -> Options:
    from beetle.importing.prepare import Options

    given: dict[str, Any] = {
        name: value for name in ("channel", "time", "authority", "visibility")
        if (value := typed_option(typed, name)) is not None
    }  # fmt: skip
    if (where := typed_option(typed, "conversation")) is not None:
        given["conversation"] = _conversation(typed, where)
    speakers = dict(_speaker(str(each)) for each in typed_option(typed, "speaker") or ())
    return convert_request({**given, "speakers": speakers}, Options, "$")


def _speaker(text: str) -> tuple[str, str]:
    from beetle.importing.items import Role

    role, equals, name = text.partition("=")
    if not equals:
        role, name = "user", text
    # A mistake here would stand in evidence, which nothing changes.
    if role not in get_args(Role):
        raise InvalidRequest(
            reason=f"--speaker: {role[:40]!r} is no role", hint=f"one of {', '.join(get_args(Role))}, as in user=Rita"
        )
    if not name.strip():
        raise InvalidRequest(reason="--speaker: the name is empty", hint="give it behind the role, as in user=Rita")
    return role, name


def _conversation(typed: Namespace, text: str) -> Conversation:
    named = conversation(text)
    if (channel := typed_option(typed, "channel")) is not None:
        named.setdefault("channel_id", channel)
    return convert_request(named, Conversation, "--conversation")


def _print_failed(failed: Failed) -> None:
    from beetle.cli.text import neutral

    where = f"{failed.path}: {failed.place}" if failed.place else failed.path
    print(f"beetle: {neutral(where)}: {neutral(failed.reason)}", file=sys.stderr)


def _lines(report: ImportReport) -> Iterable[str]:
    from beetle.cli.text import clip, count, screen_width

    width = screen_width()
    for each in report.files:
        if each.path:
            yield from (clip(line, width) for line in _file_lines(each, report.dry_run))
    if len(report.files) > 1:
        names = ("turns", "thoughts", "agents", "skill_versions", "facts", "failed")
        always = ("turns", "facts", "failed")
        counts = {name: report.total(name) for name in names}
        total = ", ".join(
            f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number or name in always
        )
        yield f"{count(len(report.files), 'file')}: {total}"
    if report.dry_run:
        yield "Nothing was changed: this was a dry run."


def _file_lines(each: FileReport, dry_run: bool) -> Iterable[str]:
    from beetle.cli.text import count, neutral, size

    yield f"{neutral(each.path)}: {each.format or 'unknown'}, {size(each.bytes)}"
    became = "" if dry_run else f": {each.committed:,} new, {each.unchanged:,} already stored"
    read = ((each.thoughts, "thought"), (each.agents, "agent"), (each.skill_versions, "version of a skill"))
    shown = [(number, word) for number, word in read if number]
    for number, word in shown or ((each.turns, "turn"),):
        plural = "versions of skills" if word.startswith("version") else None
        yield f"  {count(number, word, plural)}{became}"
    if each.partial:
        yield f"  {each.partial:,} of them exported in part, and not compared with what is stored"
    if each.facts:
        became = (
            "" if dry_run else f": {each.accepted:,} accepted, {each.waiting:,} waiting, {each.rejected:,} rejected"
        )
        yield f"  {count(each.facts, 'fact')}{became}{_counts(each.reasons)}"
        if each.waiting:
            yield "    waiting facts are not current: see `beetle governance list`"
    if each.failed:
        yield f"  {each.failed:,} not taken in, listed on stderr"
    if each.left_out:
        yield f"  left out{_counts(each.left_out)}"
    for what, source in each.derived.items():
        yield f"  {what} where the file has none: {neutral(source)}"
    if each.chains:
        yield f"  in the chain{'s' if len(each.chains) > 1 else ''} {', '.join(map(neutral, each.chains[:3]))}"
    if each.conversations:
        more = ", …" if each.more_conversations or len(each.conversations) > 3 else ""
        yield f"  in {', '.join(neutral(name) for name in each.conversations[:3])}{more}"


def _counts(counts: Mapping[str, int]) -> str:
    from beetle.cli.text import neutral

    shown = ", ".join(f"{number:,} {neutral(what).replace('_', ' ')}" for what, number in sorted(counts.items()))
    return f" ({shown})" if shown else ""


def fill_export(parser: Parser) -> None:
    """What to write, and where."""
    from beetle.importing.items import EXPORT_FORMATS

    parser.add_argument(
        "--format", default=SUPPRESS, metavar="|".join(EXPORT_FORMATS), choices=EXPORT_FORMATS,
        help="jsonl, which `beetle import` takes in again, or markdown, for people (default jsonl)",
    )  # fmt: skip
    parser.add_argument(
        "--conversation", action="append", default=SUPPRESS, metavar="[CHANNEL/]ID",
        help="this conversation; all when left out (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--include-private", action="store_true", default=SUPPRESS,
        help="include private material; needs the view raw_owner and the capability private.read",
    )  # fmt: skip
    parser.add_argument("--out", metavar="FILE", default=SUPPRESS, help="a new file for it; default: stdout")


def run_export(typed: Namespace) -> int:
    """Write conversations as they are read, a page at a time."""
    from beetle.importing.exporting import exported, exporting
    from beetle.importing.items import ExportFormat

    form: ExportFormat = typed_option(typed, "format") or "jsonl"
    named: Sequence[str] = typed_option(typed, "conversation") or ()
    wanted = [_conversation(typed, each) for each in named]
    place = typed_option(typed, "out")
    if typed_option(typed, "json") and form != "jsonl":
        raise InvalidRequest(reason="--json and --format markdown exclude each other", hint="leave one of them out")
    with open_session(typed, "transcript.export") as session:
        lines = exported(exporting(wanted, form, bool(typed_option(typed, "include_private"))), session.call)
        if place is None:
            for line in lines:
                sys.stdout.write(line)
            return 0
        with new_file("--out", place) as descriptor:
            _write(descriptor, lines)
    return 0


def _write(descriptor: int, lines: Iterable[str]) -> None:
    buffer = bytearray()
    for line in lines:
        buffer += line.encode()
        if len(buffer) >= WRITE_BYTES:
            write_all(descriptor, bytes(buffer))
            buffer.clear()
    write_all(descriptor, bytes(buffer))


OWN: Mapping[str, Any] = {"import": (fill_import, run_import), "export": (fill_export, run_export)}
