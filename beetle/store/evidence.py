"""Writing evidence: conversations, turns, messages, host refs, attrs. `evidence_lifecycle` changes what is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import apsw

from beetle.contracts.errors import Conflict, IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store import events, toc_outbox, turn_seals
from beetle.store.damaged_rows import check_row
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.index_tail import MARKED, NEWEST
from beetle.store.indexed import KEYS_END
from beetle.store.turn_messages import OF_ONE_TURN, by_turn


class PreparedMessage(NamedTuple):
    """A message ready to be written. `at` in microseconds; `fields` are its recall-index fields, None if unindexed.

    `content` is the text with the tool calls and results behind it, `length` the characters of it without them.
    """

    message_id: str
    role: str
    at: int
    visibility: str
    content: str
    length: int
    digest: bytes
    actor: tuple[str | None, ...]
    fields: tuple[str, str, str] | None
    event_type: int | None = None


class PreparedRef(NamedTuple):
    kind: str
    ref_id: str
    relation: str | None
    label: str | None
    visibility: str


class PreparedAttr(NamedTuple):
    """`message` is the position of the message it belongs to, None for the turn."""

    key: str
    value: str
    message: int | None
    visibility: str
    export_allowed: bool


class PreparedTurn(NamedTuple):
    turn_id: str
    at: int
    digest: bytes
    messages: tuple[PreparedMessage, ...]
    refs: tuple[PreparedRef, ...]
    attrs: tuple[PreparedAttr, ...]


EVENT_DOOR = "event"
"""The door whose messages have ids of their own in the space."""
SPACE_NAMES_SQL = "SELECT memory_space_id FROM space ORDER BY space"
SPACE_SQL = "SELECT space FROM space WHERE memory_space_id = ?"
NEW_SPACE_SQL = "INSERT INTO space (memory_space_id, created_at) VALUES (?, ?)"
CONVERSATION_SQL = """
SELECT conversation, last_sequence, messages, last_at FROM conversation
WHERE space = ? AND channel_id = ? AND conversation_id = ?
"""
NEW_CONVERSATION_SQL = """
INSERT INTO conversation (space, channel_id, conversation_id, created_at) VALUES (?, ?, ?, ?)
"""
GROW_CONVERSATION_SQL = """
UPDATE conversation SET turns = turns + ?, last_sequence = ?, messages = ?,
  first_at = min(coalesce(first_at, ?), ?), last_at = max(coalesce(last_at, ?), ?)
