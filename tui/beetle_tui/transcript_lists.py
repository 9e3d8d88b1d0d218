"""The lists of the transcripts area: what each holds, what it is called, and what can be done in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from textual.binding import Binding, BindingType

from beetle.contracts.common import Conversation
from beetle.contracts.refs import format_ref
from beetle.contracts.transcript import ConversationSummary, SearchHit
from beetle.contracts.transcript_repair import TranscriptRepairIssue
from beetle_tui.table import Column, Listing, Table
from beetle_tui.text import neutral
from beetle_tui.turns import CONVERSATION_COLUMNS, HIT_COLUMNS, TURN_COLUMNS, TurnRow, read_time

Level = Literal["conversations", "hits", "turns", "issues"]
LEVELS: tuple[Level, ...] = ("conversations", "hits", "turns", "issues")
ACTIONS: dict[str, tuple[Level, ...]] = {
    "view": ("conversations", "hits", "turns"),
    "search": ("conversations", "hits", "turns"),
    "date": ("turns",),
    "links": ("turns",),
    "step": ("hits", "turns"),
    "step_before": ("conversations",),
    "repair": ("conversations",),
    "repair_here": ("turns",),
    "mend": ("issues",),
    "filter": ("conversations", "turns", "hits"),
}
"""Where each action makes sense."""
KEYS: list[BindingType] = [
    Binding("v", "view", "View", id="transcripts-view", tooltip="the next view: host_ui, model_context, …"),
    Binding("d", "date", "Date", id="transcripts-date", tooltip="to the first turn at or after a time"),
    Binding("f", "search", "Search", id="transcripts-search", tooltip="find messages by their words"),
    Binding("o", "links", "Links", id="transcripts-links", tooltip="what was derived from the turn; enter goes",
            show=False),
    Binding("m", "step('mask')", "Mask", id="transcripts-mask", tooltip="hide a turn's content from every view"),
    Binding("u", "step('unmask')", "Unmask", id="transcripts-unmask", tooltip="show masked content again"),
    Binding("x", "step('delete_raw')", "Delete", id="transcripts-delete", tooltip="erase a turn's content"),
    Binding("a", "step('archive')", "Archive", id="transcripts-archive", tooltip="archive a turn", show=False),
    Binding("m", "step_before('mask')", "Mask", id="transcripts-mask-before",
            tooltip="mask the turns before a time", show=False),
    Binding("u", "step_before('unmask')", "Unmask", id="transcripts-unmask-before",
            tooltip="unmask the turns before a time", show=False),
    Binding("x", "step_before('delete_raw')", "Delete", id="transcripts-delete-before",
            tooltip="erase the content of the turns before a time", show=False),
    Binding("a", "step_before('archive')", "Archive", id="transcripts-archive-before",
            tooltip="archive the turns before a time", show=False),
    Binding("p", "repair", "Repair", id="transcripts-repair", tooltip="look for broken links and records"),
    Binding("p", "repair_here", "Repair", id="transcripts-repair-here",
            tooltip="look for broken links and records of the conversation", show=False),
    Binding("m", "mend", "Mend", id="transcripts-mend", tooltip="mend what loses nothing"),
    Binding("escape", "back", "Back", id="transcripts-back", tooltip="to the list before", show=False),
]  # fmt: skip
ISSUE_COLUMNS: tuple[Column[TranscriptRepairIssue], ...] = (
    Column("Problem", lambda row: row.problem.replace("_", " "), 24),
    Column("Mend", lambda row: "yes" if row.repairable else "", 4),
    Column("Kind", lambda row: row.kind.replace("_", " "), 22, narrow=100),
    Column("Where", lambda row: row.ref or place_of(row)),
    Column("Derived", lambda row: row.derived or "", 28, narrow=130),
)
COLUMNS: dict[Level, tuple[Column[Any], ...]] = {
    "conversations": CONVERSATION_COLUMNS,
    "hits": HIT_COLUMNS,
    "turns": TURN_COLUMNS,
    "issues": ISSUE_COLUMNS,
}
EMPTY: dict[Level, str] = {
    "conversations": "No conversation.",
    "hits": "No message.",
    "turns": "No turn.",
    "issues": "Nothing is broken.",
}
NOUNS: dict[Level, tuple[str, str]] = {
    "conversations": ("conversation", "conversations"),
    "hits": ("message", "messages"),
    "turns": ("turn", "turns"),
    "issues": ("finding", "findings"),
}
FIRST_EMPTY = (
    "Nothing was said yet.\n\n"
    "Conversations come with the first turn that an agent commits: transcript.commit or memory.finalize_turn, "
    "or `beetle transcript commit --file FILE` on the command line. Imports bring theirs with them."
)


def listings() -> Iterator[Listing[Any]]:
    """The lists themselves: `#LEVEL-list`, and in it the table `#LEVEL-table`."""
    for level, columns in COLUMNS.items():
        table: Table[Any] = Table(columns, id=f"{level}-table", dim=_counts_less, key=_same)
        yield Listing(table, noun=NOUNS[level], empty=EMPTY[level], id=f"{level}-list")


def _counts_less(row: Any) -> bool:
    return isinstance(row, TurnRow) and (row.archived or row.is_gap)


def _same(row: Any) -> object:
    """What stays of a row when it is read again."""
    match row:
        case ConversationSummary(channel_id=channel, conversation_id=name):
            return channel, name
        case SearchHit(ref=ref):
            return ref
        case TurnRow(sequence=sequence):
            return sequence
        case _:
            return row


def nothing_there(level: Level, query: str, search: str) -> str:
    """What stands in the place of an empty list; `search` is the key that looks for words."""
    match level:
        case "conversations":
            return f"No id or channel holds “{neutral(query)}”; {search} finds words." if query else FIRST_EMPTY
        case "hits":
            return "No message that this view shows holds these words. Masked and deleted ones are in no index."
        case _:
            return ""


def name_of_row(row: Any, where: Conversation | None) -> str | None:
    """What a row is called elsewhere: its ref, where it has one."""
    match row:
        case ConversationSummary(channel_id=channel, conversation_id=name):
            return f"{channel}/{name}"
        case SearchHit(ref=ref) | TranscriptRepairIssue(ref=ref):
            return ref
        case TurnRow(turn_id=turn_id) if where is not None and turn_id:
            return format_ref("evidence", where.channel_id, where.conversation_id, turn_id)
        case _:
            return None


def place_of(issue: TranscriptRepairIssue) -> str:
    """What a finding is about, by its ids."""
    where = issue.conversation
    named = [] if where is None else [where.channel_id, where.conversation_id]
    return "/".join([*named, *(part for part in (issue.turn_id, issue.message_id) if part is not None)])


def no_time(text: str) -> str | None:
    """What is wrong with a time."""
    return None if read_time(text) else "That is not a time: type it as 2026-03-02, or 2026-03-02 08:12."


def no_bound(text: str) -> str | None:
    """What is wrong with a time, or `all`."""
    return None if text.strip() == "all" else no_time(text)
