"""Reading evidence. What comes back is raw: the redaction gate decides what a view may see of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import starmap
from typing import Any, cast

from beetle.contracts.codec import UNSET, fields_of, format_us
from beetle.contracts.tool_parts import Parts, is_tail, parts_of
from beetle.contracts.transcript import (
    ActorView,
    AttrView,
    ConversationSummary,
    DeletedContent,
    HostRefView,
    ToolCallView,
    ToolResultView,
    TranscriptMessage,
    TranscriptTurn,
)
from beetle.contracts.turns import EVENT_NUMBERS, EVENT_TYPES
from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import IS_TIME, check_row, known_time
from beetle.store.engine.transaction import Reading, Row
from beetle.store.turn_messages import OF_ONE_TURN, OF_TURN

Proof = Callable[[tuple[int, int], bytes, "str | None"], "tuple[Any, bool]"]
"""By a message's key and the time of its commit, its digest and its content: how its digest is shown, if it is (the one
that is kept is shown to nobody), and whether the content is what was committed."""


def unproven(record: tuple[int, int], digest: bytes, content: str | None) -> tuple[Any, bool]:
    """For whoever only counts."""
    del record, digest, content
    return UNSET, True


TURN_COLUMNS = """
SELECT turn, turn_id, sequence, at, archived FROM turn
WHERE conversation = ? AND sequence BETWEEN ? AND ? ORDER BY sequence
"""
TURNS_SQL = TURN_COLUMNS + "LIMIT ?"
TURNS_BACK_SQL = TURN_COLUMNS + "DESC LIMIT ?"
SIZE_COLUMNS = f"""
SELECT (SELECT coalesce(sum(coalesce(octet_length(b.content), 0) + length(m.message_id)), 0)
    FROM message m LEFT JOIN body b ON b.message = m.message WHERE {OF_TURN})
  + (SELECT coalesce(sum(length(a.value)), 0) FROM attr a WHERE a.turn = t.turn)
FROM turn t WHERE t.conversation = ? AND t.sequence BETWEEN ? AND ? ORDER BY t.sequence
"""  # noqa: S608 - our own text
SIZES_SQL = SIZE_COLUMNS + "LIMIT ?"
SIZES_BACK_SQL = SIZE_COLUMNS + "DESC LIMIT ?"
MESSAGES_SQL = f"""
SELECT t.turn, m.message, m.message_id, m.role, m.at, m.visibility, m.state, m.length, m.digest,
  t.committed_at, m.speaker, m.subject_id, m.actor_subject_id, m.mounted_subject_id, m.agent_id, m.trigger_source,
  b.content, l.at, l.principal, m.event_type
{OF_ONE_TURN} AND +m.conversation = t.conversation
LEFT JOIN body b ON b.message = m.message
LEFT JOIN transcript_lifecycle l
  ON l.lifecycle = m.lifecycle AND l.conversation = m.conversation AND m.state = 'deleted'
WHERE t.conversation = ? AND t.sequence BETWEEN ? AND ? ORDER BY t.sequence, m.position
"""
REFS_SQL = """
SELECT t.turn, r.kind, r.ref_id, r.relation, l.label, r.visibility
FROM turn t JOIN host_ref r ON r.turn = t.turn LEFT JOIN host_ref_label l ON l.host_ref = r.host_ref
WHERE t.conversation = ? AND t.sequence BETWEEN ? AND ? ORDER BY t.sequence, r.position
"""
ATTRS_SQL = """
SELECT t.turn, a.key, a.value, m.message_id, a.visibility, a.export_allowed
FROM turn t JOIN attr a ON a.turn = t.turn LEFT JOIN message m ON m.message = a.message AND +m.turn = t.turn
WHERE t.conversation = ? AND t.sequence BETWEEN ? AND ? ORDER BY t.sequence, a.position
"""
# Two queries: of both at once SQLite reads every turn.
EDGES_SQL = """
SELECT (SELECT min(sequence) FROM turn WHERE conversation = ?1),
  (SELECT max(sequence) FROM turn WHERE conversation = ?1)
