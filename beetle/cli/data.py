"""Commands of the table of operations: their flags, the short forms that people type, and how they run."""

from __future__ import annotations

import os
import stat
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from beetle.cli.flags import Flag, add_flag, collect, flags_of, read_json, read_text, refuse_missing
from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import Session, open_session
from beetle.contracts.common import Report
from beetle.contracts.control import StoreVerifyReport
from beetle.contracts.errors import STATUS, InvalidRequest
from beetle.contracts.fields import Request
from beetle.contracts.harness import HarnessRunReport
from beetle.contracts.lifecycle import MemoryRecoverReport
from beetle.contracts.operations import BY_NAME, Operation
from beetle.contracts.skills import RuntimeSkillWrite
from beetle.contracts.snapshots import SnapshotVerifyReport
from beetle.contracts.transcript_repair import MemoryTranscriptRepairReport, MemoryTranscriptRepairSafeReport
from beetle.contracts.turns import ActorAttribution, MessageDelta

DEFAULT_VIEW = "host_ui"
"""What a person at a terminal is: the wire has no default, so the choice is this transport's."""

SHORT_FORMS = ("transcript.commit", "memory.write")
"""Operations whose list of one may be given as flags."""


@cache
def turn_flags() -> tuple[Flag, ...]:
    """The flags of one new turn with one message."""
    fields = (*flags_of(MessageDelta), *flags_of(ActorAttribution))
    message = {each.field: each._replace(required=False) for each in fields}
    return (
        Flag("text", "--text", "text", "commit one new turn with this message", False, long_text=True),
        message["role"]._replace(help="role of the speaker", default="user"),
        message["speaker"]._replace(help="display name of the speaker"),
        message["at"]._replace(help="time of the message; default: now"),
        message["visibility"]._replace(help="visibility of the message"),
        Flag("turn_id", "--turn-id", "text", "id of the turn; default: generated", False),
        message["message_id"]._replace(help="id of the message; default: generated"),
    )


@cache
def skill_flags() -> tuple[Flag, ...]:
    """The flags of one skill."""
    words = {
        "citations": "a ref or any text that the skill rests on",
        "observed_at": "when it was learned, in epoch seconds",
        "source_chat_id": "chat that it comes from; the scope's when left out",
    }
    fields = flags_of(RuntimeSkillWrite)
    return tuple(each._replace(required=False, help=words.get(each.field, each.help)) for each in fields)


def typed_request(row: Operation) -> type[Request]:
    """The request that an operation's command takes: of several kinds the first, the others go through `call`."""
    return row.kinds[0]


def request_flags(row: Operation) -> tuple[Flag, ...]:
    """The flags of an operation's request, with this transport's defaults."""
    flags: list[Flag] = []
    for flag in flags_of(typed_request(row)):
        if flag.field == "view" and flag.required:
            flag = flag._replace(required=False, default=DEFAULT_VIEW)
        elif flag.field == "source" and row.name == "memory.write":
            flag = flag._replace(required=False, default="manual")
        elif flag.field == "receipt":
            flag = flag._replace(help=f"{flag.help}: its text, @FILE, or - for stdin")
        elif flag.kind == "conversation":
            flag = flag._replace(help="its id, or channel and id; percent-encoded")
        flags.append(flag)
    return tuple(flags)


def fill_operation(row: Operation, parser: Parser) -> None:
    """The flags of an operation's request, and what every call may carry."""
    flags = request_flags(row)
    if row.word:
        option = next(each.option for each in flags if each.field == row.word)
        parser.add_argument("word", nargs="?", default=SUPPRESS, metavar=row.word.upper(), help=f"the same as {option}")
    group = parser.add_argument_group("request")
    for flag in flags:
        # Of a list there are shorter forms below.
        shorter = row.name in SHORT_FORMS and flag.many
        add_flag(group, flag._replace(required=False, help=f"{flag.help}, as JSON") if shorter else flag)
    if row.name == "transcript.commit":
        _fill_from(parser, "one new turn", turn_flags())
    elif row.name == "memory.write":
        _fill_from(parser, "one skill", skill_flags())
    add_call_options(parser)


def _fill_from(parser: Parser, title: str, flags: tuple[Flag, ...]) -> None:
    group = parser.add_argument_group(title)
    for flag in flags:
        add_flag(group, flag)
    parser.add_argument(
        "--file", metavar="FILE", default=SUPPRESS,
        help="read the request, or only its list, as JSON from a file, or - for stdin; a pipe is read by itself",
    )  # fmt: skip


