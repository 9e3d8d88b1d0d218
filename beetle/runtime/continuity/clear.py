"""Taking away what a scope holds, for what is restored in its place: rows, index, and every byte of the content."""

from __future__ import annotations

from typing import NamedTuple

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.refs import format_ref, parse_ref
from beetle.memory.digest import content_digest
from beetle.memory.lexical import evidence_fields
from beetle.runtime import evolve, facts, governance, procedural
from beetle.runtime.continuity.gather import Where
from beetle.runtime.handling import Context
from beetle.store import continuity, continuity_write, evidence, long_term, recall_index, repair, skills
from beetle.store.evidence import AffectedMessage
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

Said = dict[str, set[tuple[str, bytes]]]
"""What stood in each turn, by its id: the messages' ids and keyed digests."""


class Cleared(NamedTuple):
    """What was cut off from outside: derived refs that named a turn, facts that one of the scope's stood for.

    `said` is what stood in the conversation of a chat.
    """

    loose: tuple[tuple[int, str], ...] = ()
    followers: tuple[tuple[int, str], ...] = ()
    said: Said | None = None


def clear(context: Context, tx: WriteTransaction, space: int, where: Where, conversation: int | None) -> Cleared:
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
        evolve.drop_all(context, tx, space)
    else:
        gone = [*(format_ref("long_term", row.record_id) for row in rows), *(head.name for head in heads)]
        evolve.drop_about(context, tx, space, gone)
        evolve.drop_citing_conversation(context, tx, space, chat.channel, chat.conversation_id)
    for head in heads:
        found = skills.find_skill(tx, space, head.name)
        assert found is not None
        procedural.unindex(tx, space, found)
        skills.delete_skill(tx, found.skill)
    followers = continuity_write.followers(tx, space, [row.fact for row in rows])
    for row in rows:
        facts.reindex(tx, facts.index_rows(tx, space, row), set())
    continuity_write.remove_facts(tx, [row.fact for row in rows])
    for item in items:
        continuity_write.remove_item(tx, space, item.record_id, item.plane)
    if whole:
        continuity_write.clear_space(tx, space)
    loose = [each for key in keys for each in continuity_write.loosen(tx, space, key)]
    said = None if conversation is None else _said(tx, conversation)
    for key in keys:
        _unindex(context, tx, space, key)
        continuity_write.clear_conversation(tx, key, whole=whole)
    tx.expect_erasure()
    return Cleared(tuple(loose), tuple(followers), said)


def _said(tx: Reading, conversation: int) -> Said:
    found: Said = {}
    for turn in continuity_write.turns_of(tx, conversation):
        for message in evidence.affected_messages(tx, turn):
            found.setdefault(message.turn_id, set()).add((message.message_id, message.digest))
    return found


def _unindex(context: Context, tx: WriteTransaction, space: int, conversation: int) -> None:
    for turn in continuity_write.turns_of(tx, conversation):
        for message in evidence.affected_messages(tx, turn):
            if repair.is_indexed(tx, message.message):
                _remove(context, tx, space, message)


def _remove(context: Context, tx: WriteTransaction, space: int, message: AffectedMessage) -> None:
    content = message.content
    if content is None or content_digest(context.key, content) != message.digest:
        raise IntegrityViolation(
            reason=f"message {message.message_id!r} of turn {message.turn_id!r} is not what was indexed of it: "
            "what the recall index holds of it cannot be erased",
            hint="run `beetle memory recover`, then restore again; nothing was written",
            turn_id=message.turn_id,
            message_id=message.message_id,
        )
    entry = recall_index.Entry("evidence", message.message, space, message.conversation, message.visibility)
    recall_index.remove(tx, entry, evidence_fields(content, message.speaker, message.at))


def mend(
    context: Context, tx: WriteTransaction, space: int, where: Where, cleared: Cleared, made: dict[str, int]
) -> None:
    """Join what was cut off to what came in its place, as far as that is the same, and drop what rested on the rest.

    Args:
        made: facts that were taken in, by their record ids.
    """
    for key, text in cleared.loose:
        ref = parse_ref(text)
        turn = None if ref is None else skills.turn_of_ref(tx, space, ref.segments)
        if turn is not None:
            continuity_write.fasten(tx, key, turn)
    for fact, record_id in cleared.followers:
        by = made.get(record_id)
        if by is not None:
            continuity_write.supersede(tx, fact, by)
            continue
        (row,) = long_term.facts_by_key(tx, [fact])
        # What stood in its place is gone, and nobody says that it holds again.
        change = facts.Change("stale", row.authority)
        after = facts.restate(context, tx, space, row._replace(state="stale", superseded_by=None), change)
        facts.log_change(context, tx, "fact_stale", after)
    if where.chat is not None and cleared.said is not None:
        row = evidence.find_conversation(tx, space, where.chat.channel, where.chat.conversation_id)
        now: Said = {} if row is None else _said(tx, row.conversation)
        lost = [turn_id for turn_id, said in cleared.said.items() if not said <= now.get(turn_id, set())]
        governance.drop_citing(context, tx, space, where.chat.channel, where.chat.conversation_id, lost)
