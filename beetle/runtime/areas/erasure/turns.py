"""Erasing the content of turns, a few at a time."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.transcript import HostRefView, TranscriptRedactionReportItem
from beetle.domain.lexical import evidence_fields
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import sanitize_refs
from beetle.runtime.planes import table
from beetle.runtime.planes.evidence import entry
from beetle.runtime.planes.plane import Erased, IndexRow
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence, evidence_lifecycle, recall_index, repair
from beetle.store.engine.transaction import Reading, Row
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import Part
from beetle.store.evidence_lifecycle import AffectedMessage, PlacedTurn
from beetle.store.indexed import INDEXED, is_key

DELETE_AGAIN = "`beetle memory recover` makes the index anew without it; then delete it again"
IDS_SHOWN = 10_000
Affected = tuple[PlacedTurn, list[AffectedMessage]]
"""A turn, and those of its messages that a step is about."""


class Impact(Struct):
    """What a step touches: counts of all of it, and of each list as many as a report may show, and one more where there
    are more. The lists are of this call alone.

    `changed` counts turns of which anything was erased, `changed_messages` the messages that were deleted.
    """

    affected: int = 0
    changed: int = 0
    changed_messages: int = 0
    count_messages: int = 0
    count_refs: int = 0
    count_derived: int = 0
    turn_ids: list[str] = []
    message_ids: list[str] = []
    refs: list[HostRefView] = []
    redactions: list[TranscriptRedactionReportItem] = []
    derived: list[DerivedMemoryRef] = []
    digests: list[bytes] = []
    most: tuple[int, int] = (IDS_SHOWN, IDS_SHOWN)
    """Most redactions and host refs, and most derived refs."""

    def see(self, invocation: Invocation, tx: Reading, space: int, affected: list[Affected]) -> None:
        """Count turns, and note their ids as far as they are shown."""
        keys = [turn.turn for turn, _ in affected]
        refs, derived = evidence.refs_of_turns(tx, keys), evidence_lifecycle.derived_from(tx, keys, space)
        for turn, messages in affected:
            self.affected += 1
            self.count_messages += len(messages)
            self.digests += [message.digest for message in messages]
            if len(self.turn_ids) <= IDS_SHOWN:
                self.turn_ids.append(turn.turn_id)
            if len(self.message_ids) <= IDS_SHOWN:
                self.message_ids += [message.message_id for message in messages]
            self._see_refs(invocation, turn, refs[turn.turn])
            self._see_derived(invocation, tx, space, derived[turn.turn])

    def _see_derived(self, invocation: Invocation, tx: Reading, space: int, rows: list[Row]) -> None:
        for derived, source, relation in rows:
            if table.is_known(invocation, tx, space, derived):
                self.count_derived += 1
                if len(self.derived) <= self.most[1]:
                    self.derived.append(DerivedMemoryRef(derived=derived, evidence=source, relation=relation))

    def _see_refs(self, invocation: Invocation, turn: PlacedTurn, rows: list[Row]) -> None:
        """The host refs that the caller's view may see. Their labels are content, and in no report of a step."""
        for kind, ref_id, relation, shown, labelled in rows:
            views = tuple(shown.split(",")) if shown else ()
            ref = HostRefView(kind=kind, ref_id=ref_id, relation=relation, visibility=views)
            seen, redactions = sanitize_refs((ref,), turn.turn_id, invocation.viewer())
            self.count_refs += len(seen)
            if max(len(self.refs), len(self.redactions)) > self.most[0]:
                continue
            self.refs.extend(seen)
            self.redactions.extend(redactions)
            if seen and labelled:
                withheld = TranscriptRedactionReportItem(
                    turn_id=turn.turn_id, field="HostRefLabel", reason="not_in_view"
                )
                self.redactions.append(withheld)

    def join(self, more: Impact) -> None:
        """Add what another slice has touched."""
        for name in ("affected", "changed", "changed_messages", "count_messages", "count_refs", "count_derived"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        for name in ("turn_ids", "message_ids", "refs", "redactions", "derived"):
            own: list[object] = getattr(self, name)
            own += getattr(more, name)[: max(0, IDS_SHOWN + 1 - len(own))]
        self.digests += more.digests


def new_impact(invocation: Invocation) -> Impact:
    """Nothing yet, with the bounds of the profile."""
    budgets = invocation.shared.profile.budgets
    return Impact(most=(budgets.redaction_items, budgets.derived_refs))


def look(
    invocation: Invocation,
    tx: Reading,
    space: int,
    conversation: int,
    first: int,
    last: int,
    most: int,
    kinds: tuple[str, ...] | None = None,
) -> tuple[Impact, list[Affected], int]:
    """What a step touches in at most `most` turns of these sequences: its counts, the turns with their messages, and
    the sequence behind them.

    Args:
        kinds: the visibilities of the messages that it is about; None for all of them.
    """
    turns = evidence_lifecycle.turns_between(tx, conversation, first, last, most)
    every = evidence_lifecycle.affected_of_turns(tx, [turn.turn for turn in turns])
    affected: list[Affected] = []
    for turn in turns:
        messages = [each for each in every.get(turn.turn, ()) if kinds is None or each.visibility in kinds]
        if kinds is None or messages:
            affected.append((turn, messages))
    impact = new_impact(invocation)
    impact.see(invocation, tx, space, affected)
    return impact, affected, turns[-1].sequence + 1 if len(turns) == most else last + 1


def erase(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    part: Part,
    kinds: tuple[str, ...] | None,
    most: int,
    *,
    merged: bool,
) -> tuple[Impact, int]:
    """Erase at most `most` turns of a part; what that touched, and the sequence at which it goes on.

    Args:
        kinds: the visibilities of the messages that go; None for all of them.
        merged: the recall index is made anew behind the last part.

    Raises:
        IntegrityViolation: what is indexed of a message is not known, so that it cannot be erased.
    """
    assert part.conversation is not None, "turns are named in their conversation"
    impact, affected, after = look(invocation, tx, space, part.conversation, part.first, part.last, most, kinds)
    rows = _erase(invocation, tx, space, affected, part.lifecycle, impact, partly=kinds is not None)
    (recall_index.hide_all if merged else recall_index.remove_all)(tx, rows)
    return impact, after


def erase_messages(
    invocation: Invocation, tx: WriteTransaction, space: int, turn: PlacedTurn, messages: list[AffectedMessage]
) -> None:
    """Erase these messages of one turn, and what hangs on it.

    Raises:
        IntegrityViolation: as `erase`.
    """
    recall_index.remove_all(tx, _erase(invocation, tx, space, [(turn, messages)], None, Impact()))


def _erase(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    affected: list[Affected],
    lifecycle: int | None,
    impact: Impact,
    *,
    partly: bool = False,
) -> list[IndexRow]:
    """Erase turns, `partly` when messages of them may stay; the rows of the index that go with them."""
    planes = [plane.erased for plane in table.PLANES if plane.erased is not None]
    turns: list[int] = []
    messages: list[AffectedMessage] = []
    for turn, each in affected:
        # A turn that was deleted before may hold content again: the brief of a tool comes when the tool is done.
        if any(message.state != "deleted" for message in each) or (not partly and _holds(planes, tx, turn)):
            turns.append(turn.turn)
            messages += each
    todo = [message.message for message in messages if message.state != "deleted"]
    impact.changed += len(turns)
    impact.changed_messages += len(todo)
    rows = rows_to_erase(invocation, tx, space, messages, DELETE_AGAIN)
    evidence_lifecycle.delete_messages(tx, todo, lifecycle)
    for plane in planes:
        plane.erase(tx, turns, [message.message for message in messages])
    return rows


def _holds(planes: Iterable[Erased], tx: Reading, turn: PlacedTurn) -> bool:
    return any(each.holds(tx, turn.turn) for each in planes)


def index_row(space: int, message: AffectedMessage) -> IndexRow:
    """What the index holds of a message whose content is what was committed."""
    row = entry(message.message, space, message.conversation, message.visibility)
    return row, evidence_fields(message.content or "", message.speaker, message.at)


def rows_to_erase(
    invocation: Invocation, tx: Reading, space: int, messages: list[AffectedMessage], hint: str
) -> list[IndexRow]:
    """What the index holds of messages that are erased.

    Raises:
        IntegrityViolation: what is indexed of one is not known; `hint` says what to do then.
    """
    indexed = repair.indexed_among(tx, [message.message for message in messages])
    rows: list[IndexRow] = []
    for message in messages:
        whole = is_whole(invocation.key, message)
        if message.message in indexed and not whole:
            raise IntegrityViolation(
                reason=f"message {message.message_id!r} of turn {message.turn_id!r} is not what was indexed of it: "
                "what the recall index holds of it cannot be erased",
                hint=hint,
                turn_id=message.turn_id,
                message_id=message.message_id,
            )
        # One that should have its row and lacks it is told by whoever takes them out.
        should = whole and message.state == "live" and message.visibility in INDEXED and is_key(message.message)
        if message.message in indexed or should:
            rows.append(index_row(space, message))
    return rows


def settle_speakers(tx: WriteTransaction, conversation: int) -> None:
    """Keep of who spoke in a conversation only those of whom a live message is left."""
    evidence_lifecycle.settle_speakers(tx, conversation, evidence_lifecycle.speakers_of(tx, conversation))
