"""Which turns memory.forget erases: those of a conversation, of a subject, with the words of a query, or all."""

from __future__ import annotations

import json

from beetle.domain.lexical import all_words_expression
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import OWNER_APPROVED, Viewer, withheld
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Sight
from beetle.runtime.planes.query_words import said_in
from beetle.store import evidence, forgetting, plane_evidence, recall_index
from beetle.store.damaged_rows import check_row
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.forgetting import BesideText, SelectedTurn
from beetle.store.search_scope import SearchScope


def _select(asked: Forgetting) -> None:
    turns = _turns(asked)
    asked.turns = {turn.turn for turn in turns}
    _take(asked, turns)


def _turns(asked: Forgetting) -> list[SelectedTurn]:
    tx, request = asked.tx, asked.request
    if request.conversation is not None:
        where = request.conversation
        named = evidence.find_conversation(tx, asked.space, where.channel_id, where.conversation_id)
        return [] if named is None else forgetting.turns_of_conversation(tx, named.conversation)
    if request.whole_space:
        keys = forgetting.conversations(tx, asked.space)
        return [turn for key in keys for turn in forgetting.turns_of_conversation(tx, key)]
    if request.subject is not None:
        rows = forgetting.messages_of_subject(tx, asked.space, request.subject)
        turns = {turn for turn, visibility, state in rows if _is_seen(asked.sight, visibility, state)}
    else:
        turns = _turns_saying(asked) | _turns_beside(asked)
    return forgetting.turns_by_key(tx, asked.space, json.dumps(sorted(turns)))


def _is_seen(sight: Sight, visibility: str, state: str) -> bool:
    return visibility in sight.kinds and state != "deleted" and (state == "live" or sight.masked)


def _turns_saying(asked: Forgetting) -> set[int]:
    """The turns of which a message that the caller sees holds every word."""
    tx, sight = asked.tx, asked.sight
    expression = all_words_expression(asked.request.query or "")
    if expression is None:
        return set()
    scope = SearchScope(asked.space, (plane_evidence.MESSAGES,), private="private" in sight.kinds)
    keys = [key for _, key in recall_index.matching(tx, expression, scope)]
    turns = {turn for turn in (forgetting.turn_of(tx, key) for key in keys) if turn is not None}
    for turn, visibility, state, *said in forgetting.unindexed(tx, asked.space):
        if _is_seen(sight, visibility, state) and asked.words.are_in(*filter(None, said)):
            turns.add(turn)
    return turns


def _turns_beside(asked: Forgetting) -> set[int]:
    """The turns of which an attr or a host ref's label that the caller sees holds every word: in attrs hosts keep a
    message's own form."""
    turns: set[int] = set()
    viewers = asked.invocation.viewers
    approved = [viewer for viewer in viewers if viewer.view in OWNER_APPROVED]
    for conversation in forgetting.conversations(asked.tx, asked.space) if asked.words else ():
        asked.invocation.check("the attrs were looked through")
        for attr in forgetting.attrs(asked.tx, conversation):
            if asked.words.are_in(said_in(attr.value)) and any(_shows(viewer, attr) for viewer in viewers):
                turns.add(attr.turn)
        for label in forgetting.labels(asked.tx, conversation):
            if asked.words.are_in(label.value) and any(_shows(viewer, label) for viewer in approved):
                turns.add(label.turn)
    return turns


def _shows(viewer: Viewer, attr: BesideText) -> bool:
    """Whether a view shows an attr or a label: its own views have it, and what it hangs on is seen whole."""
    if viewer.view == "raw_owner":
        return True
    if viewer.view not in attr.views.split(",") or (viewer.view == "export" and not attr.export_allowed):
        return False
    if attr.messages is None:
        return False  # damaged: what it hangs on is not of its turn
    hung_on = (each.split(" ") for each in attr.messages.split(","))
    return all(withheld(visibility, state, viewer) is None for visibility, state in hung_on)


def _take(asked: Forgetting, turns: list[SelectedTurn]) -> None:
    """Note the turns by conversation, and count the messages that go and those that the caller may not see."""
    found, sight = asked.found, asked.sight
    for turn in turns:
        seen = 0
        check_row("turn", turn.turn_id, texts=(turn.messages,))
        for each in turn.messages.split(","):
            visibility, state = each.split(" ")
            if state == "deleted":
                continue
            if visibility not in sight.kinds:
                found.hide()
                continue
            seen += 1
            if visibility != "shared":
                found.touch("private" if visibility == "private" else "sealed")
        found.turns.setdefault(turn.conversation, []).append(turn)
        if seen:
            found.counts["turns"] = found.counts.get("turns", 0) + 1
            found.counts["messages"] = found.counts.get("messages", 0) + seen
    for conversation, inside in found.turns.items():
        shown = [(turn.turn_id, _shown(turn.messages, sight)) for turn in inside]
        found.names.append((forgetting.names_of(asked.tx, conversation), [each for each in shown if each[1]]))


def _shown(messages: str, sight: Sight) -> str:
    return ",".join(each for each in messages.split(",") if each.split(" ")[0] in sight.kinds)


def _known_label(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    return _of_turn(evidence.place_of_label(tx, space, key))


def _known_attr(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    return _of_turn(evidence.place_of_attr(tx, space, key))


def _of_turn(place: tuple[int, int] | None) -> Known | None:
    return None if place is None else Known(place)


def _erase_label(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del invocation, space, authority
    return Gone([]) if evidence.erase_label(tx, key) else None


def _erase_attr(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del invocation, space, authority
    return Gone([]) if evidence.erase_attr(tx, key) else None


LABEL = Kind("label", "labels", 120, _known_label, _erase_label)
ATTR = Kind("attr", "attrs", 130, _known_attr, _erase_attr)
"""Both are erased alone in a snapshot only, where their turn came again without them; else they go with it."""
FORGOTTEN = Forgotten(0, _select, (LABEL, ATTR))
