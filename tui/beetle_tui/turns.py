"""Evidence as the console shows it: a turn as a row, and whole, with what its view withholds and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from beetle.contracts.codec import UNSET
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.names import ViewName
from beetle.contracts.refs import evidence_named
from beetle.contracts.tool_parts import lines_of
from beetle.contracts.transcript import (
    ActorView,
    AttrView,
    ConversationSummary,
    HostRefView,
    RedactedTranscriptSlice,
    SearchHit,
    TranscriptMessage,
    TranscriptRedactionReportItem,
    TranscriptTurn,
)
from beetle_tui.prose import BLANK, Block, plain, section
from beetle_tui.split import remark, written
from beetle_tui.table import Column
from beetle_tui.text import count, moment, neutral

VIEWS: Mapping[ViewName, str] = {
    "host_ui": "what a person at a host may see",
    "model_context": "what a model may read",
    "operator_audit": "what is there, not what it says",
    "export": "what may leave the device",
}
"""The views that the console goes through, in that order: raw_owner is none of them."""
REASONS: Mapping[str, str] = {
    "masked": "it is masked: unmasking shows it again",
    "raw_deleted": "deleted for good",
    "private": "private material, which this view leaves out",
    "soul": "soul material, for the owner alone",
    "backend": "backend material, for operator_audit alone",
    "operator": "operator material, for operator_audit alone",
    "digest_only": "this view shows the digest alone",
    "not_in_view": "its own visibility leaves this view out",
}
"""Why something is withheld, in words, by the reason in the report."""
FIELDS: Mapping[str, str] = {"host_ref": "object of the host", "HostRefLabel": "label of an object", "attr": "value"}
"""What is withheld, in words."""
GAP = "(no turn has this number)"
EXCERPT = 400
"""Characters of a turn that its row keeps."""
SHOWN_OF_TURN = 60_000
"""Characters of a turn after which no further message of it is shown."""
SHOWN_OF_MESSAGE = 30_000
SHOWN_LINES = 2_000
"""How much of a message is laid out: at every turn of a list that is gone through, and at every other width."""


class TurnRow(NamedTuple):
    """A turn in a list, without more of its content than a line shows."""

    sequence: int
    turn_id: str
    at: str
    who: str
    text: str
    withheld: int
    archived: bool
    states: tuple[str, ...]

    @property
    def is_gap(self) -> bool:
        """Whether no turn is there."""
        return not self.turn_id


def _minute(at: str | None) -> str:
    return moment(at)[:16]


def row_of(turn: TranscriptTurn, withheld: int) -> TurnRow:
    """The row of a turn."""
    first = turn.messages[0] if turn.messages else None
    return TurnRow(
        sequence=turn.sequence,
        turn_id=turn.turn_id,
        at=turn.at,
        who="" if first is None else _who(first),
        text=_excerpt(turn.messages),
        withheld=withheld,
        archived=turn.archived,
        states=tuple(sorted({each.state for each in turn.messages})),
    )


def rows_between(report: Sequence[RedactedTranscriptSlice], first: int, last: int) -> tuple[TurnRow, ...]:
    """A row for every number from `first` to `last`: a number that no turn has is said to have none."""
    found: dict[int, TurnRow] = {}
    for page in report:
        withheld = Counter(each.turn_id for each in page.redactions)
        found |= {turn.sequence: row_of(turn, withheld[turn.turn_id]) for turn in page.turns}
    return tuple(
        found.get(number) or TurnRow(number, "", "", "", GAP, 0, False, ()) for number in range(first, last + 1)
    )


def _who(message: TranscriptMessage) -> str:
    return (message.actor.speaker if message.actor is not None else None) or message.role


def _excerpt(messages: Sequence[TranscriptMessage]) -> str:
    parts: list[str] = []
    room = EXCERPT
    for each in messages:
        if room <= 0:
            break
        said = f"[{_reason(each)}]" if each.content is UNSET else each.content or " ".join(lines_of(each))
        parts.append(" ".join(said[:room].split()))
        room -= len(parts[-1])
    return " | ".join(parts)


def _reason(message: TranscriptMessage) -> str:
    return "withheld" if message.redacted is UNSET else message.redacted.reason


def line_of_hit(hit: SearchHit) -> str:
    """What a found message says, on a line."""
    return " ".join((hit.excerpt or "")[:EXCERPT].split()) or f"[{hit.state}]"


TURN_COLUMNS: tuple[Column[TurnRow], ...] = (
    Column("Turn", lambda row: str(row.sequence), 7, right=True),
    Column("Time (UTC)", lambda row: _minute(row.at), 16, narrow=50),
    Column("Who", lambda row: row.who, 12, narrow=70),
    Column("!", lambda row: str(row.withheld) if row.withheld else "", 3, right=True, narrow=40),
    Column("Text", lambda row: f"(archived) {row.text}" if row.archived else row.text),
)
CONVERSATION_COLUMNS: tuple[Column[ConversationSummary], ...] = (
    Column("Conversation", lambda row: f"{row.channel_id}/{row.conversation_id}"),
    Column("Turns", lambda row: f"{row.turns:,}", 9, right=True),
    Column("First (UTC)", lambda row: _minute(row.first_at), 16, narrow=96),
    Column("Last (UTC)", lambda row: _minute(row.last_at), 16, narrow=50),
    Column("Who spoke", lambda row: ", ".join(row.speakers or ()), 20, narrow=76),
)
HIT_COLUMNS: tuple[Column[SearchHit], ...] = (
    Column("Score", lambda row: f"{row.score:.3f}", 6, right=True, narrow=60),
    Column("Time (UTC)", lambda row: _minute(row.at), 16, narrow=50),
    Column("Conversation", lambda row: f"{row.conversation.channel_id}/{row.conversation.conversation_id}", 18),
    Column("Text", lambda row: line_of_hit(row)),
)


def turn_blocks(
    turn: TranscriptTurn,
    redactions: Sequence[TranscriptRedactionReportItem],
    derived: Sequence[DerivedMemoryRef] | None,
    links: str,
) -> Iterator[Block]:
    """A turn whole: messages with who said them, what hangs on it, what was withheld, and what was derived from it.

    `derived` is None while that was not asked for; `links` is the key that asks for it.
    """
    archived = ", archived" if turn.archived else ""
    yield from remark(f"number {turn.sequence}, {moment(turn.at)}{archived}")
    if redactions:
        yield plain(f"{count(len(redactions), 'thing')} withheld by this view, see below", "! ")
    left = SHOWN_OF_TURN
    for number, message in enumerate(turn.messages):
        if left <= 0:
            yield from remark(
                f"… {count(len(turn.messages) - number, 'message')} more of this turn are not shown here."
            )
            break
        yield from section(_head(message, turn.at))
        yield from _message_blocks(message)
        left -= 0 if message.content is UNSET else min(len(message.content), SHOWN_OF_MESSAGE)
    if turn.host_refs:
        yield from section("Objects of the host")
        yield from (plain(_host_ref(each), "- ") for each in turn.host_refs)
    if turn.attrs:
        yield from section("Values beside it")
        yield from (block for each in turn.attrs for block in _attr(each))
    if redactions:
        yield from section(f"Withheld by this view: {len(redactions)}")
        yield from withheld_blocks(redactions)
    yield from derived_blocks(derived, links)


def _head(message: TranscriptMessage, turn_at: str) -> str:
    at = "" if message.at == turn_at else f", {moment(message.at)}"
    state = "" if message.state == "live" else f", {message.state}"
    who = _who(message)
    role = "" if who == message.role else f" ({message.role})"
    return neutral(f"{who}{role}: {message.message_id}, {message.visibility}{state}{at}")


def _message_blocks(message: TranscriptMessage) -> Iterator[Block]:
    if message.actor is not None and (told := _actor(message.actor)):
        yield from remark(told)
    if message.content is not UNSET:
        tools = lines_of(message)
        if message.content or not tools:
            yield from _content(message.content)
        for line in tools:
            yield plain(line[:SHOWN_OF_MESSAGE], "> ")
        return
    yield plain(f"[{_reason(message)}]", "! ")
    marker = message.redacted
    if marker is UNSET:
        return
    if marker.length is not UNSET:
        yield from remark(f"length {count(marker.length, 'character')}")
    if marker.digest is not UNSET:
        yield from remark(f"digest {marker.digest}")
    if marker.deleted_at is not UNSET:
        by = "" if marker.deleted_by is UNSET else f" by {marker.deleted_by}"
        yield from remark(f"deleted {moment(marker.deleted_at)}{by}")


def _content(text: str) -> Iterator[Block]:
    """A stored text line by line; of one that is very long the beginning, and how much is left out."""
    shown = "\n".join(text[:SHOWN_OF_MESSAGE].split("\n", SHOWN_LINES)[:SHOWN_LINES])
    yield from written(shown)
    if len(shown) < len(text):
        yield from remark(f"… {count(len(text) - len(shown), 'character')} more are not shown here.")


def _actor(actor: ActorView) -> str:
    """Whom a message is of, but for the speaker's name, which stands before it."""
    told = {
        "about": actor.subject_id,
        "by": actor.actor_subject_id,
        "as": actor.mounted_subject_id,
        "agent": actor.agent_id,
        "set off by": actor.trigger,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


def _host_ref(ref: HostRefView) -> str:
    relation = "" if ref.relation is None else f" ({ref.relation})"
    label = "" if ref.label is None else f": {ref.label}"
    return f"{ref.kind} {ref.ref_id}{relation}{label}; for {', '.join(ref.visibility) or 'no view'}"


def _attr(attr: AttrView) -> Iterator[Block]:
    where = "" if attr.message_id is None else f" of {attr.message_id}"
    views = ", ".join((*attr.visibility, *(["may be exported"] if attr.export_allowed else []))) or "no view"
    yield plain(f"{attr.key}{where}; for {views}", "- ")
    yield from _content(attr.value or "")


def withheld_blocks(redactions: Sequence[TranscriptRedactionReportItem]) -> Iterator[Block]:
    """What was withheld, by its reason; what is alike is counted."""
    reasons: dict[str, Counter[str]] = {}
    for each in redactions:
        of = "" if each.message_id is None else f" of {each.message_id}"
        reasons.setdefault(each.reason, Counter())[f"{FIELDS.get(each.field, each.field)}{of}"] += 1
    for reason, things in reasons.items():
        meaning = f": {REASONS[reason]}" if reason in REASONS else ""
        yield plain(f"{reason}{meaning}", "! ")
        yield from (plain(name if times == 1 else f"{name}, {times} times", "  - ") for name, times in things.items())


def derived_blocks(derived: Sequence[DerivedMemoryRef] | None, links: str) -> Iterator[Block]:
    """What was derived from a turn; enter on a line goes there."""
    if derived is None:
        yield BLANK
        yield from remark(f"{links}: what was derived from this turn")
        return
    yield from section(f"Derived from it: {len(derived)}")
    if not derived:
        yield from remark("No skill, no fact: nothing that is remembered came from this turn.")
    for each in derived:
        found = evidence_named(each.evidence)
        of = "" if found is None or found.message_id is None else f" {found.message_id}"
        yield plain(f"{each.derived} {each.relation}{of}", "> ", target=each.derived)


def read_time(text: str) -> datetime | None:
    """A time as a person types it: `2026-03-02`, `2026-03`, `2026-03-02 08:12`, all of it; in UTC unless it says
    otherwise. None when it is none."""
    text = text.strip()
    if len(text) == len("2026-03"):
        text += "-01"
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