"""


def turns_forward(
    tx: Reading, conversation: int, first: int, last: int, limit: int, proof: Proof = unproven
) -> list[TranscriptTurn]:
    """Up to `limit` turns with a sequence from `first` to `last`, in sequence order."""
    return _complete(tx, conversation, list(tx.rows(TURNS_SQL, conversation, first, last, limit)), proof)


def turns_backward(
    tx: Reading, conversation: int, first: int, last: int, limit: int, proof: Proof = unproven
) -> list[TranscriptTurn]:
    """The last `limit` turns with a sequence from `first` to `last`, in sequence order."""
    rows = list(tx.rows(TURNS_BACK_SQL, conversation, first, last, limit))[::-1]
    return _complete(tx, conversation, rows, proof)


def how_many_fit(
    tx: Reading, conversation: int, between: tuple[int, int], limit: int, most: int, *, backwards: bool = False
) -> tuple[int, bool]:
    """How many turns, at most `limit`, have contents and ids of `most` characters together, and whether there are more
    of them; the first one fits always."""
    left, fitting = most, 0
    for (size,) in tx.rows(SIZES_BACK_SQL if backwards else SIZES_SQL, conversation, *between, limit):
        left -= size
        if left < 0 and fitting:
            return fitting, True
        fitting += 1
    return fitting, False


def edges(tx: Reading, conversation: int) -> tuple[int, int] | None:
    """Sequence of the first and the last turn, or None when there is none."""
    found = tx.row(EDGES_SQL, conversation)
    if found is None or found[0] is None:
        return None
    check_row("conversation", conversation, numbers=found)
    return found[0], found[1]


def _complete(tx: Reading, conversation: int, rows: list[Row], proof: Proof) -> list[TranscriptTurn]:
    if not rows:
        return []
    for turn, turn_id, sequence, at, _ in rows:
        check_row("turn", turn, texts=(turn_id,), numbers=(sequence,), times=(at,))
    span = (conversation, rows[0][2], rows[-1][2])
    messages = _grouped(tx.rows(MESSAGES_SQL, *span), partial(_message, proof))
    refs = _grouped(tx.rows(REFS_SQL, *span), _ref)
    attrs = _grouped(tx.rows(ATTRS_SQL, *span), _attr)
    return [
        TranscriptTurn(
            turn_id=turn_id,
            sequence=sequence,
            at=format_us(at),
            archived=bool(archived),
            messages=tuple(messages.get(turn, ())),
            host_refs=tuple(refs.get(turn, ())),
            attrs=tuple(attrs.get(turn, ())),
        )
        for turn, turn_id, sequence, at, archived in rows
    ]


def _grouped(rows: Iterable[Row], build: Any) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    for turn, *rest in rows:
        groups.setdefault(turn, []).append(build(*rest))
    return groups


def _message(proof: Proof, *row: Any) -> TranscriptMessage:
    message, message_id, role, at, visibility, state, length, digest, committed_at, *rest = row
    *actor, content, deleted_at, deleted_by, event_type = rest
    check_row("message", message, texts=(message_id, role, visibility), numbers=(length,), times=(at,))
    shown, sound = proof((message, committed_at), digest, content)
    said, (calls, result) = _parted(content, length) if sound else (None, ((), None))
    gone_at = known_time(deleted_at)
    deletion = UNSET if gone_at is None else DeletedContent(at=gone_at, by=deleted_by)
    return TranscriptMessage(
        message_id=message_id,
        role=role,
        at=format_us(at),
        visibility=visibility,
        state=state,
        actor=ActorView(**dict(zip(ActorView.__struct_fields__, actor, strict=True))) if any(actor) else None,
        content=UNSET if said is None else said,
        tool_calls=tuple(ToolCallView(**fields_of(each)) for each in calls) or UNSET,
        tool_result=UNSET if result is None else ToolResultView(**fields_of(result)),
        event_type=EVENT_TYPES[event_type - 1] if event_type in EVENT_NUMBERS else UNSET,
        length=length,
        digest=shown,
        deletion=deletion,
    )


def _parted(text: str | None, length: int) -> tuple[str | None, Parts]:
    """A stored text as its content and what stands behind it; whole where no such part was written, as repair tells."""
    if text is None or len(text) == length or not is_tail(text[length:]):
        return text, ((), None)
    return text[:length], parts_of(text[length:])


def _ref(kind: str, ref_id: str, relation: str | None, label: str | None, visibility: str) -> HostRefView:
    return HostRefView(kind=kind, ref_id=ref_id, relation=relation, label=label, visibility=_names(visibility))


def _attr(key: str, value: str, message_id: str | None, visibility: str, export_allowed: int) -> AttrView:
    return AttrView(
        key=key, value=value, message_id=message_id, visibility=_names(visibility), export_allowed=bool(export_allowed)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


CONVERSATIONS_SQL = """
SELECT conversation, channel_id, conversation_id, turns, first_at, last_at FROM conversation
WHERE space = ? AND conversation < ?
  AND (? IS NULL OR instr(lower(channel_id || '/' || conversation_id), lower(?)))
  AND last_at >= ? AND first_at <= ?
