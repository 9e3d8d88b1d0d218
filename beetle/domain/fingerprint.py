"""The fingerprint of what a scope holds. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from beetle.contracts.codec import pack
from beetle.contracts.continuity_records import (
    AliasRecord,
    CandidateRecord,
    ChainRecord,
    ConversationRecord,
    DerivedRecord,
    FactRecord,
    OfFact,
    PrivateRecord,
    Records,
    SkillRecord,
    Source,
    ThoughtRecord,
    TurnRecord,
)

WHOLE_DIGEST = "beetle.state.v1"


def turn_fingerprint(turn: TurnRecord) -> bytes:
    """SHA-256 over a canonical encoding of one turn."""
    return _digest("turn", _turn(turn))


def thoughts_fingerprint(thoughts: Iterable[ThoughtRecord]) -> bytes:
    """SHA-256 over the hashes of thoughts, which cover what they say, and what was masked and erased since."""
    made = hashlib.sha256()
    for each in thoughts:
        made.update(pack((each.hash, each.body is not None, each.mark, each.marked_at)))
    return made.digest()


def fingerprint_of(
    records: Records, turns: Sequence[Sequence[bytes]] | None = None, thoughts: Mapping[str, bytes] | None = None
) -> str:
    """SHA-256, as 64 hex digits, over a canonical encoding of the records.

    Equal for equal memory, whatever the store, its backend and its keys, the ids that a store gave its facts and
    private items, who wrote them, and the order in which they happen to be kept. The texts of private items count where
    they were opened, else how many there are of which kind.

    Args:
        turns: fingerprints of each conversation's turns, where the records come without them.
        thoughts: by their keys the fingerprints of the chains' thoughts, where the records come without them.
    """
    said = turns or [[turn_fingerprint(turn) for turn in each.turns] for each in records.conversations]
    plain = [_digest("fact", _fact(each)) for each in records.facts]
    parts = {
        "conversations": sorted(map(_conversation, records.conversations, said)),
        "skills": sorted(_digest("skill", _skill(each, plain)) for each in records.skills),
        "facts": sorted(_digest("link", _links(each, plain[place], plain)) for place, each in enumerate(records.facts)),
        "policies": sorted(_digest("policy", each) for each in records.policies),
        "registries": sorted(_digest("registry", each) for each in records.registries),
        **_optional("uploaded_skills", (_digest("uploaded skill", each) for each in records.uploaded_skills)),
        **_optional("chains", (_digest("chain", _chain(each, thoughts or {})) for each in records.chains)),
        **_optional("chunks", (_digest("chunk", each) for each in records.chunks)),
        "observations": sorted(_digest("observation", each) for each in records.observations),
        "candidates": sorted(_digest("candidate", _candidate(each, records)) for each in records.candidates),
        "private": sorted(_digest("private", _private(each, plain)) for each in records.private),
        "aliases": sorted(_digest("alias", _alias(each, records)) for each in records.aliases),
    }
    return _digest(WHOLE_DIGEST, parts).hex()


def _optional(name: str, digests: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Nothing where there is none, so that what was taken out before there were any keeps its fingerprint."""
    found = sorted(digests)
    return {name: found} if found else {}


def _chain(each: ChainRecord, thoughts: Mapping[str, bytes]) -> Any:
    said = thoughts.get(each.chain_key) or thoughts_fingerprint(each.thoughts)
    head = (each.chain_key, each.adapter, each.created_at, each.updated_at, each.parent, each.shared)
    return (head, said, sorted(_digest("agent", agent) for agent in each.agents))


def _digest(kind: str, value: Any) -> bytes:
    return hashlib.sha256(pack((kind, value))).digest()


def _conversation(each: ConversationRecord, turns: Sequence[bytes]) -> bytes:
    return _digest("conversation", (each.channel_id, each.conversation_id, turns))


def _turn(turn: TurnRecord) -> Any:
    refs = [(r.kind, r.ref_id, r.relation, r.label, sorted(set(r.visibility))) for r in turn.host_refs]
    attrs = [(a.key, a.value, a.message, sorted(set(a.visibility)), a.export_allowed) for a in turn.attrs]
    return (turn.turn_id, turn.at, turn.door, turn.archived, turn.messages, refs, attrs)


def _source(source: Source, facts: list[bytes]) -> Any:
    return ("fact", facts[source.fact]) if isinstance(source, OfFact) else source


def _derived(each: Iterable[DerivedRecord], facts: list[bytes]) -> list[bytes]:
    return sorted(_digest("derived", (one.revision, _source(one.source, facts), one.relation)) for one in each)


def _skill(each: SkillRecord, facts: list[bytes]) -> Any:
    revisions = [
        (r.source, r.at, r.topic, r.title, r.summary, r.content, [_source(c, facts) for c in r.citations], r.here,
         r.source_chat_id, r.observed_at, r.edit_reason)
        for r in each.revisions
    ]  # fmt: skip
    head = (each.name, each.enabled, each.retired, each.created_at, each.updated_at, each.authority)
    return (head, revisions, _derived(each.derived, facts))


def _fact(each: FactRecord) -> Any:
    revisions = [
        (r.action, r.state, r.visibility, r.authority, r.valid_from, r.valid_until,
         None if r.text is None else each.texts[r.text], r.here, r.source_chat_id, r.extractor, r.reason)
        for r in each.revisions
    ]  # fmt: skip
    return (each.target, each.kind, each.created_at, each.authority, each.confidence, revisions)


def _links(each: FactRecord, plain: bytes, facts: list[bytes]) -> Any:
    by = None if each.superseded_by is None else facts[each.superseded_by]
    return (plain, by, _derived(each.derived, facts))


def _candidate(each: CandidateRecord, records: Records) -> Any:
    # The id of the item that holds its text is a store's own; what the item is tells enough.
    held = None if each.record is None else (records.private[each.record].plane, records.private[each.record].content)
    head = (each.candidate_id, each.target, each.kind, each.privacy, each.authority, each.reason, each.chat_id, each.at)
    return (head, each.text, held, each.confidence, each.extractor, each.evidence)


def _private(each: PrivateRecord, facts: list[bytes]) -> Any:
    kind = (each.plane, each.privacy, each.state)
    if each.content is None:
        return kind
    sources = sorted(_digest("source", _source(source, facts)) for source in each.derived)
    return (kind, each.candidate_id, each.authority, each.at, each.content, sources)


def _alias(each: AliasRecord, records: Records) -> Any:
    where = records.conversations[each.conversation]
    return (each.principal, each.agent_id, each.channel, each.chat_id, where.channel_id, where.conversation_id)
