"""Archiving, masking, unmasking and reviewing turns, a few at a time."""

from __future__ import annotations

from beetle.runtime.areas.erasure.turns import Affected, Impact, index_row, look
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence_lifecycle, recall_index, repair
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import Part
from beetle.store.evidence_lifecycle import AffectedMessage
from beetle.store.indexed import INDEXED

TRANSITIONS: dict[str, tuple[str, str]] = {"mask": ("live", "masked"), "unmask": ("masked", "live")}
"""The state of messages that an action changes, and the one that they have after it."""
DONE = {"archive": "archived", "mask": "masked", "unmask": "unmasked", "review": "reviewed"}
"""The actions, and what has been done to a turn then."""


def change(
    invocation: Invocation, tx: WriteTransaction, space: int, part: Part, most: int, *, merged: bool
) -> tuple[Impact, int]:
    """Do a part's action to at most `most` of its turns; what that touched, and the sequence at which it goes on.

    Args:
        merged: the recall index is made anew behind the last part.
    """
    assert part.conversation is not None and part.lifecycle is not None, "turns are named in their conversation"
    impact, affected, after = look(invocation, tx, space, part.conversation, part.first, part.last, most)
    if part.plane == "archive":
        impact.changed += sum(evidence_lifecycle.archive_turn(tx, turn.turn) for turn, _ in affected)
    elif part.plane in TRANSITIONS:
        changed = changing(part.plane, affected)
        set_states(invocation, tx, space, part.plane, changed, part.lifecycle, merged=merged)
        if part.plane == "unmask":
            # Of a mask that is done behind its last part: that nothing is left of one takes a look at all.
            settle_speakers(tx, changed)
        impact.changed_messages += len(changed)
    return impact, after


def changing(action: str, affected: list[Affected]) -> list[AffectedMessage]:
    """The messages whose state an action changes."""
    if action not in TRANSITIONS:
        return []
    before, _ = TRANSITIONS[action]
    return [message for _, messages in affected for message in messages if message.state == before]


def set_states(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    action: str,
    messages: list[AffectedMessage],
    lifecycle: int,
    *,
    merged: bool = False,
) -> None:
    """Mask or unmask messages of one conversation, and take them out of the recall index or into it."""
    sound = [message for message in messages if is_whole(invocation.key, message)]
    if action == "mask":
        rows = [index_row(space, message) for message in sound if message.visibility in INDEXED]
        (recall_index.hide_all if merged else recall_index.remove_all)(tx, rows)
    else:
        indexed = repair.indexed_among(tx, [message.message for message in sound])
        for message in sound:
            if message.visibility in INDEXED and message.message not in indexed:
                recall_index.add(tx, *index_row(space, message))
    evidence_lifecycle.set_states(tx, [message.message for message in messages], TRANSITIONS[action][1], lifecycle)


def settle_speakers(tx: WriteTransaction, messages: list[AffectedMessage]) -> None:
    """Keep of those who said messages of one conversation only those of whom a live message is left."""
    speakers = sorted({(each.visibility, each.speaker) for each in messages if each.speaker})
    if speakers:
        evidence_lifecycle.settle_speakers(tx, messages[0].conversation, speakers)