ORDER BY conversation DESC LIMIT ?
"""
SPEAKERS_SQL = """
SELECT DISTINCT speaker FROM conversation_speaker
WHERE conversation = ? AND visibility IN (SELECT value FROM json_each(?)) ORDER BY speaker LIMIT ?
"""
SPACE_SPEAKERS_SQL = """
SELECT DISTINCT s.speaker FROM conversation c JOIN conversation_speaker s ON s.conversation = c.conversation
WHERE c.space = ? AND s.visibility IN (SELECT value FROM json_each(?)) LIMIT ?
"""
SPEAKERS_SHOWN = 16
SPEAKERS_KNOWN = 512
"""Most speakers that recall tells from other words."""


def conversations(
    tx: Reading, space: int, below: int, query: str | None, since: int, until: int, limit: int
) -> list[Row]:
    """(key, channel, id, turns, first_at, last_at), the most recently begun first, with keys below `below`."""
    return list(tx.rows(CONVERSATIONS_SQL, space, below, query, query, since, until, limit))


def conversation_summary(tx: Reading, row: Row, visible: Sequence[str]) -> ConversationSummary:
    """One row of `conversations` with the speakers of the messages that the caller may see."""
    key, channel, conversation_id, turns, first, last = row
    times = [each for each in (first, last) if each is not None]
    check_row("conversation", key, texts=(channel, conversation_id), numbers=(turns,), times=times)
    return ConversationSummary(
        channel_id=channel,
        conversation_id=conversation_id,
        turns=turns,
        first_at=None if first is None else format_us(first),
        last_at=None if last is None else format_us(last),
        speakers=_speaker_names(tx, SPEAKERS_SQL, key, visible, SPEAKERS_SHOWN),
    )


def speakers(tx: Reading, space: int, conversation: int | None, visible: Sequence[str]) -> tuple[str, ...]:
    """Who spoke, in a conversation or in the whole space, in messages that the caller may see."""
    if conversation is not None:
        return _speaker_names(tx, SPEAKERS_SQL, conversation, visible, SPEAKERS_KNOWN)

    def read() -> tuple[str, ...]:
        return _speaker_names(tx, SPACE_SPEAKERS_SQL, space, visible, SPEAKERS_KNOWN)

    return read() if tx.postings is None else tx.postings.speakers.of(tx, (space, tuple(visible)), read)


def _speaker_names(tx: Reading, sql: str, key: int, visible: Sequence[str], limit: int) -> tuple[str, ...]:
    """Names of speakers; one that is no text is a damaged row's."""
    return tuple(name for (name,) in tx.rows(sql, key, json.dumps(visible), limit) if isinstance(name, str))


