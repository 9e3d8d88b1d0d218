"""`mentisdb`: the data folder of MentisDB: chains (`.tcbin` and `.jsonl`), their agents, and the skill registry.

Of a chain's records those of every schema from 0.5 to 0.9 are read: 1, 2 and 3. A record of a `.tcbin` has its length
before it (8 bytes, little endian), so one that cannot be read costs itself; a length that cannot be true ends the file.

From the source of CloudLLM-ai/mentisdb at 0.5.0.9 (March 2026) and 0.9.7.43 (May 2026).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import msgspec

from beetle.importing import mentisdb_skills
from beetle.importing.bincode import Decoder, Malformed
from beetle.importing.items import (
    Agent,
    AgentKey,
    Format,
    Item,
    Items,
    LeftOut,
    Problem,
    Source,
    SourceLocation,
    Thought,
    ThoughtLink,
)
from beetle.importing.lines import UNREADABLE, records, why

CHAIN_ENDINGS: Final = (".tcbin", ".jsonl")
AGENTS_ENDING: Final = ".agents.json"
SKILLS_NAME: Final = "mentisdb-skills.bin"
SIGNATURE: Final = "signature"

LENGTH_BYTES: Final = 8
MOST_RECORD: Final = 10 * 2**20
"""Longest record that MentisDB itself reads."""
MOST_AGENTS_BYTES: Final = 64 * 2**20
MOST_VALUES: Final = 4096
"""Longest list of a thought that is read; what a thought may have is far less."""

THOUGHT_TYPES: Final = (
    "PreferenceUpdate", "UserTrait", "RelationshipUpdate", "Finding", "Insight", "FactLearned", "PatternDetected",
    "Hypothesis", "Mistake", "Correction", "LessonLearned", "AssumptionInvalidated", "Constraint", "Plan", "Subgoal",
    "Decision", "StrategyShift", "Wonder", "Question", "Idea", "Experiment", "ActionTaken", "TaskComplete",
    "Checkpoint", "StateSnapshot", "Handoff", "Summary", "Surprise", "Reframe", "Goal", "LLMExtracted",
)  # fmt: skip
ROLES: Final = (
    "Memory", "WorkingMemory", "Summary", "Compression", "Checkpoint", "Handoff", "Audit", "Retrospective",
)  # fmt: skip
RELATIONS: Final = (
    "References", "Summarizes", "Corrects", "Invalidates", "CausedBy", "Supports", "Contradicts", "DerivedFrom",
    "ContinuesFrom", "BranchesFrom", "RelatedTo", "Supersedes",
)  # fmt: skip
EARLIER_RELATIONS: Final = tuple(each for each in RELATIONS if each != "BranchesFrom")
"""As they were numbered until 0.8.5, before records ended with two more fields."""


class _Relation(msgspec.Struct):
    kind: str
    target_id: str
    chain_key: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None


class _Record(msgspec.Struct):
    """A thought as both adapters store it."""

    id: str
    index: int
    timestamp: str
    agent_id: str
    thought_type: str
    content: str
    schema_version: int = 0
    session_id: str | None = None
    signing_key_id: str | None = None
    thought_signature: list[int] | None = None
    role: str = "Memory"
    confidence: float | None = None
    importance: float | None = None
    tags: list[str] = []
    concepts: list[str] = []
    refs: list[int] = []
    relations: list[_Relation] = []
    entity_type: str | None = None
    source_episode: str | None = None
    prev_hash: str = ""
    hash: str = ""


class _Key(msgspec.Struct):
    key_id: str
    algorithm: str
    public_key_bytes: tuple[int, ...]
    revoked_at: str | None = None


class _Agent(msgspec.Struct):
    agent_id: str
    display_name: str = ""
    owner: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    public_keys: tuple[_Key, ...] = ()
    status: str = "Active"


class _Registry(msgspec.Struct):
    agents: dict[str, msgspec.Raw]


LINE: Final = msgspec.json.Decoder(_Record)
AGENT: Final = msgspec.json.Decoder(_Agent)
REGISTRY: Final = msgspec.json.Decoder(_Registry)


def read(source: Source) -> Items:
    """The thoughts, the agents or the skills that a file of the folder holds; its name says which."""
    name = os.path.basename(source.name)
    if name == SKILLS_NAME:
        return mentisdb_skills.read(source)
    if name.endswith(AGENTS_ENDING):
        return _agents(source)
    links = _Links(source.stem)
    return _binary(source, links) if name.endswith(CHAIN_ENDINGS[0]) else records(source, LINE, links.items)


def of_name(path: str) -> Format | None:
    """The format of a file that its name alone tells: all of them but the lines, which other formats have too."""
    name = os.path.basename(path)
    return "mentisdb" if name == SKILLS_NAME or name.endswith((AGENTS_ENDING, CHAIN_ENDINGS[0])) else None


class _Links:
    """Compares each thought with the one before, as a chain's own check does."""

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self._index = 0
        self._hash = ""

    def items(self, place: SourceLocation, record: _Record) -> Iterator[Item]:
        """The thought, and what is wrong with its place in the chain."""
        if (record.index, record.prev_hash) != (self._index, self._hash):
            wrong = "its prev_hash is not the hash" if record.index == self._index else "its index is not the next one"
            yield Problem(place, f"taken in, but the chain is broken here: {wrong} of the thought before")
        self._index, self._hash = record.index + 1, record.hash
        if record.thought_signature is not None:
            yield LeftOut(SIGNATURE)
        yield _thought(place, self._chain, record)


