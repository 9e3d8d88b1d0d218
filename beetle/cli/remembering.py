"""`remember` and `note`: short words that store what is said, and `memory remember`, the long form of the first."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any

from beetle.cli import data
from beetle.cli.flags import add_flag, collect, flags_of, read_text
from beetle.cli.parser import Parser
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.noting import note_request
from beetle.contracts.operations import BY_NAME, Operation
from beetle.contracts.transcript import MemoryTranscriptCommitRequest

REMEMBER = BY_NAME["memory.remember"]
COMMIT = BY_NAME["transcript.commit"]


def run_operation(row: Operation, typed: Namespace) -> int:
    """Remember one fact. What a person types at a terminal is the person's own word."""
    asked = data.gather(row, typed)
    asked["text"] = _read(asked["text"])
    if "said" not in asked and sys.stdin.isatty():
        asked["said"] = asked["text"]
    data.show(data.ask(typed, row, asked), typed)
    return 0


def fill_note(parser: Parser) -> None:
    """The text, its conversation, and the flags of one message."""
    parser.add_argument(
        "word", nargs="?", default=SUPPRESS, metavar="TEXT", help="the note, or - to read it from stdin"
    )
    group = parser.add_argument_group("request")
    (conversation,) = (each for each in flags_of(MemoryTranscriptCommitRequest) if each.field == "conversation")
    help = "its id, or channel and id; percent-encoded; default: one for each day (UTC)"
    add_flag(group, conversation._replace(required=False, help=help))
    for flag in data.turn_flags():
        if flag.field != "text":
            add_flag(group, flag)
    data.add_call_options(parser)


def run_note(typed: Namespace) -> int:
    """Commit one turn with one message."""
    if not hasattr(typed, "word"):
        raise InvalidRequest(reason="note: TEXT is missing", hint="see `beetle note --help`")
    (conversation,) = (each for each in flags_of(MemoryTranscriptCommitRequest) if each.field == "conversation")
    where = collect((conversation,), typed).get("conversation")
    asked = note_request(_read(typed.word), where, collect(data.turn_flags(), typed))
    if where is None and (channel := getattr(typed, "channel", None)):
        asked["conversation"]["channel_id"] = channel
    data.show(data.ask(typed, COMMIT, asked), typed)
    return 0


def _read(text: str) -> str:
    return read_text("-", "TEXT").rstrip("\n") if text == "-" else text


OWN: Mapping[str, Any] = {
    "remember": (partial(data.fill_operation, REMEMBER), partial(run_operation, REMEMBER)),
    "note": (fill_note, run_note),
}
fill_operation = data.fill_operation
