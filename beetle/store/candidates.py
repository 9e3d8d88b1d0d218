"""Candidates that were deferred: what they say, what they wait for; and the evidence that any candidate cites."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from beetle.contracts.refs import EvidenceRef, evidence_named
from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Level
from beetle.store.turn_messages import OF_TURN


class Waiting(NamedTuple):
    """A deferred candidate. `at` in microseconds; `by_operator`: whether an operator wrote it.

    Of private material `record_id` names the sealed text, and no digest is kept: the store's own key, which digests
    are made with, stands in the store. A private fact's text is sealed here, and its digests are keyed with its space's
    sealed key. `level` says who may know of it; `bytes` is what it takes of the queue's budget.
    """

    candidate: int
    candidate_id: str
    target: str
    kind: str
    topic_mac: bytes | None
    content_mac: bytes | None
    privacy: str
    authority: str
    reason: str
    chat_id: str
    principal: str
    confidence: float | None
    extractor: str | None
    evidence: tuple[str, ...]
    record_id: str | None
    at: int
    by_operator: bool
    waiting_id: str
    level: Level
    bytes: int


class Body(NamedTuple):
    """What a candidate says."""

    topic: str
    content: str
    keywords: tuple[str, ...]


NOTHING = Body("", "", ())


class Fill(NamedTuple):
    """How much waits in a part of a queue."""

    candidates: int
    bytes: int


class MessageRow(NamedTuple):
    """A message that an evidence ref names. `by_subject`: nothing says that it is about another than who speaks."""

    turn: int
    role: str
    visibility: str
    state: str
    by_subject: bool


class SaidRow(NamedTuple):
    """What a message that an evidence ref names says; `content` is None where it was erased."""

    role: str
    visibility: str
    state: str
    speaker: str | None
    content: str | None
    digest: bytes
    by_subject: bool


COLUMNS = """
SELECT candidate, candidate_id, target, kind, topic_mac, content_mac, privacy, authority, reason, chat_id, principal,
  confidence, extractor, evidence, record_id, at, by_operator, waiting_id, level, bytes