def _binary(source: Source, links: _Links) -> Items:
    number, begin = 0, 0
    while head := source.stream.read(LENGTH_BYTES):
        number += 1
        place = SourceLocation("byte", begin)
        length = int.from_bytes(head, "little")
        if len(head) < LENGTH_BYTES or length > MOST_RECORD:
            size = f"{length:,} bytes are announced" if len(head) == LENGTH_BYTES else "its length is cut off"
            yield Problem(place, f"record {number}: {size}; nothing behind it can be read")
            return
        data = source.stream.read(length)
        if len(data) < length:
            yield Problem(place, f"record {number}: the file ends {length - len(data):,} bytes too early")
            return
        begin += LENGTH_BYTES
        try:
            record = _record(data, begin)
        except Malformed as error:
            yield Problem(SourceLocation("byte", error.position), f"record {number}: {error.reason}")
        else:
            yield from links.items(place, record)
        begin += length


def _record(data: bytes, begin: int) -> _Record:
    version = Decoder(data, begin).number(32)
    if version not in (0, 1, 2, 3):
        raise Malformed(begin, f"schema version {version} is none of those that are known, 0 to 3")
    if version < 3:
        return _fields(Decoder(data, begin), version, ends=False)
    try:
        return _fields(Decoder(data, begin), version, ends=True)
    except Malformed as error:
        try:
            return _fields(Decoder(data, begin), version, ends=False)
        except Malformed:
            raise error from None


def _fields(found: Decoder, version: int, *, ends: bool) -> _Record:
    """A record of that schema; `ends` with entity_type and source_episode before the hashes.

    Raises:
        Malformed: it is no such record, or has bytes behind its end.
    """
    kinds = RELATIONS if ends else EARLIER_RELATIONS

    def relation() -> _Relation:
        link = _Relation(kind=found.variant(kinds), target_id=found.uuid())
        if version >= 2:
            link.chain_key = found.optional(found.text)
        if version >= 3:
            link.valid_at = found.optional(found.text)
            link.invalid_at = found.optional(found.text)
        return link

    def texts() -> list[str]:
        return list(found.many(found.text, MOST_VALUES))

    record = _Record(
        schema_version=found.number(32),
        id=found.uuid(),
        index=found.number(),
        timestamp=found.text(),
        session_id=found.optional(found.uuid),
        agent_id=found.text(),
        signing_key_id=found.optional(found.text),
        thought_signature=found.optional(lambda: list(found.data())),
        thought_type=found.variant(THOUGHT_TYPES),
        role=found.variant(ROLES),
        content=found.text(),
        confidence=found.optional(found.single),
        importance=found.single(),
        tags=texts(),
        concepts=texts(),
        refs=list(found.many(found.number, MOST_VALUES)),
        relations=list(found.many(relation, MOST_VALUES)),
    )
    if ends:
        record.entity_type = found.optional(found.text)
        record.source_episode = found.optional(found.text)
    record.prev_hash = found.text()
    record.hash = found.text()
    if found.left:
        raise Malformed(found.position, f"{found.left:,} bytes stand behind the record's end")
    return record


def _thought(place: SourceLocation, chain: str, record: _Record) -> Thought:
    said = (
        ("entity_type", record.entity_type),
        ("source_episode", record.source_episode),
        ("signing_key_id", record.signing_key_id),
    )
    return Thought(
        place=place,
        chain=chain,
        source_id=record.id,
        position=record.index,
        at=record.timestamp,
        digest=record.hash,
        agent_id=record.agent_id,
        thought_type=record.thought_type,
        role=record.role,
        content=record.content,
        confidence=record.confidence,
        importance=record.importance,
        tags=tuple(record.tags),
        concepts=tuple(record.concepts),
        refs=tuple(record.refs),
        links=tuple(
            ThoughtLink(each.kind, each.target_id, each.chain_key, each.valid_at, each.invalid_at)
            for each in record.relations
        ),
        session_id=record.session_id,
        kept=tuple((name, value) for name, value in said if value),
    )


def _agents(source: Source) -> Items:
    data = source.stream.read(MOST_AGENTS_BYTES + 1)
    if len(data) > MOST_AGENTS_BYTES:
        yield Problem(None, f"the file is longer than {MOST_AGENTS_BYTES:,} bytes")
        return
    try:
        registry = REGISTRY.decode(data)
    except UNREADABLE as error:
        yield Problem(None, why(error))
        return
    for number, raw in enumerate(registry.agents.values(), start=1):
        place = SourceLocation("item", number)
        try:
            yield _agent(place, source.stem, AGENT.decode(raw))
        except UNREADABLE as error:
            yield Problem(place, why(error))


def _agent(place: SourceLocation, chain: str, found: _Agent) -> Agent:
    keys = (
        AgentKey(each.key_id, each.algorithm, each.public_key_bytes, each.revoked_at is not None)
        for each in found.public_keys
    )
    return Agent(
        place, chain, found.agent_id, found.display_name, found.owner, found.description, found.aliases, tuple(keys),
        found.status.lower() == "active",
    )  # fmt: skip