WHERE conversation = ?
"""
KNOWN_TURN_SQL = "SELECT turn, sequence, digest FROM turn WHERE conversation = ? AND turn_id = ?"
KNOWN_TURNS_SQL = """
SELECT t.turn_id, t.turn, t.sequence, t.digest
FROM json_each(?2) j CROSS JOIN turn t ON t.conversation = ?1 AND t.turn_id = j.value
"""
KINDS_OF_TURN_SQL = f"SELECT DISTINCT m.visibility, m.state {OF_ONE_TURN} WHERE t.turn = ?"
NEW_TURN_SQL = """
INSERT INTO turn (conversation, sequence, turn_id, door, at, committed_at, digest, seal, first_message, last_message,
  latest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# No key that the recall index has had: it takes new messages in by them. Nor one that stands beside a message whose own
# number is damaged.
NEXT_MESSAGE_SQL = f"""
SELECT max({NEWEST}, {MARKED},
  (SELECT coalesce(max(message), 0) FROM body WHERE message < {KEYS_END}),
  coalesce((SELECT last_message FROM turn WHERE turn = (SELECT max(turn) FROM turn) AND last_message < {KEYS_END}), 0)
) + 1
"""  # noqa: S608 - constants
NEW_MESSAGE_SQL = """
INSERT INTO message (message, turn, conversation, position, ordinal, message_id, role, event_type, at, visibility,
  length, digest, apart, speaker, subject_id, actor_subject_id, mounted_subject_id, agent_id, trigger_source)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
KNOWN_MESSAGE_SQL = "SELECT 1 FROM message WHERE conversation = ? AND message_id = ?"
NEW_SPEAKER_SQL = "INSERT OR IGNORE INTO conversation_speaker (conversation, visibility, speaker) VALUES (?, ?, ?)"
NEW_BODY_SQL = "INSERT INTO body VALUES (?, ?)"
NEW_REF_SQL = "INSERT INTO host_ref (turn, position, kind, ref_id, relation, visibility) VALUES (?, ?, ?, ?, ?, ?)"
NEW_LABEL_SQL = "INSERT INTO host_ref_label VALUES (?, ?)"
NEW_ATTR_SQL = """
INSERT INTO attr (turn, message, position, visibility, export_allowed, key, value) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
REMEMBERED_SQL = """
SELECT conversation FROM remembered_conversation
WHERE principal = ? AND space = ? AND agent_id = ? AND channel = ? AND chat_id = ?
"""
REMEMBER_SQL = """
INSERT INTO remembered_conversation VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET conversation = excluded.conversation
"""
ERASE_BODIES_SQL = "DELETE FROM body WHERE message IN (SELECT value FROM json_each(?))"
ERASE_LABELS_SQL = """
DELETE FROM host_ref_label WHERE host_ref IN
  (SELECT r.host_ref FROM json_each(?) j CROSS JOIN host_ref r ON r.turn = j.value)
"""
ERASE_ATTRS_SQL = """
DELETE FROM attr
WHERE turn IN (SELECT value FROM json_each(?)) AND (
  message IS NULL OR EXISTS (SELECT 1 FROM message m WHERE m.message = attr.message AND m.state = 'deleted'))
"""
LABEL_PLACE_SQL = """
SELECT r.turn, r.position FROM host_ref_label l JOIN host_ref r ON r.host_ref = l.host_ref
JOIN turn t ON t.turn = r.turn JOIN conversation c ON c.conversation = t.conversation
WHERE l.host_ref = ? AND c.space = ?
"""
ATTR_PLACE_SQL = """
SELECT a.turn, a.position FROM attr a JOIN turn t ON t.turn = a.turn
JOIN conversation c ON c.conversation = t.conversation WHERE a.attr = ? AND c.space = ?
"""
ERASE_LABEL_SQL = "DELETE FROM host_ref_label WHERE host_ref = ? RETURNING host_ref"
ERASE_ATTR_SQL = "DELETE FROM attr WHERE attr = ? RETURNING attr"
HOLDS_CONTENT_SQL = f"""
SELECT EXISTS (SELECT 1 {OF_ONE_TURN} JOIN body b ON b.message = m.message WHERE t.turn = ?1)
  OR EXISTS (SELECT 1 FROM host_ref r JOIN host_ref_label l ON l.host_ref = r.host_ref WHERE r.turn = ?1)
  OR EXISTS (SELECT 1 FROM attr WHERE turn = ?1)
"""  # noqa: S608 - our own text
REFS_OF_TURNS_SQL = """
SELECT r.turn, r.kind, r.ref_id, r.relation, r.visibility, l.host_ref IS NOT NULL
FROM json_each(?) j CROSS JOIN host_ref r ON r.turn = j.value
LEFT JOIN host_ref_label l ON l.host_ref = r.host_ref ORDER BY r.turn, r.position
"""
FORGET_CONVERSATIONS_SQL = "DELETE FROM remembered_conversation WHERE principal = ?"


class ConversationRow(NamedTuple):
    """`last_sequence` is the sequence of the newest turn, `messages` the ordinal of the newest message; 0 for none.

    `latest` is the latest time of a turn, in microseconds.
    """

    conversation: int
    last_sequence: int
    messages: int
    latest: int | None = None


def ensure_space(tx: Writing, memory_space_id: str, now: int) -> int:
    """The space's key, made on first use."""
    known = (SPACE_SQL, memory_space_id)
    found = tx.known.get(known)
    if found is None:
        found = tx.value(SPACE_SQL, memory_space_id)
        if found is None:
            found = tx.insert(NEW_SPACE_SQL, memory_space_id, now)
        tx.known[known] = found
    return found


def space_names(tx: Reading) -> list[str]:
    """The memory spaces that were ever written to, in the order in which they were."""
    return [row[0] for row in tx.rows(SPACE_NAMES_SQL)]


def find_space(tx: Reading, memory_space_id: str) -> int | None:
    """The space's key, or None when nothing was ever written to it."""
    return tx.value(SPACE_SQL, memory_space_id)


def ensure_conversation(tx: Writing, space: int, channel: str, conversation_id: str, now: int) -> ConversationRow:
    """The conversation, made on first use."""
    known = (CONVERSATION_SQL, space, channel, conversation_id)
    if (key := tx.known.get(known)) is not None and (grown := tx.known.get((GROW_CONVERSATION_SQL, key))) is not None:
        return grown
    found = find_conversation(tx, space, channel, conversation_id)
    if found is None:
        found = ConversationRow(tx.insert(NEW_CONVERSATION_SQL, space, channel, conversation_id, now), 0, 0)
    tx.known[known] = found.conversation
    tx.known[GROW_CONVERSATION_SQL, found.conversation] = found
    return found


def find_conversation(tx: Reading, space: int | None, channel: str, conversation_id: str) -> ConversationRow | None:
    """The conversation, or None.

    Raises:
        IntegrityViolation: its row is damaged, so that nothing can be written behind it.
    """
    found = tx.row(CONVERSATION_SQL, space, channel, conversation_id)
    if found is None:
        return None
    *numbers, latest = found
    known = numbers if latest is None else found
    check_row("conversation", f"{channel}/{conversation_id}", numbers=known)
    return ConversationRow(*found)


class KnownTurn(NamedTuple):
    """A turn that is there already."""

    turn: int
    sequence: int
    digest: bytes


def known_turn(tx: Reading, conversation: int, turn_id: str) -> KnownTurn | None:
    """The turn of that id, if it is there."""
    found = tx.row(KNOWN_TURN_SQL, conversation, turn_id)
    return None if found is None else KnownTurn(*found)


def known_turns(tx: Reading, conversation: int, turn_ids: Iterable[str]) -> dict[str, KnownTurn]:
    """The turns of these ids that are there, by id."""
    ids = list(turn_ids)
    if len(ids) == 1 or any("\0" in each for each in ids):  # SQLite's JSON ends a text there
        found = ((each, known_turn(tx, conversation, each)) for each in ids)
        return {each: turn for each, turn in found if turn is not None}
    rows = tx.rows(KNOWN_TURNS_SQL, conversation, json.dumps(ids))
    return {turn_id: KnownTurn(*row) for turn_id, *row in rows}


def kinds_of_turn(tx: Reading, turn: int) -> list[tuple[str, str]]:
    """(visibility, state) of a turn's messages, each pair once."""
    return [(row[0], row[1]) for row in tx.rows(KINDS_OF_TURN_SQL, turn)]


def add_turn(
    tx: Writing, where: ConversationRow, turn: PreparedTurn, door: str, now: int
) -> tuple[ConversationRow, list[tuple[int, PreparedMessage]]]:
    """As `add_turns`, of one."""
    return add_turns(tx, where, (turn,), door, now)


def add_turns(
    tx: Writing, where: ConversationRow, turns: Sequence[PreparedTurn], door: str, now: int
) -> tuple[ConversationRow, list[tuple[int, PreparedMessage]]]:
    """Write turns behind the conversation's last; returns the conversation as it is then, and each message's key.

    Raises:
        Conflict: a message id is taken in this conversation.
        IntegrityViolation: what the conversation says of its last turn and message is damaged.
    """
    first: int = tx.known.get(NEXT_MESSAGE_SQL) or tx.value(NEXT_MESSAGE_SQL)
    rows, standing = [], []
    for turn in turns:
        standing.append((where, first))
        latest = turn.at if where.latest is None else max(where.latest, turn.at)
        last = first + len(turn.messages) - 1
        seal = _seal(tx, where, turn, door, now)
        where = ConversationRow(
            where.conversation, where.last_sequence + 1, where.messages + len(turn.messages), latest
        )
        rows.append(
            (where.conversation, where.last_sequence, turn.turn_id, door, turn.at, now, turn.digest, seal, first, last,
             latest)
        )  # fmt: skip
        first = last + 1
    tx.known[NEXT_MESSAGE_SQL] = first
    try:
        key = tx.insert_rows(NEW_TURN_SQL, rows) - len(turns) + 1
    except apsw.ConstraintError as error:
        raise _miscounted(error) from None
    placed = [(key + number, stands, turn) for number, (turn, stands) in enumerate(zip(turns, standing, strict=True))]
    written = _add_messages(tx, placed, door)
    toc_outbox.note(tx, where.conversation, [message.at for _, message in written if message.visibility == "shared"])
    for key, (_, first_message), turn in placed:
        _add_beside(tx, key, first_message, turn)
    return where, written


Placed = tuple[int, tuple[ConversationRow, int], PreparedTurn]
"""A turn with its key, the conversation as it was before it, and the key of its first message."""


def _add_messages(tx: Writing, placed: Sequence[Placed], door: str) -> list[tuple[int, PreparedMessage]]:
    rows, bodies, places, written = [], [], [], []
    for turn_key, (where, first), turn in placed:
        for position, message in enumerate(turn.messages):
            key = first + position
            rows.append(
                (key, turn_key, where.conversation, position, where.messages + position + 1, message.message_id,
                 message.role, message.event_type, message.at, message.visibility, message.length, message.digest,
                 message.at != turn.at, *message.actor)
            )  # fmt: skip
            bodies.append((key, message.content))
            event_id = message.message_id if door == EVENT_DOOR else ""
            places.append(events.EventPlace(where.conversation, message.at, event_id, key))
            written.append((key, message))
    try:
        tx.insert_rows(NEW_MESSAGE_SQL, rows)
    except apsw.ConstraintError as error:
        _check_ids(tx, placed)
        raise _miscounted(error) from None
    tx.insert_rows(NEW_BODY_SQL, bodies)
    events.add(tx, places)
    return written


def _miscounted(error: apsw.ConstraintError) -> Exception:
    """What it means that the number of a new turn or message is taken, and its id is not; another error as it is."""
    if getattr(error, "extendedresult", 0) != apsw.SQLITE_CONSTRAINT_UNIQUE:
        return error
    return IntegrityViolation(
        reason="this conversation holds more turns or messages than it says: none can be added, nothing was written",
        hint="`beetle memory recover` counts them again; then try again",
    )


def _check_ids(tx: Reading, placed: Sequence[Placed]) -> None:
    """Raises Conflict where the id of one of the messages is taken, by another one of them too."""
    met: set[str] = set()
    for _, (where, _), turn in placed:
        for message in turn.messages:
            taken = tx.value(KNOWN_MESSAGE_SQL, where.conversation, message.message_id) is not None
            if taken or message.message_id in met:
                raise Conflict(
                    reason=f"message id {message.message_id!r} of turn {turn.turn_id!r} is taken in this conversation",
                    hint="message ids are unique within their conversation; give the message another id",
                    turn_id=turn.turn_id,
                    message_id=message.message_id,
                ) from None
            met.add(message.message_id)


def _add_beside(tx: Writing, key: int, first_message: int, turn: PreparedTurn) -> None:
    """Write the host refs and attrs of a turn."""
    for position, ref in enumerate(turn.refs):
        host_ref = tx.insert(NEW_REF_SQL, key, position, ref.kind, ref.ref_id, ref.relation, ref.visibility)
        if ref.label is not None:
            tx.run(NEW_LABEL_SQL, host_ref, ref.label)
    for position, attr in enumerate(turn.attrs):
        target = None if attr.message is None else first_message + attr.message
        tx.run(NEW_ATTR_SQL, key, target, position, attr.visibility, int(attr.export_allowed), attr.key, attr.value)


def _seal(tx: Writing, where: ConversationRow, turn: PreparedTurn, door: str, now: int) -> bytes | None:
    """The seal of a turn that is about to be written, over what `turn_seals` reads of it afterwards."""
    sealer = tx.sealer
    if sealer is None:
        return None
    conversation, sequence, ordinal = where.conversation, where.last_sequence + 1, where.messages + 1
    messages = [
        (conversation, position, ordinal + position, each.message_id, each.role, each.event_type, each.at,
         each.visibility, "live", each.length, each.digest, *each.actor, None)
        for position, each in enumerate(turn.messages)
    ]  # fmt: skip
    refs = [(at, ref.kind, ref.ref_id, ref.relation, ref.visibility, ref.label) for at, ref in enumerate(turn.refs)]
    attrs = [
        (at, each.message, int(each.message is None), each.visibility, int(each.export_allowed), each.key, each.value)
        for at, each in enumerate(turn.attrs)
    ]
    head = (conversation, sequence, turn.turn_id, door, turn.at, now, 0, turn.digest)
    return sealer.seal(turn_seals.NAME, turn_seals.values(head, messages, refs, attrs))


def grow_conversation(tx: Writing, grown: ConversationRow, times: Sequence[int]) -> None:
    """Count the turns that were added; `times` are theirs."""
    first, last = min(times), max(times)
    row = (len(times), grown.last_sequence, grown.messages, first, first, last, last, grown.conversation)
    tx.run_known(GROW_CONVERSATION_SQL, *row)
    tx.known[GROW_CONVERSATION_SQL, grown.conversation] = grown


def add_speakers(tx: Writing, conversation: int, speakers: Iterable[tuple[str, str]]) -> None:
    """Note (visibility, speaker) pairs of a conversation, mostly of those that have spoken before."""
    for each in speakers:
        known = (NEW_SPEAKER_SQL, conversation, *each)
        if known not in tx.known:
            tx.run_known(NEW_SPEAKER_SQL, conversation, *each)
            tx.known[known] = True


def remember_conversation(tx: Writing, who: tuple[str, int, str, str, str], conversation: int) -> None:
    """Keep what (principal, space, agent, channel, chat) last committed to, which is mostly what it was before."""
    known = (REMEMBERED_SQL, *who)
    before = tx.known.get(known)
    if before is None:
        before = tx.value(REMEMBERED_SQL, *who)
    if before != conversation:
        tx.put_off(REMEMBER_SQL, *who, conversation)
    tx.known[known] = conversation


def forget_conversations(tx: Writing, principal: str) -> None:
    """Drop what a principal last committed to: whoever has its name from now on is another."""
    tx.run(FORGET_CONVERSATIONS_SQL, principal)


def refs_of_turns(tx: Reading, turns: Iterable[int]) -> Mapping[int, list[Row]]:
    """(kind, ref_id, relation, visibility, whether it has a label) of the host refs of turns, by turn."""
    return by_turn(tx.rows(REFS_OF_TURNS_SQL, json.dumps(list(turns))))


def holds_content(tx: Reading, turn: int) -> bool:
    """Whether a turn has a body, a label or an attr."""
    return bool(tx.value(HOLDS_CONTENT_SQL, turn))


def erase_turns(tx: Writing, turns: Sequence[int], messages: Sequence[int]) -> None:
    """Remove the content of turns themselves: these bodies, labels, attrs but those of messages that stay."""
    tx.run(ERASE_BODIES_SQL, json.dumps(messages))
    tx.run(ERASE_LABELS_SQL, json.dumps(turns))
    tx.run(ERASE_ATTRS_SQL, json.dumps(turns))


def place_of_label(tx: Reading, space: int, host_ref: int) -> tuple[int, int] | None:
    """(turn, position) of a host ref that has a label."""
    found = tx.row(LABEL_PLACE_SQL, host_ref, space)
    return None if found is None else (found[0], found[1])


def place_of_attr(tx: Reading, space: int, attr: int) -> tuple[int, int] | None:
    """(turn, position) of an attr."""
    found = tx.row(ATTR_PLACE_SQL, attr, space)
    return None if found is None else (found[0], found[1])


def erase_label(tx: Writing, host_ref: int) -> bool:
    """Remove the label of a host ref; whether it has one."""
    return tx.value(ERASE_LABEL_SQL, host_ref) is not None


def erase_attr(tx: Writing, attr: int) -> bool:
    """Remove an attr; whether it is there."""
    return tx.value(ERASE_ATTR_SQL, attr) is not None
