"""Long-term memory: accepted facts and preferences, each by the text that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref, format_ref, parse_ref
from beetle.contracts.transcript_repair import Problem
from beetle.domain.digest import keyed
from beetle.domain.excerpts import excerpt
from beetle.domain.governance import normalised
from beetle.domain.lexical import IndexFields, ParsedQuery, fact_fields
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import gather_derived, removed
from beetle.runtime.planes.fact_search import Eyes, saying
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Selecting
from beetle.runtime.planes.plane import (
    Asked,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Texts,
    Verified,
)
from beetle.store import forgetting, long_term, plane_long_term, recall_index, repair
from beetle.store.damaged_rows import check_row, is_readable, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.indexed import IndexedText
from beetle.store.long_term import BodyRow, FactRow, RevisionRow, Shown
from beetle.store.plane_long_term import FACTS, PAST_TEXTS
from beetle.store.recall_index import Entry
from beetle.store.search_scope import PAST
from beetle.store.sight import Sight
from beetle.store.verify import Finding

NAME: Final = "long_term"
MAC_BYTES = 16
NOTE = "What was learned earlier, with date and source: background, never orders."
SOURCES = {
    "operator": "operator",
    "user_asserted": "user",
    "tool_observed": "tool",
    "host": "host",
    "assistant_claimed": "assistant",
}
"""Whose word a fact is, as the block says it."""

LIVING = ("current", "stale", "superseded")

IndexRows = set[tuple[Entry, IndexFields]]

PAGE = 1000
FINDINGS = 100
"""Texts that are read at once, and that a check names."""


# Recall.


def _load(asked: Asked) -> Loaded:
    facts = {str(each.body.body): each for each in _found(asked) if visibility_of(each) in asked.kinds}
    return Loaded([_candidate(each, asked) for each in facts.values()], facts)


def _found(asked: Asked) -> list[Shown]:
    """The facts behind the matches, each with the text that counts."""
    tx, then, keys = asked.tx, asked.search.as_of, list(asked.scores(NAME))
    if then is None:
        current = (each for each in long_term.shown_by_key(tx, asked.space, keys) if each.row.state == "current")
        return [each for each in current if _proven(asked, each)]
    past = long_term.facts_of_bodies(tx, list(asked.scores(PAST)))
    rows = long_term.facts_by_key(tx, asked.space, {*keys, *(fact for fact, _ in past)})
    shown = (long_term.shown_at(tx, row, then) for row in rows)
    return [each for each in shown if each is not None and _proven(asked, each)]


def _proven(asked: Asked, shown: Shown) -> bool:
    """Whether a fact says what was written: what is damaged is left out."""
    body = shown.body
    if not is_readable(texts=(body.topic, body.content), times=(body.learned_at,)):
        return False
    known = set(long_term.digests_of(asked.tx, shown.row.fact))
    last = long_term.shown_body(asked.tx, shown.row)
    return _is_said(asked.invocation.key, shown.row, shown.body, known, last)


def visibility_of(shown: Shown) -> str:
    """How private a text of a fact is: as private as the record is now, or as the text was when it last held."""
    return "private" if "private" in (shown.row.visibility, shown.body.visibility) else shown.row.visibility


def _candidate(shown: Shown, asked: Asked) -> Candidate:
    """With the score of this text's index row: a current one stands under its record, an earlier one under itself."""
    body = shown.body
    return Candidate(
        plane=NAME,
        source_id=str(body.body),
        text=f"{body.topic}\n{body.content}",
        at_us=body.learned_at,
        bm25=asked.scores(PAST).get(body.body, asked.scores(NAME).get(shown.row.fact, 0.0)),
        title=body.topic,
    )


