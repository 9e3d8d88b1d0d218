"""Taking away what a scope holds, for what is restored in its place: rows, index, and every byte of the content."""

from __future__ import annotations

from beetle.contracts.refs import evidence_named
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.chains import taking_in as chains_in
from beetle.runtime.areas.chunks import taking_in as chunks_in
from beetle.runtime.areas.erasure import plans
from beetle.runtime.areas.erasure.turns import rows_to_erase
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.governance import queue
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.gathering import Where
from beetle.runtime.planes.long_term import fact_ref, index_rows
from beetle.store import (
    chunk_imports,
    continuity,
    continuity_write,
    evidence,
    evidence_lifecycle,
    long_term,
    recall_index,
    skills,
)
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

RESTORE_AGAIN = "run `beetle memory recover`, then restore again; nothing was written"

TURNS_AT_ONCE = 200

Said = dict[str, set[tuple[str, bytes]]]
"""What stood in each turn, by its id: the messages' ids and keyed digests."""


class Cleared(NamedTuple):
    """What was cut off from outside: derived refs that named a turn, facts that one of the scope's stood for.

    `said` is what stood in the conversation of a chat.
    """

    loose: tuple[tuple[int, str], ...] = ()
    followers: tuple[tuple[int, str], ...] = ()
    said: Said | None = None


def clear(invocation: Invocation, tx: WriteTransaction, space: int, where: Where, conversation: int | None) -> Cleared:
    """Take away all that belongs to a chat, or to the space.

    `conversation` is the key of the chat's conversation, which stays, empty, with what stands for it.
    """
    chat = where.chat
    whole = chat is None
    keys = [key for key, _, _ in continuity.conversations(tx, space, conversation)] if whole or conversation else []
    if chat is None:
        rows = continuity.facts(tx, space)
    else:
        rows = continuity.facts_of_chat(tx, space, conversation, chat.chat_id)
    heads = continuity.skill_heads(tx, space, None if chat is None else chat.chat_id)
    items = continuity.items(tx, space, conversation, of_chat=not whole)
    if chat is None:
        proposals.drop_all(invocation, tx, space)
    else:
        gone = [*(fact_ref(row) for row in rows), *(head.name for head in heads)]
        proposals.drop_about(invocation, tx, space, gone)
        proposals.drop_citing_conversation(invocation, tx, space, chat.channel, chat.conversation_id)
    skills_gone: list[int] = []
    for head in heads:
        found = skills.find_skill(tx, space, head.name)
        assert found is not None
        procedural.unindex(tx, space, found)
        skills.delete_skill(tx, found.skill)
        skills_gone.append(found.skill)
    followers = continuity_write.followers(tx, space, [row.fact for row in rows])
    for row in rows:
        facts.reindex(tx, index_rows(tx, space, row), set())
    continuity_write.remove_facts(tx, [row.fact for row in rows])
    for item in items:
        continuity_write.remove_item(tx, space, item.record_id, item.plane)
    gone_too = {
        "fact": [row.fact for row in rows], "skill": skills_gone, "private": [item.item for item in items],
    }  # fmt: skip
    plans.strike_replaced(tx, space, conversation, None if whole else gone_too)
    if whole:
        chains_in.clear(invocation, tx, space)
        chunks_in.clear(invocation, tx, space)
        chunk_imports.call_off(tx, space)
        continuity_write.clear_space(tx, space)
    loose = [each for key in keys for each in continuity_write.loosen(tx, space, key)]
    said = None if conversation is None else _said(tx, conversation)
    _unindex(invocation, tx, space, [turn for key in keys for turn in continuity_write.turns_of(tx, key)])
    for key in keys:
        continuity_write.clear_conversation(tx, key, whole=whole)
    tx.expect_erasure()
    return Cleared(tuple(loose), tuple(followers), said)


def _unindex(invocation: Invocation, tx: WriteTransaction, space: int, turns: list[int]) -> None:
    """Take turns out of the recall index. Words of many stay on its pages until it is made anew behind this write."""
    many = plans.are_many(tx, len(turns))
    for start in range(0, len(turns), TURNS_AT_ONCE):
        found = evidence_lifecycle.affected_of_turns(tx, turns[start : start + TURNS_AT_ONCE])
        messages = [message for each in found.values() for message in each]
        rows = rows_to_erase(invocation, tx, space, messages, RESTORE_AGAIN)
        (recall_index.hide_all if many else recall_index.remove_all)(tx, rows)
    if many:
        plans.begin_merge(invocation, tx, space)


def _said(tx: Reading, conversation: int) -> Said:
    found: Said = {}
    for turn in continuity_write.turns_of(tx, conversation):
        for message in evidence_lifecycle.affected_messages(tx, turn):
            found.setdefault(message.turn_id, set()).add((message.message_id, message.digest))
    return found


def mend(
    invocation: Invocation, tx: WriteTransaction, space: int, where: Where, cleared: Cleared, made: dict[str, int]
) -> None:
    """Join what was cut off to what came in its place, as far as that is the same, and drop what rested on the rest.

    Args:
        made: facts that were taken in, by their record ids.
    """
    for key, text in cleared.loose:
        ref = evidence_named(text)
        turn = None if ref is None else skills.turn_of_ref(tx, space, ref)
        if turn is not None:
            continuity_write.fasten(tx, key, turn)
    for fact, record_id in cleared.followers:
        by = made.get(record_id)
        if by is not None:
            continuity_write.supersede(tx, fact, by)
            continue
        (row,) = long_term.facts_by_key(tx, space, [fact])
        # What stood in its place is gone, and nobody says that it holds again.
        change = facts.Change("stale", row.authority)
        after = facts.restate(invocation, tx, space, row._replace(state="stale", superseded_by=None), change)
        facts.log_change(invocation, tx, "fact_stale", after)
    if where.chat is not None and cleared.said is not None:
        row = evidence.find_conversation(tx, space, where.chat.channel, where.chat.conversation_id)
        now: Said = {} if row is None else _said(tx, row.conversation)
        lost = [turn_id for turn_id, said in cleared.said.items() if not said <= now.get(turn_id, set())]
        queue.drop_citing(invocation, tx, space, where.chat.channel, where.chat.conversation_id, lost)