def add_call_options(parser: Parser) -> None:
    """What every call may carry besides its arguments."""
    group = parser.add_argument_group("call")
    group.add_argument(
        "--idempotency-key", metavar="KEY", default=SUPPRESS, help="the same key and request again changes nothing"
    )
    group.add_argument(
        "--deadline-ms", metavar="N", type=int, default=SUPPRESS, help="give up unless the work has begun by then"
    )


def run_operation(row: Operation, typed: Namespace) -> int:
    """Run it and show its report; a check that finds something wrong is an error."""
    report = ask(typed, row, gather(row, typed))
    show(report, typed)
    return 0 if _holds(report) else STATUS["integrity_violation"].exit_code


def _holds(report: Report) -> bool:
    """Whether a check found nothing, or a repair left nothing."""
    if isinstance(report, StoreVerifyReport):
        return report.clean and (report.receipt is None or report.receipt.valid)
    if isinstance(report, SnapshotVerifyReport):
        return report.valid
    if isinstance(report, HarnessRunReport):
        return report.passed
    if isinstance(report, MemoryTranscriptRepairReport):
        return report.clean
    if isinstance(report, MemoryTranscriptRepairSafeReport):
        return not (report.has_more or any(report.left.values()) or (report.dry_run and report.mended))
    return report.recovered if isinstance(report, MemoryRecoverReport) else True


def gather(row: Operation, typed: Namespace) -> dict[str, Any]:
    """The request that was typed.

    Raises:
        InvalidRequest: a value that cannot be read, a flag that is missing.
    """
    flags = request_flags(row)
    _place_word(row, typed, flags)
    found = collect(flags, typed)
    if str(found.get("receipt", "")).startswith(("-", "@")):
        found["receipt"] = read_text(found["receipt"].removeprefix("@"), "--receipt").strip()
    if row.name == "harness.run" and "folder" in found:
        # Whoever runs it may stand in another folder.
        found["folder"] = os.path.abspath(found["folder"])
    if row.name == "transcript.commit":
        found = _read_from(typed, "turns", "turn_id", found, _new_turn(typed))
    elif row.name == "memory.write":
        found = _read_from(typed, "writes", "name", found, _new_skill(typed))
        found.setdefault("source", "manual")
        found.setdefault("kind", "procedural")
    for flag in flags:
        if flag.field == "view" and flag.default == DEFAULT_VIEW:
            found.setdefault("view", DEFAULT_VIEW)
    if row.name in SHORT_FORMS:
        _refuse_nothing(row, found)
    refuse_missing(flags, found, " ".join(row.cli), row.word or "")
    return found


def _refuse_nothing(row: Operation, found: Mapping[str, Any]) -> None:
    ways = {"turns": "--text TEXT", "writes": "--name NAME … --content TEXT"}
    for field, flags in ways.items():
        if field in typed_request(row).__struct_fields__ and field not in found:
            reason = f"{' '.join(row.cli)}: nothing to write; give {flags}, --file FILE or --{field} JSON"
            raise InvalidRequest(reason=reason, hint=f"see `beetle {' '.join(row.cli)} --help`")


def _place_word(row: Operation, typed: Namespace, flags: tuple[Flag, ...]) -> None:
    if not hasattr(typed, "word"):
        return
    flag = next(each for each in flags if each.field == row.word)
    if hasattr(typed, flag.dest):
        reason = f"{' '.join(row.cli)}: {flag.option} and the word {typed.word!r} are both given"
        raise InvalidRequest(reason=reason, hint=f"give the word once, with or without {flag.option}")
    setattr(typed, flag.dest, typed.word)


def _read_from(
    typed: Namespace, field: str, mark: str, found: dict[str, Any], made: dict[str, Any] | None
) -> dict[str, Any]:
    """The request from flags, a file or a pipe: a whole request, its list alone, or one item of the list."""
    place = typed_option(typed, "file")
    if made is not None:
        if place is not None or field in found:
            both = "--file" if place is not None else f"--{field}"
            raise InvalidRequest(reason=f"{both} excludes the flags of a single one", hint="use one way")
        return {**found, field: [made]}
    if place is None and field not in found and _stdin_has_data():
        place = "-"
    if place is None:
        return found
    read = read_json(place, "--file")
    if isinstance(read, list):
        read = {field: read}
    elif isinstance(read, dict) and field not in read and mark in read:
        read = {field: [read]}
    elif not isinstance(read, dict):
        raise InvalidRequest(reason=f"--file: a request or a list of {field} is expected", hint="give a JSON object")
    return {**read, **found}