FROM candidate
"""
NEW_SQL = """
INSERT INTO candidate (space, candidate_id, target, kind, topic_mac, content_mac, privacy, authority, reason, chat_id,
  principal, confidence, extractor, evidence, record_id, at, by_operator, waiting_id, level, bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BODY_SQL = "INSERT INTO candidate_body (candidate, topic, content, keywords, sealed) VALUES (?, ?, ?, ?, ?)"
SAME_SQL = (
    COLUMNS
    + """
WHERE space = ? AND target = ? AND kind = ? AND topic_mac IS ? AND content_mac IS ? AND privacy = ? AND authority = ?
  AND evidence = ? AND reason = ? AND chat_id = ? AND candidate_id = ? AND record_id IS ?
"""
)
WAITING_SQL = COLUMNS + "WHERE space = ? AND reason = ? ORDER BY candidate"
WAITING_ON_TOPIC_SQL = (
    COLUMNS + "WHERE space = ? AND target = ? AND kind = ? AND topic_mac = ? AND reason = ? ORDER BY candidate"
)
WAITING_SAYING_SQL = (
    COLUMNS
    + "WHERE space = ? AND target = ? AND kind = ? AND topic_mac IS NULL AND content_mac = ? AND reason = ? "
    + "ORDER BY candidate"
)
WAITING_IN_SQL = COLUMNS + "WHERE record_id = ? AND space = ? AND reason = ? ORDER BY candidate"
EXPIRED_SQL = COLUMNS + "WHERE space = ? AND at < ? ORDER BY at LIMIT ?"
EVERY_SQL = COLUMNS + "WHERE space = ? ORDER BY candidate"
BODY_SQL = """
SELECT topic, content, keywords, sealed, former_identity IS NOT NULL FROM candidate_body WHERE candidate = ?
"""
NAMED_SQL = COLUMNS + "WHERE space = ? AND waiting_id = ?"
FILL_SQL = "SELECT count(*), CAST(total(bytes) AS INTEGER) FROM candidate WHERE space = ? AND level = ?"
OLDEST_SQL = COLUMNS + "WHERE space = ? AND level = ? AND authority = ? ORDER BY at LIMIT ?"
PAGE_SQL = (
    COLUMNS
    + """
WHERE space = ?1 AND candidate > ?2 AND (?3 IS NULL OR reason = ?3)
  AND (level = 'shared' OR (level = 'private' AND (?4 OR principal = ?5)) OR (level = 'sealed' AND ?6))
ORDER BY candidate LIMIT ?7
"""
)
COUNT_SQL = """
SELECT count(*) FROM candidate
WHERE space = ?1 AND (?2 IS NULL OR reason = ?2)
  AND (level = 'shared' OR (level = 'private' AND (?3 OR principal = ?4)) OR (level = 'sealed' AND ?5))
"""
HOLDING_SQL = COLUMNS + "WHERE record_id = ? AND space = ? ORDER BY candidate"
SEALED_TEXTS_SQL = """
SELECT s.memory_space_id, k.wrapped, c.waiting_id, w.sealed
FROM candidate_body w JOIN candidate c ON c.candidate = w.candidate JOIN space s ON s.space = c.space
LEFT JOIN space_key k ON k.space = c.space
WHERE w.sealed IS NOT NULL AND w.former_identity IS NULL ORDER BY w.candidate
"""
BY_KEY_SQL = COLUMNS + "WHERE candidate = ? AND space = ?"
REASON_SQL = "UPDATE candidate SET reason = ? WHERE candidate = ?"
REMOVE_SQLS = ("DELETE FROM candidate_body WHERE candidate = ?", "DELETE FROM candidate WHERE candidate = ?")
HOLDS_SQL = "SELECT 1 FROM candidate WHERE record_id = ? AND space = ?"
STILL_SQL = "SELECT 1 FROM candidate WHERE candidate = ?"
MESSAGES_SQL = f"""
SELECT t.turn, m.role, m.visibility, m.state,
  coalesce(m.actor_subject_id = coalesce(m.subject_id, m.mounted_subject_id), 1)
FROM conversation c JOIN turn t ON t.conversation = c.conversation CROSS JOIN message m ON {OF_TURN}
WHERE c.space = ?1 AND c.channel_id = ?2 AND c.conversation_id = ?3 AND t.turn_id = ?4
  AND (?5 IS NULL OR m.message_id = ?5)
ORDER BY m.position
"""  # noqa: S608 - our own text

WORDS_SQL = f"""
SELECT m.role, m.visibility, m.state, m.speaker, b.content, m.digest,
  coalesce(m.actor_subject_id = coalesce(m.subject_id, m.mounted_subject_id), 1)
FROM conversation c JOIN turn t ON t.conversation = c.conversation CROSS JOIN message m ON {OF_TURN}
LEFT JOIN body b ON b.message = m.message
WHERE c.space = ?1 AND c.channel_id = ?2 AND c.conversation_id = ?3 AND t.turn_id = ?4
  AND (?5 IS NULL OR m.message_id = ?5)
ORDER BY m.position
"""  # noqa: S608 - our own text


def words_of_ref(tx: Reading, space: int, ref: EvidenceRef) -> list[SaidRow]:
    """What the messages say that an evidence ref names."""
    return [SaidRow(*row) for row in tx.rows(WORDS_SQL, space, *ref)]


def messages_of_ref(tx: Reading, space: int, ref: EvidenceRef) -> list[MessageRow]:
    """The messages that an evidence ref names: of a turn all of them, none when it is not in this space."""
    return [MessageRow(*row) for row in tx.rows(MESSAGES_SQL, space, *ref)]


def cites_erased(tx: Reading, space: int, text: str) -> bool:
    """Whether a citation names a turn, or a message of one, of which content was erased."""
    ref = evidence_named(text)
    if ref is None:
        return False
    return any(each.state == "deleted" for each in messages_of_ref(tx, space, ref._replace(message_id=None)))


def waits_already(tx: Reading, space: int, waiting: Waiting) -> Waiting | None:
    """The very same candidate that waits for the very same thing already, if one does."""
    same = (
        space, waiting.target, waiting.kind, waiting.topic_mac, waiting.content_mac, waiting.privacy,
        waiting.authority, _refs(waiting), waiting.reason, waiting.chat_id, waiting.candidate_id, waiting.record_id,
    )  # fmt: skip
    found = tx.row(SAME_SQL, *same)
    return None if found is None else _waiting(found)


def defer(tx: Writing, space: int, waiting: Waiting, body: Body | None, sealed: bytes | None = None) -> int:
    """Put a candidate into the queue; its key is set here. `body` is None for what is sealed elsewhere, and empty for
    what is `sealed` here.
    """
    values = waiting._replace(evidence=_refs(waiting))[1:]  # type: ignore[arg-type] - as the column holds it
    key = tx.insert(NEW_SQL, space, *values)
    if body is not None:
        tx.run(NEW_BODY_SQL, key, body.topic, body.content, json.dumps(body.keywords, ensure_ascii=False), sealed)
    return key


def _refs(waiting: Waiting) -> str:
    return json.dumps(waiting.evidence, ensure_ascii=False)


def waiting_for(tx: Reading, space: int, reason: str) -> list[Waiting]:
    """The candidates that wait for one thing, the oldest first."""
    return [_waiting(row) for row in tx.rows(WAITING_SQL, space, reason)]


def waiting_on(
    tx: Reading, space: int, reason: str, target: str, kind: str, topic_mac: bytes | None, content_mac: bytes | None
) -> list[Waiting]:
    """Those of a topic, the oldest first; without a topic, those without one that say the same."""
    if topic_mac is not None:
        rows = tx.rows(WAITING_ON_TOPIC_SQL, space, target, kind, topic_mac, reason)
    else:
        rows = tx.rows(WAITING_SAYING_SQL, space, target, kind, content_mac, reason)
    return [_waiting(row) for row in rows]


def waiting_in(tx: Reading, space: int, reason: str, record_id: str) -> list[Waiting]:
    """Those whose text is in a private item, the oldest first."""
    return [_waiting(row) for row in tx.rows(WAITING_IN_SQL, record_id, space, reason)]


def expired(tx: Reading, space: int, before: int, most: int) -> list[Waiting]:
    """At most `most` candidates that have waited since before a time, the oldest first."""
    return [_waiting(row) for row in tx.rows(EXPIRED_SQL, space, before, most)]


def citing(tx: Reading, space: int, turn_refs: Collection[str]) -> list[Waiting]:
    """Those that cite any of these turns or a message of one, the oldest first. Looks at the whole queue of a space."""
    return [each for each in every(tx, space) if any(_turn_of(ref) in turn_refs for ref in each.evidence)]


def every(tx: Reading, space: int) -> list[Waiting]:
    """The whole queue of a space, the oldest first."""
    return [_waiting(row) for row in tx.rows(EVERY_SQL, space)]


def by_key(tx: Reading, space: int, candidate: int) -> Waiting | None:
    """A candidate that waits."""
    found = tx.row(BY_KEY_SQL, candidate, space)
    return None if found is None else _waiting(found)


def _turn_of(ref: str) -> str:
    """The ref of the turn: channel, conversation and turn id are its first three segments."""
    return "/".join(ref.split("/")[:3])


class Said(NamedTuple):
    """What a candidate says, and the sealed text where it is kept so. `closed`: a former identity has sealed it."""

    body: Body
    sealed: bytes | None
    closed: bool


def body_of(tx: Reading, candidate: int) -> Said | None:
    """What a candidate says; None for what is sealed elsewhere."""
    found = tx.row(BODY_SQL, candidate)
    return None if found is None else Said(Body(found[0], found[1], texts(found[2])), found[3], bool(found[4]))


def named(tx: Reading, space: int | None, waiting_id: str) -> Waiting | None:
    """The candidate of an id."""
    found = tx.row(NAMED_SQL, space, waiting_id)
    return None if found is None else _waiting(found)


def fill(tx: Reading, space: int, level: Level) -> Fill:
    """How much waits of a level."""
    return Fill(*(tx.row(FILL_SQL, space, level) or (0, 0)))


def oldest(tx: Reading, space: int, level: Level, authority: str, most: int) -> list[Waiting]:
    """The candidates of a level and an authority, the oldest first."""
    return [_waiting(row) for row in tx.rows(OLDEST_SQL, space, level, authority, most)]


class Known(NamedTuple):
    """Whose candidates are meant beside the shared ones: `private` ones, or those of them that `writer` wrote, and
    `sealed` ones. `reason`: only those that wait for it.
    """

    private: bool
    writer: str | None
    sealed: bool
    reason: str | None = None

    def has(self, row: Waiting) -> bool:
        """Whether a candidate is meant, whatever it waits for."""
        own = row.level == "private" and row.principal == self.writer
        return own or {"shared": True, "private": self.private, "sealed": self.sealed}[row.level]


def page(tx: Reading, space: int | None, known: Known, after: int, limit: int) -> list[Waiting]:
    """Candidates behind the key `after`, in the order in which they came."""
    who = (known.private, known.writer, known.sealed)
    return [_waiting(row) for row in tx.rows(PAGE_SQL, space, after, known.reason, *who, limit)]


def count(tx: Reading, space: int | None, known: Known) -> int:
    """How many candidates are meant."""
    return tx.value(COUNT_SQL, space, known.reason, known.private, known.writer, known.sealed)


def holding(tx: Reading, space: int, record_id: str) -> list[Waiting]:
    """The candidates whose text is in that private item."""
    return [_waiting(row) for row in tx.rows(HOLDING_SQL, record_id, space)]


class SealedText(NamedTuple):
    """What is needed to open one text of any space; `wrapped` is None where its space has no key."""

    memory_space_id: str
    wrapped: bytes | None
    waiting_id: str
    sealed: bytes


def sealed_texts(tx: Reading) -> Iterator[SealedText]:
    """Every text that is sealed in the queue, as `store.verify` opens it."""
    return (SealedText(*row) for row in tx.rows(SEALED_TEXTS_SQL))


def wait_for(tx: Writing, candidate: int, reason: str) -> None:
    """Have a candidate wait for something else."""
    tx.run(REASON_SQL, reason, candidate)


def remove(tx: WriteTransaction, candidate: int) -> None:
    """Take a candidate out of the queue, with what it says."""
    for sql in REMOVE_SQLS:
        tx.run(sql, candidate)
    tx.expect_erasure()


def holds(tx: Reading, space: int, record_id: str) -> bool:
    """Whether a candidate of the queue has its text in that private item."""
    return tx.value(HOLDS_SQL, record_id, space) is not None


def still_waits(tx: Reading, candidate: int) -> bool:
    """Whether a candidate is in the queue."""
    return tx.value(STILL_SQL, candidate) is not None


def _waiting(row: Row) -> Waiting:
    return Waiting._make((*row[:13], texts(row[13]), *row[14:]))