class EvidenceRow(NamedTuple):
    """A message as recall shows it. Times in microseconds."""

    message: int
    conversation: int
    channel_id: str
    conversation_id: str
    turn_id: str
    archived: int
    ordinal: int
    message_id: str
    role: str
    at: int
    visibility: str
    state: str
    speaker: str | None
    content: str
    digest_hex: str

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.digest_hex)


class SaidRow(NamedTuple):
    """A message as recall weighs it: of most it needs no more. Times in microseconds."""

    message: int
    conversation: int
    ordinal: int
    at: int
    visibility: str
    speaker: str | None
    archived: int
    content: str
    digest_hex: str

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.digest_hex)


EVIDENCE_COLUMNS = """
m.message, m.conversation, c.channel_id, c.conversation_id, t.turn_id, t.archived IS 1, m.ordinal, m.message_id,
  m.role, m.at, m.visibility, m.state, m.speaker, b.content, hex(m.digest)
"""
EVIDENCE_TABLES = """
FROM message m JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
JOIN conversation c ON c.conversation = m.conversation
JOIN body b ON b.message = m.message
"""
SAID_COLUMNS = """
m.message, m.conversation, m.ordinal, m.at, m.visibility, m.speaker, t.archived IS 1, b.content, hex(m.digest)
"""
# One flipped bit of a record may make a value one of another type, whatever the schema says. Such a message is damaged,
# which `store.verify` names: it is left out, and takes no other one with it.
READABLE = f"""
AND typeof(m.ordinal) = 'integer' AND {IS_TIME.format(column="m.at")}
AND typeof(m.visibility) = 'text' AND typeof(m.speaker) IN ('text', 'null') AND typeof(b.content) = 'text'
"""
NAMED = """
AND typeof(c.channel_id) = 'text' AND typeof(c.conversation_id) = 'text' AND typeof(t.turn_id) = 'text'
AND typeof(m.message_id) = 'text' AND typeof(m.role) = 'text'
"""
BY_KEY = f"WHERE m.message IN (SELECT value FROM json_each(?)) AND m.state = 'live' {READABLE}"  # noqa: S608 - our own text
SAID_BY_KEY = f"""
FROM message m JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation JOIN body b ON b.message = m.message
JOIN conversation c ON c.conversation = m.conversation
{BY_KEY} AND c.space = ?
"""
SAID_BY_PLACE = f"""
FROM json_each(?) j
CROSS JOIN message m ON m.conversation = j.value ->> 0 AND m.ordinal = j.value ->> 1
JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
JOIN body b ON b.message = m.message
WHERE m.state = 'live' {READABLE}
"""
ONE_BY_ONE = f"SELECT {EVIDENCE_COLUMNS}"
BY_KEY_SQL = ONE_BY_ONE + EVIDENCE_TABLES + BY_KEY + NAMED
BY_KEY_AT_ONCE_SQL = f"SELECT json_group_array(json_array({EVIDENCE_COLUMNS}))" + EVIDENCE_TABLES + BY_KEY + NAMED
SAID_ONE_BY_ONE = f"SELECT {SAID_COLUMNS}"
SAID_AT_ONCE = f"SELECT json_group_array(json_array({SAID_COLUMNS}))"
SAID_BY_KEY_SQL = SAID_ONE_BY_ONE + SAID_BY_KEY
SAID_BY_KEY_AT_ONCE_SQL = SAID_AT_ONCE + SAID_BY_KEY
SAID_BY_PLACE_SQL = SAID_ONE_BY_ONE + SAID_BY_PLACE
SAID_BY_PLACE_AT_ONCE_SQL = SAID_AT_ONCE + SAID_BY_PLACE
RECENT = f"""
WHERE m.conversation = ? AND m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?)) {READABLE} {NAMED}
ORDER BY m.ordinal DESC LIMIT ?
"""  # noqa: S608 - our own text
RECENT_SQL = ONE_BY_ONE + EVIDENCE_TABLES + RECENT
HIDDEN_SQL = """
SELECT count(*) FROM (
  SELECT visibility, state FROM message WHERE conversation = ? ORDER BY ordinal DESC LIMIT ?
) WHERE state <> 'live' OR visibility NOT IN (SELECT value FROM json_each(?))
"""
REMEMBERED_SQL = """
SELECT c.conversation, c.channel_id, c.conversation_id FROM remembered_conversation r
JOIN conversation c ON c.conversation = r.conversation AND c.space = r.space
WHERE r.principal = ? AND r.space = ? AND r.agent_id = ? AND r.channel = ? AND r.chat_id = ?
"""
CLAIMED_ELSEWHERE_SQL = """
SELECT 1 FROM remembered_conversation WHERE space = ? AND channel = ? AND chat_id = ? AND conversation <> ? LIMIT 1
"""
HAS_LIVE_SQL = """
SELECT EXISTS (
  SELECT 1 FROM (SELECT state FROM message WHERE conversation = ? ORDER BY ordinal DESC LIMIT ?) WHERE state = 'live'
)
"""
LATELY = 1_000
"""A conversation of whose so many newest messages none is live counts as withheld."""


