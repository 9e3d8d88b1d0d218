"""Evidence: what was said, message by message."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.codec import UNSET
from beetle.contracts.common import ConversationRef
from beetle.contracts.continuity_records import MessageRecord
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import EvidenceRef, Ref, format_ref
from beetle.contracts.tool_parts import tail_of
from beetle.contracts.turns import EVENT_TYPES, ActorAttribution, HostOpaqueRef, MessageDelta
from beetle.domain.digest import content_digest
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import ParsedQuery, evidence_fields
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked, neighbours_wanted
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import evidence_forgetting, gather_evidence
from beetle.runtime.planes.plane import (
    Asked,
    Erased,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Search,
    Texts,
    Verified,
)
from beetle.runtime.planes.proof import is_content, is_whole, whole
from beetle.store import evidence, plane_evidence, recall_index, repair, skills, transcripts
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.progress import EVERY
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.evidence import PreparedMessage, PreparedRef
from beetle.store.indexed import INDEXED, IndexedText
from beetle.store.recall_index import Entry
from beetle.store.repair import Record
from beetle.store.transcripts import EvidenceRow, SaidRow
from beetle.store.verify import Finding

NAME = "evidence"
TABLES = (plane_evidence.MESSAGES,)
FINDINGS = 100
_NOBODY: tuple[str | None, ...] = (None,) * len(ActorAttribution.__struct_fields__)


def entry(message: int, space: int, conversation: int, visibility: str) -> Entry:
    """What the index row of a message is about."""
    return Entry(NAME, message, space, conversation, visibility)


def message_ref(row: EvidenceRow) -> str:
    """The ref of one message."""
    return format_ref(NAME, row.channel_id, row.conversation_id, row.turn_id, row.message_id)


def prepared(key: bytes, message: MessageDelta | MessageRecord, at: int) -> PreparedMessage:
    """A message as it is written, with its digest and what the index is to hold of it."""
    content = message.content or ""
    text = content + _tail(message)
    who = _NOBODY
    if message.actor is not None:
        who = tuple(getattr(message.actor, name) for name in ActorAttribution.__struct_fields__)
    fields = evidence_fields(text, who[0], at) if message.visibility in INDEXED else None
    return PreparedMessage(
        message_id=message.message_id,
        role=message.role,
        at=at,
        visibility=message.visibility,
        content=text,
        length=len(content),
        digest=content_digest(key, text),
        actor=who,
        fields=fields,
        event_type=_event_type(message),
    )


def _event_type(message: MessageDelta | MessageRecord) -> int | None:
    if isinstance(message, MessageDelta) or message.event_type is UNSET:
        return None
    return EVENT_TYPES.index(message.event_type) + 1


def _tail(message: MessageDelta | MessageRecord) -> str:
    if isinstance(message, MessageDelta):
        return tail_of(message.tool_calls, message.tool_result)
    return "" if message.tools is UNSET else message.tools


def prepared_ref(ref: HostOpaqueRef) -> PreparedRef:
    """A host ref as it is written."""
    return PreparedRef(ref.kind, ref.ref_id, ref.relation, ref.label, ",".join(dict.fromkeys(ref.visibility)))


def index(tx: Writing, space: int, conversation: int, written: Iterable[tuple[int, PreparedMessage]]) -> None:
    """Put messages that were just written into the index, by their keys: those that it may hold."""
    for key, message in written:
        recall_index.append(tx, entry(key, space, conversation, message.visibility), message.fields)


# Recall.


def _load(asked: Asked) -> Loaded:
    """The messages behind the matches, and the neighbouring turns that lend to them or borrow from them."""
    scores, key, kinds = asked.scores(NAME), asked.invocation.key, asked.kinds
    said = (row for row in transcripts.said_by_key(asked.tx, asked.space, scores) if row.visibility in kinds)
    candidates = [_candidate(row, scores[row.message]) for row in whole(key, said)]
    beside = (
        row
        for row in transcripts.said_by_place(asked.tx, neighbours_wanted(candidates))
        if row.visibility in kinds and _in_time(row.at, asked.search)
    )
    candidates += [_candidate(row, 0.0) for row in whole(key, beside)]
    return Loaded(candidates, {})


def _records(asked: Asked, shown: Iterable[str]) -> dict[str, EvidenceRow]:
    return {str(row.message): row for row in transcripts.evidence_by_key(asked.tx, map(int, shown))}


def _in_time(at: int, search: Search) -> bool:
    ends = [end for end in (search.until, search.as_of) if end is not None]
    return (search.since is None or at >= search.since) and all(at <= end for end in ends)


def _candidate(row: SaidRow, score: float) -> Candidate:
    message, conversation, ordinal, at, _, speaker, archived, content, _ = row
    return Candidate(NAME, str(message), content, at, score, conversation, ordinal, speaker, "", bool(archived))


def _hit(ranked: Ranked, row: EvidenceRow, parsed: ParsedQuery) -> RecallHit:
    return RecallHit(
        plane=NAME,
        ref=message_ref(row),
        score=round(ranked.score, 4),
        excerpt=excerpt(row.content, parsed),
        why=ranked.why,
        at=shown_time(row.at, "message", row.message_id),
        title=row.speaker,
        conversation=ConversationRef(channel_id=row.channel_id, conversation_id=row.conversation_id),
        turn_id=row.turn_id,
        message_id=row.message_id,
        visibility=row.visibility,  # type: ignore[arg-type] - the column is checked by the schema
        state=row.state,  # type: ignore[arg-type] - likewise
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    del invocation, tx, space
    return [_item(hit) for hit in hits]


def _item(hit: RecallHit) -> Item:
    speaker = f" {hit.title}" if hit.title else ""
    return Item(hit.ref, f"[{(hit.at or '')[:10]}{speaker}] {hit.excerpt}")


# The recall index.


def _indexed_as(key: bytes, tx: Reading, message: int, each: Record) -> IndexRow | None:
    """The index row of a message whose content is what was committed."""
    place = plane_evidence.place_of_message(tx, message)
    if place is None or each.content is None or not is_whole(key, each):
        return None
    row = entry(message, place[3], each.conversation, each.visibility)
    return row, evidence_fields(each.content, each.actor[0], each.at)


def _rows(key: bytes, tx: Reading, message: int) -> list[IndexRow] | None:
    each = repair.record(tx, message)
    if each is None or each.state != "live" or each.visibility not in INDEXED:
        return []
    row = _indexed_as(key, tx, message, each)
    return None if row is None else [row]


def _removable(key: bytes, tx: Reading, message: int) -> IndexRow | None:
    """A message never changes, and proves by its digest that it did not."""
    each = repair.record(tx, message)
    row = None if each is None else _indexed_as(key, tx, message, each)
    return row if row is not None and row[0].visibility in INDEXED else None


def _is_sound(key: bytes, text: IndexedText) -> bool:
    return is_whole(key, text)


def _contents(invocation: Invocation, tx: Reading) -> tuple[int, list[Finding]]:
    """Read every message: how many have content, and those whose content is not what was committed."""
    findings: list[Finding] = []
    count = 0
    for message, digest, content in plane_evidence.contents(tx):
        count += 1
        if not is_content(invocation.key, content, digest) and len(findings) < FINDINGS:
            findings.append(Finding("evidence", f"message {message}", "its content is not what was committed"))
        if not count % EVERY:
            invocation.progress.at(count)
    return count, findings


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    return skills.turn_of_ref(tx, space, EvidenceRef(*ref.segments)) is not None


PLANE = Plane(
    NAME,
    recall=Recall("evidence", TABLES, _load, _hit, records=_records),
    projected=Projected(40, "evidence", {"normal": 20, "elevated": 15, "critical": 0}, _items),
    indexed=Indexed(
        TABLES,
        plane_evidence.missing,
        _rows,
        Texts("indexed_messages", plane_evidence.indexed, _is_sound, plane_evidence.last_message),
        _removable,
    ),
    verified=Verified(
        plane_evidence.rows,
        {
            "bodies": plane_evidence.bodies,
            "counters": plane_evidence.counters,
            "speakers": plane_evidence.speakers,
            "events": plane_evidence.events,
            "captured_turns": plane_evidence.untaken,
        },
        links=plane_evidence.links,
        opened={"contents": _contents},
    ),
    named=Named((NAME,), resolves=_resolves),
    erased=Erased(evidence.holds_content, evidence.erase_turns),
    forgotten=evidence_forgetting.FORGOTTEN,
    exported=Exported(10, gather_evidence.conversations),
    counts=plane_evidence.counts,
)