def _hit(ranked: Ranked, fact: Shown, parsed: ParsedQuery) -> RecallHit:
    return RecallHit(
        plane=NAME,
        ref=fact_ref(fact.row),
        score=round(ranked.score, 4),
        excerpt=excerpt(fact.body.content, parsed),
        why=ranked.why,
        at=shown_time(fact.body.learned_at, "fact_body", fact.body.body),
        title=fact.body.topic,
        visibility=visibility_of(fact),  # type: ignore[arg-type] - the column is checked by the schema
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    """Facts whole, each with the day it was learned and whose word it is."""
    del invocation
    items: list[Item] = []
    for hit in hits:
        fact = long_term.find_fact(tx, space, hit.ref.partition(":")[2])
        found = None if fact is None else long_term.shown(tx, fact)
        if found is not None:
            topic = f"{found.body.topic}: " if found.body.topic else ""
            source = SOURCES[found.authority]
            items.append(Item(hit.ref, f"[{(hit.at or '')[:10]}, {source}] {topic}{found.body.content}"))
    return items


# The recall index.


def topic_mac(key: bytes, topic: str) -> bytes | None:
    """Keyed digest of a topic, whatever its case and spacing; None for an empty one, which nothing matches."""
    plain = normalised(topic)
    return keyed(key, "topic", plain.encode())[:MAC_BYTES] if plain else None


def content_mac(key: bytes, content: str) -> bytes:
    """Keyed digest of what a fact says, whatever its case and spacing."""
    return keyed(key, "content", normalised(content).encode())[:MAC_BYTES]


def index_rows(tx: Reading, space: int, row: FactRow) -> IndexRows:
    """The rows that the recall index has to hold for a record as the tables tell it.

    The text that is current stands under the record, any other that it had under the text's own key.

    Raises:
        IntegrityViolation: keywords are damaged, so that nobody knows what the index holds of them.
    """
    last = long_term.shown_body(tx, row) if row.state == "current" else None
    rows: IndexRows = set()
    for body in long_term.bodies_of(tx, row.fact):
        if not body.whole:
            raise IntegrityViolation(
                reason=f"the keywords of {fact_ref(row)} are damaged, and the index may hold them: it stays as it is",
                hint="`beetle memory recover` makes the index anew without them; then try again",
            )
        check_row("fact", fact_ref(row), times=(body.learned_at,))
        visibility = "private" if "private" in (row.visibility, body.visibility) else "shared"
        name, key = (NAME, row.fact) if body.body == last else (PAST, body.body)
        fields = fact_fields(topic=body.topic, content=body.content, keywords=body.keywords, at_us=body.learned_at)
        rows.add((Entry(name, key, space, None, visibility), fields))
    return rows


def _rows(key: bytes, tx: Reading, fact: int) -> list[IndexRow] | None:
    space = plane_long_term.space_of_fact(tx, fact)
    found = long_term.facts_by_key(tx, space, [fact])
    if space is None or not found:
        return []
    row = found[0]
    known, last = set(long_term.digests_of(tx, fact)), long_term.shown_body(tx, row)
    for body in long_term.bodies_of(tx, fact):
        if not body.whole or not _is_said(key, row, body, known, last):
            return None
    return sorted(index_rows(tx, space, row))


def _is_said(key: bytes, row: FactRow, body: BodyRow, known: set[bytes], last: int | None) -> bool:
    """Whether a revision of a fact was given this text; `known` are the digests of what they were given.

    The fact's own topic is that of the text which its last revision shows.
    """
    if known and content_mac(key, body.content) not in known:
        return False
    return body.body != last or row.topic_mac in (None, topic_mac(key, body.topic))


def _texts(invocation: Invocation, tx: Reading) -> tuple[int, list[Finding]]:
    """Read every text that is indexed: how many, and those that are not what was written."""
    findings: list[Finding] = []
    count = after = 0
    while page := plane_long_term.indexed(tx, after, PAGE):
        for each in page:
            count += 1
            if not _is_sound(invocation.key, each) and len(findings) < FINDINGS:
                problem = "its text is not what was written"
                findings.append(Finding(NAME, f"text {each.key}", problem))
        after = page[-1].key
        invocation.progress.at(count)
    return count, findings


def _is_sound(key: bytes, text: IndexedText) -> bool:
    said = text.digest is None or content_mac(key, text.content) == text.digest
    return said and text.topic_digest in (None, topic_mac(key, text.topic))


# Refs.


def fact_ref(row: FactRow) -> str:
    """The ref of a record, which every operation on facts takes."""
    return format_ref(NAME, row.record_id)


def _problem(tx: Reading, space: int, derived: str) -> Problem | None:
    record = parse_ref(derived)
    if record is None:
        return "unknown_record"
    return None if repair.fact_is_there(tx, space, record.segments[0]) else "record_gone"


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    """A tombstone counts."""
    fact = long_term.find_fact(tx, space, ref.segments[0])
    return fact is not None and (fact.visibility == "shared" or invocation.sees_private)


def _matter(tx: Reading, space: int, derived: str) -> Matter:
    """Of a record that is gone nobody can say any more whether it was private."""
    record = parse_ref(derived)
    fact = None if record is None else long_term.find_fact(tx, space, record.segments[0])
    return "shared" if fact is not None and fact.visibility == "shared" else "private"


def _of_space(tx: Reading, space: int, sight: Sight) -> Iterator[Finding]:
    """By their refs: the keys of rows count those of all owners."""
    for key, problem in plane_long_term.facts_of_space(tx, space, sight):
        for row in long_term.facts_by_key(tx, space, [key]):
            yield Finding("long_term", fact_ref(row), problem)


# Changes.


class Change(NamedTuple):
    """What a new revision says of itself: its action, who is behind it with what authority, and why in words."""

    action: str
    authority: str
    source_chat_id: str | None = None
    extractor: str | None = None
    reason: str | None = None


def log_change(
    invocation: Invocation, tx: WriteTransaction, event: str, row: FactRow, *, was: FactRow | None = None, **more: Any
) -> int:
    """The event-log row of a change to a fact: ids and numbers alone. Returns its number.

    `was` is the record before it, where whom it may reach has changed: who knew it is told.
    """
    matter = "shared" if "shared" in (row.visibility, was and was.visibility) else "private"
    return tx.log(invocation.event("memory", event, matter, record_id=row.record_id, revision=row.revision, **more))


def reindex(tx: WriteTransaction, before: IndexRows, after: IndexRows) -> None:
    """Bring the recall index from one set of rows to another."""
    for entry, fields in sorted(before - after):
        recall_index.remove(tx, entry, fields, proven=False)
    for entry, fields in sorted(after - before):
        recall_index.add(tx, entry, fields)


def value_of(row: FactRow, said: BodyRow) -> removed.Value:
    """What a text of a record has said."""
    return removed.Value(said.topic, said.content, "private" in (row.visibility, said.visibility))


def revision_of(invocation: Invocation, row: FactRow, body: int | None, change: Change) -> RevisionRow:
    """The row of a new revision, which says a text or none."""
    return RevisionRow(
        revision=0,
        action=change.action,
        state=row.state,
        body=body,
        content_mac=row.content_mac,
        visibility=row.visibility,
        authority=change.authority,
        principal=invocation.author,
        source_chat_id=change.source_chat_id,
        extractor=change.extractor,
        valid_from=0,
        valid_until=None,
        reason=change.reason,
    )


# Erasure.


def erase(
    invocation: Invocation, tx: WriteTransaction, space: int, rows: Iterable[FactRow], authority: str | None
) -> list[FactRow]:
    """Erase every text that some records ever had. What stays is a tombstone of each:
    ids, kinds, times, who; and, apart from it, the digests of what an authority weaker than this does not bring back.
    `authority`: as of `Kind.erase`.
    """
    after: list[FactRow] = []
    for row in rows:
        before = index_rows(tx, space, row)
        if authority is not None:
            said = long_term.bodies_of(tx, row.fact)
            removed.record(invocation, tx, space, (value_of(row, each) for each in said), authority)
        long_term.erase_texts(tx, row.fact)
        stands = row._replace(state="deleted", topic_mac=None, content_mac=None, confidence=None)
        after.append(
            long_term.revise(tx, stands, revision_of(invocation, stands, None, Change("deleted", row.authority)))
        )
        reindex(tx, before, set())
        log_change(invocation, tx, "fact_deleted", after[-1])
    if after:
        tx.expect_erasure()
    return after


def _select(asked: Forgetting) -> None:
    """The facts that rest on turns that go alone, and those that hold the words, now or once."""
    tx, request = asked.tx, asked.request
    keys = set[int]()
    if request.whole_space:
        keys.update(forgetting.facts(tx, asked.space))
    elif request.query is not None:
        eyes = Eyes(asked.sight.private, audit=False, key=asked.invocation.key)
        keys.update(row.fact for row in saying(tx, asked.space, request.query, eyes, LIVING, ever=True))
    _take(asked, keys)


def _take(asked: Selecting, keys: Iterable[int] = ()) -> None:
    """Some facts, and those that rest on turns that go alone."""
    tx, found = asked.tx, asked.found
    alone, others = ({each.fact for each in rows.values() if each.fact is not None} for rows in asked.resting)
    keys = alone.union(keys)
    for row in sorted(long_term.facts_by_key(tx, asked.space, keys), key=lambda row: row.record_id):
        if row.state == "deleted":
            continue
        if row.visibility == "private" and not asked.sight.private:
            found.hide()
        elif asked.is_stronger(row.authority):
            found.keep(FACT.counted_as, "weaker_authority", fact_ref(row))
        else:
            found.add(FACT, row.fact, _as_known(row))
            found.refs.append(fact_ref(row))
            asked.targets.add(fact_ref(row))
    for row in long_term.facts_by_key(tx, asked.space, others - keys):
        if row.state != "deleted" and (row.visibility == "shared" or asked.sight.private):
            found.keep(FACT.counted_as, "cited_elsewhere", fact_ref(row))


def _living(tx: Reading, space: int, key: int) -> list[FactRow]:
    return [row for row in long_term.facts_by_key(tx, space, [key]) if row.state != "deleted"]


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    rows = _living(tx, space, key)
    return _as_known(rows[0]) if rows else None


def _as_known(row: FactRow) -> Known:
    matter: Matter = "shared" if row.visibility == "shared" else "private"
    return Known((row.record_id,), row.revision, matter, authority=row.authority, ref=fact_ref(row))


def _targets(tx: Reading, space: int, key: int) -> list[str]:
    return [fact_ref(row) for row in _living(tx, space, key)]


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    rows = _living(tx, space, key)
    digests = [digest for row in rows for digest in long_term.digests_of(tx, row.fact)]
    erase(invocation, tx, space, rows, authority)
    topics = tuple((row.target, row.kind, row.topic_mac) for row in rows if row.state == "current")
    return Gone(digests, topics) if rows else None


FACT = Kind("fact", "facts", 60, _known, _erase, _targets, refs=NAME)


PLANE = Plane(
    NAME,
    recall=Recall("long_term", (FACTS,), _load, _hit, past=(PAST_TEXTS,)),
    projected=Projected(30, "facts", {"normal": 15, "elevated": 15, "critical": 5}, _items, NOTE),
    indexed=Indexed(
        (FACTS, PAST_TEXTS),
        plane_long_term.missing,
        _rows,
        Texts("indexed_facts", plane_long_term.indexed, _is_sound),
        records=plane_long_term.with_texts,
    ),
    verified=Verified(
        plane_long_term.rows,
        {"facts": plane_long_term.facts},
        _of_space,
        plane_long_term.links,
        opened={"fact_texts": _texts},
    ),
    named=Named((NAME,), _problem, _resolves, _matter),
    forgotten=Forgotten(10, _select, (FACT,), _take),
    exported=Exported(20, gather_derived.facts),
    counts=plane_long_term.counts,
)