def _stdin_has_data() -> bool:
    """Whether stdin is a file or a pipe; a terminal, /dev/null and a closed stdin are none."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _new_turn(typed: Namespace) -> dict[str, Any] | None:
    found = collect(turn_flags(), typed)
    if not found:
        return None
    if "text" not in found:
        raise InvalidRequest(
            reason="transcript commit: --text is missing", hint="see `beetle transcript commit --help`"
        )
    from beetle.contracts.noting import new_turn

    return new_turn(found["text"], found)


def _new_skill(typed: Namespace) -> dict[str, Any] | None:
    found = collect(skill_flags(), typed)
    if found:
        required = tuple(each for each in flags_of(RuntimeSkillWrite) if each.required)
        refuse_missing(required, found, "memory write-procedural")
    return found or None


def ask(typed: Namespace, row: Operation, arguments: Any) -> Report:
    """Run one operation wherever this command line reaches."""
    with open_session(typed, row.name) as session:
        return ask_in(session, typed, row, arguments)


def ask_in(session: Session, typed: Namespace, row: Operation, arguments: Any) -> Report:
    """Run one operation in a session."""
    try:
        return session.call(
            row.name, arguments, typed_option(typed, "idempotency_key"), typed_option(typed, "deadline_ms")
        )
    except InvalidRequest as error:
        _point_at_flag(error, row)
        raise


def _point_at_flag(error: InvalidRequest, row: Operation) -> None:
    """A hint that names the flag, in place of the general one."""
    path = str(error.details.get("path", ""))
    if not row.cli or error.hint != InvalidRequest.hint_template:
        return
    field = path.removeprefix("$.args.").partition(".")[0].partition("[")[0]
    inner = path.rpartition(".")[2]
    short = (*turn_flags(), *skill_flags()) if row.name in SHORT_FORMS and "[" in path else ()
    option = next((each.option for each in short if each.field == inner), None)
    option = option or next((each.option for each in flags_of(typed_request(row)) if each.field == field), None)
    flag = f"{option}: " if option else ""
    error.hint = f"{flag}see `beetle {' '.join(row.cli)} --help`"


def show(report: Report, typed: Namespace) -> None:
    """Print a report: JSON on one line, or text."""
    from beetle.cli.render import as_json, as_text
    from beetle.cli.text import screen_width

    print(as_json(report) if typed_option(typed, "json") else as_text(report, screen_width()))


def show_as(report: Report, change: Callable[[str], str]) -> None:
    """Print a report as text that is changed first."""
    from beetle.cli.render import as_text
    from beetle.cli.text import neutral_lines, screen_width

    print("\n".join(neutral_lines(change(as_text(report, screen_width())))))


def fill_skill_name(parser: Parser) -> None:
    """The name that `skill enable` and `skill disable` take."""
    parser.add_argument("word", nargs="?", default=SUPPRESS, metavar="NAME", help="the same as --name")
    for flag in flags_of(typed_request(BY_NAME["skill.set_enabled"])):
        if flag.field == "name":
            add_flag(parser, flag)
    add_call_options(parser)


def run_set_enabled(enabled: bool, typed: Namespace) -> int:
    """`skill enable` and `skill disable`."""
    row = BY_NAME["skill.set_enabled"]
    typed.field_enabled = enabled
    show(ask(typed, row, gather(row, typed)), typed)
    return 0


def fill_call(parser: Parser) -> None:
    """What `call` takes."""
    parser.add_argument("operation", metavar="OP", help="its name, such as memory.recall; `beetle hello` lists them")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="its arguments as JSON, @FILE, or - for stdin"
    )
    add_call_options(parser)


def run_call(typed: Namespace) -> int:
    """Any operation with JSON arguments; the report is JSON."""
    from beetle.cli.flags import open_bytes, parse_json
    from beetle.cli.render import as_indented_json, as_json

    text = typed.arguments
    if text == "-" or text.startswith("@"):
        text = read_text(text.removeprefix("@"), "call")
    arguments = parse_json(text, "call")
    row = BY_NAME.get(typed.operation)
    if row is not None:
        arguments = open_bytes(typed_request(row), arguments)
    if row is not None and row.effect == "stream":
        reason = f"{row.name} streams until it is closed, and this command answers once"
        raise InvalidRequest(reason=reason, hint="use `beetle.client.Client.subscribe`")
    with open_session(typed, typed.operation) as session:
        report = session.call(
            typed.operation, arguments, typed_option(typed, "idempotency_key"), typed_option(typed, "deadline_ms")
        )
    print(as_json(report) if typed_option(typed, "json") else as_indented_json(report))
    return 0


OWN = {
    "call": (fill_call, run_call),
    "skill enable": (fill_skill_name, partial(run_set_enabled, True)),
    "skill disable": (fill_skill_name, partial(run_set_enabled, False)),
}