def evidence_by_key(tx: Reading, keys: Iterable[int]) -> list[EvidenceRow]:
    """The live messages with these keys."""
    return [EvidenceRow(*row) for row in tx.at_once(BY_KEY_AT_ONCE_SQL, BY_KEY_SQL, json.dumps(list(keys)))]


def said_by_key(tx: Reading, space: int | None, keys: Iterable[int]) -> list[SaidRow]:
    """What the live messages of a space with these keys say. The index that gave the keys may have been tampered with:
    of another space it says nothing."""
    found = tx.at_once(SAID_BY_KEY_AT_ONCE_SQL, SAID_BY_KEY_SQL, json.dumps(list(keys)), space)
    return list(starmap(SaidRow, found))


def said_by_place(tx: Reading, places: Iterable[tuple[int, int]]) -> list[SaidRow]:
    """What the live messages at these (conversation, ordinal) places say."""
    return list(starmap(SaidRow, tx.at_once(SAID_BY_PLACE_AT_ONCE_SQL, SAID_BY_PLACE_SQL, json.dumps(list(places)))))


def recent_evidence(tx: Reading, conversation: int, visible: Sequence[str], limit: int) -> list[EvidenceRow]:
    """The newest live messages of a conversation that the caller may see, newest first."""
    return [EvidenceRow(*row) for row in tx.rows(RECENT_SQL, conversation, json.dumps(visible), limit)]


def hidden_among_recent(tx: Reading, conversation: int, visible: Sequence[str], limit: int) -> int:
    """How many of the newest messages of a conversation the caller may not see."""
    return tx.value(HIDDEN_SQL, conversation, limit, json.dumps(visible))


def remembered(tx: Reading, who: tuple[str, int, str, str, str]) -> tuple[int, str, str] | None:
    """Key, channel and id of the conversation that (principal, space, agent, channel, chat) last committed to."""
    return cast("tuple[int, str, str] | None", tx.row(REMEMBERED_SQL, *who))


def claimed_elsewhere(tx: Reading, space: int, channel: str, chat_id: str, conversation: int) -> bool:
    """Whether anyone in the space last committed to another conversation under that chat id."""
    return tx.value(CLAIMED_ELSEWHERE_SQL, space, channel, chat_id, conversation) is not None


def has_live(tx: Reading, conversation: int) -> bool:
    """Whether any of a conversation's newest messages is live."""
    return bool(tx.value(HAS_LIVE_SQL, conversation, LATELY))
