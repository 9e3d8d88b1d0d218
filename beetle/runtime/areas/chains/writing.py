"""chain.bootstrap, append, append_retrospective, branch: every thought is hashed with the one before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Protocol
from uuid import UUID

from beetle.contracts.chain_writes import (
    ChainAppendReport,
    ChainAppendRequest,
    ChainAppendRetrospectiveRequest,
    ChainBootstrapReport,
    ChainBootstrapRequest,
    ChainBranchReport,
    ChainBranchRequest,
    RelationInput,
)
from beetle.contracts.codec import replace, to_us
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound
from beetle.contracts.refs import evidence_named, parse_ref
from beetle.domain.chains import kinds, ledger, normal
from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chains import registering
from beetle.runtime.areas.chains.filtering import read_role, read_type, read_word
from beetle.runtime.areas.chains.places import OpenChain, ThoughtLocator, key_of, summary
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.thought_rows import index_row, ref_of
from beetle.store import chain_agents, chains, continuity_write, evidence, recall_index, skills, thoughts
from beetle.store.chain_agents import AgentRow
from beetle.store.chains import ChainRow, Segment
from beetle.store.continuity_write import Derived
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.thoughts import REFERS, BodyRow, LinkRow, ThoughtRow

ADAPTERS = {"binary": "binary", "jsonl": "jsonl"}
SYSTEM_AGENT = "system"
WORDS = ("content", "tags", "concepts", "agent_name", "agent_owner")
"""What a writer says in its own words: none of it may hold a secret."""


class Writer(Protocol):
    """What every request that writes a thought says of who writes."""

    @property
    def agent_id(self) -> str | None: ...
    @property
    def agent_name(self) -> str | None: ...
    @property
    def agent_owner(self) -> str | None: ...


class Draft(NamedTuple):
    """A thought before it has a place: in its normal form, with its body's digest."""

    thought: Thought
    body: Body


def ensure_chain(tx: WriteTransaction, space: int, key: str, adapter: str = "binary") -> ChainRow:
    """The chain of that key, made where it is not there."""
    found = chains.find(tx, space, key)
    return found or chains.add(tx, ChainRow(0, space, key, adapter, None, 0, tx.now, tx.now, 0, b"", 0))


def append(invocation: Invocation, request: ChainAppendRequest) -> Apply:
    """One thought at the end of a chain."""
    role = "Memory" if request.role is None else read_role(request.role)
    thought_type = read_type(request.thought_type)
    return _appending(invocation, request, thought_type, role, normal.DEFAULT_IMPORTANCE)


def append_retrospective(invocation: Invocation, request: ChainAppendRetrospectiveRequest) -> Apply:
    """A lesson."""
    thought_type = "LessonLearned" if request.thought_type is None else read_type(request.thought_type)
    return _appending(invocation, request, thought_type, "Retrospective", normal.RETROSPECTIVE_IMPORTANCE)


def _appending(
    invocation: Invocation,
    request: ChainAppendRequest | ChainAppendRetrospectiveRequest,
    thought_type: str,
    role: str,
    importance: float,
) -> Apply:
    secrets.refuse(secrets.fields(request, "$.args", *WORDS))
    key = key_of(request.chain_key)
    draft = _draft(invocation, request, thought_type, role, importance, key)

    def apply(tx: WriteTransaction) -> ChainAppendReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        chain = ensure_chain(tx, space, key)
        _check_places(draft.thought, chain.length)
        _check_refs(invocation, tx, space, draft.thought)
        written = _write(invocation, tx, chain, draft, request)
        opened = OpenChain(invocation, tx, key, written.chain)
        opened.knows(written.agent)
        return ChainAppendReport(thought=opened.shown(written.row), head_hash=written.row.hash.hex())

    return apply


def appended_again(
    invocation: Invocation,
    request: ChainAppendRequest | ChainAppendRetrospectiveRequest,
    tx: Reading,
    first: ChainAppendReport,
) -> ChainAppendReport:
    """A first report with its thought as it is now; with its chain it is erased, whatever has its id by now."""
    chain = OpenChain(invocation, tx, request.chain_key)
    row = chain.find(ThoughtLocator(thought_id=first.thought.id))
    if row is None or row.hash.hex() != first.thought.hash:
        return replace(first, thought=replace(first.thought, state="erased"))
    return replace(first, thought=chain.shown(row))


def _draft(
    invocation: Invocation,
    request: ChainAppendRequest | ChainAppendRetrospectiveRequest,
    thought_type: str,
    role: str,
    importance: float,
    key: str,
) -> Draft:
    signature = None if request.thought_signature is None else bytes(request.thought_signature)
    signing_key = normal.trimmed(request.signing_key_id)
    if signature is not None and (signing_key is None or len(signature) != normal.ED25519_SIGNATURE_BYTES):
        raise InvalidRequest(
            reason="a signature has 64 bytes, and signing_key_id names its key", path="$.args.thought_signature"
        )
    body = Body(
        os.urandom(ledger.SALT_BYTES),
        request.content,
        normal.labels(request.tags),
        normal.labels(request.concepts),
        signature,
    )
    relations = tuple(_relation(each, place) for place, each in enumerate(request.relations))
    thought = _thought(invocation, _writer(invocation, request.agent_id, key), thought_type, role, body)
    return Draft(
        thought._replace(
            session_id=normal.trimmed(request.session_id),
            signing_key_id=signing_key,
            confidence=normal.confidence_of(request.confidence),
            importance=normal.importance_of(request.importance, importance),
            refs=request.refs,
            relations=relations,
        ),
        body,
    )


def _writer(invocation: Invocation, given: str | None, default: str) -> str:
    """Who writes: without an id the caller's own agent, and the default where it has none. Raises as `speaks_for`."""
    agent_id = normal.trimmed(given) or registering.own_agent(invocation) or default
    registering.speaks_for(invocation, agent_id)
    return agent_id


def _thought(invocation: Invocation, agent_id: str, thought_type: str, role: str, body: Body) -> Thought:
    """A thought that only the store's own fields are missing from."""
    thought_id = str(UUID(bytes=invocation.shared.dependencies.ids(16), version=4))
    return Thought(
        ledger.SCHEMA_VERSION, thought_id, 0, 0, None, agent_id, None, thought_type, role, None,
        normal.DEFAULT_IMPORTANCE, (), (), ledger.body_digest(body), ledger.NO_HASH, "",
    )  # fmt: skip


def _relation(given: RelationInput, place: int) -> Relation:
    path = f"$.args.relations[{place}]"
    kind = read_word(given.kind, f"{path}.kind", kinds.read_kind, "relation", kinds.RELATION_KINDS)
    valid = None if given.valid_at is None else to_us(given.valid_at)
    invalid = None if given.invalid_at is None else to_us(given.invalid_at)
    if valid is not None and invalid is not None and invalid < valid:
        raise InvalidRequest(reason="invalid_at is before valid_at", path=f"{path}.invalid_at")
    return Relation(kind, given.index, given.ref, valid, invalid)


def _check_places(thought: Thought, length: int) -> None:
    """Whether each thought that is referred to is there.

    Raises:
        InvalidRequest: one is not; nothing is written.
    """
    named: Iterator[tuple[str, int | None]] = iter(
        [
            *((f"refs[{place}]", each) for place, each in enumerate(thought.refs)),
            *((f"relations[{place}].index", each.position) for place, each in enumerate(thought.relations)),
        ]
    )
    for path, index in named:
        if index is not None and index >= length:
            raise InvalidRequest(reason=f"Thought reference {index} does not exist", path=f"$.args.{path}")


def _check_refs(invocation: Invocation, tx: WriteTransaction, space: int, thought: Thought) -> None:
    """Whether each record that is referred to is there. Text that is no ref of a plane may stand there as well.

    Raises:
        InvalidRequest: one is not; nothing is written.
    """
    for place, each in enumerate(thought.relations):
        named = None if each.ref is None else table.named_by(each.ref.partition(":")[0])
        if each.ref is None or named is None:
            continue
        ref = parse_ref(each.ref)
        if ref is None or named.resolves(invocation, tx, space, ref) is False:
            path = f"$.args.relations[{place}].ref"
            raise InvalidRequest(
                reason=f"it names a record that does not exist - at {path}",
                hint="write the record first, or leave the relation out", path=path,
            )  # fmt: skip


def derive(tx: WriteTransaction, space: int, chain_key: str, row: ThoughtRow) -> None:
    """Join a thought to the turns that its relations name: who erases one of them is told of it."""
    for each in row.links:
        named = evidence_named(each.ref)
        turn = None if named is None else skills.turn_of_ref(tx, space, named)
        if each.ref is not None and turn is not None:
            derived = Derived(ref_of(chain_key, row.position), each.ref, each.kind, None, None, turn)
            continuity_write.add_derived_ref(tx, space, derived)


class Written(NamedTuple):
    """A thought as it was written, who wrote it, and the chain as it is then."""

    chain: ChainRow
    agent: AgentRow
    row: ThoughtRow


def _write(invocation: Invocation, tx: WriteTransaction, chain: ChainRow, draft: Draft, writer: Writer) -> Written:
    """Write a thought at the end of a chain.

    Raises:
        Forbidden: the agent was disabled.
        SignatureInvalid: see `registering.check_signature`.
    """
    agent = registering.writer_of(tx, chain.chain, draft.thought.agent_id, writer.agent_name, writer.agent_owner)
    registering.check_signature(tx, agent, draft.thought, draft.body)
    thought = draft.thought._replace(position=chain.length, at=tx.now, prev_hash=chain.head.hex())
    thought = thought._replace(hash=ledger.thought_hash(thought))
    row = row_of(chain.chain, thought, draft.body)
    line = chains.segments(tx, chain.chain) if row.links else []
    targets = [None if each.position is None else thoughts.key_at(tx, line, each.position) for each in row.links]
    row = row._replace(thought=thoughts.add(tx, row, targets))
    derive(tx, chain.space, chain.chain_key, row)
    recall_index.add(tx, *index_row(chain.space, row))
    chain_agents.act(tx, agent.agent, thought.position, thought.at)
    grown = chain._replace(length=chain.length + 1, head=row.hash, updated_at=tx.now)
    return Written(grow(invocation, tx, grown, "appended", index=thought.position), agent, row)


def grow(invocation: Invocation, tx: WriteTransaction, chain: ChainRow, event: str, **subject: object) -> ChainRow:
    """Write down where a chain ends now, in its row and in the event log."""
    told = {"chain_key": chain.chain_key, "length": chain.length, "hash": chain.head.hex(), **subject}
    grown = chain._replace(pinned=tx.log(invocation.event("chain", event, **told)))
    chains.grow(tx, grown)
    return grown


def row_of(chain: int, thought: Thought, body: Body | None) -> ThoughtRow:
    """A thought as the store keeps it; its row number is not known yet."""
    refs = (LinkRow(REFERS, each, None, None, None) for each in thought.refs)
    relations = (
        LinkRow(each.kind, each.position, each.ref, each.valid_at, each.invalid_at) for each in thought.relations
    )
    return ThoughtRow(
        thought=0,
        chain=chain,
        position=thought.position,
        schema_version=thought.schema_version,
        thought_id=thought.thought_id,
        at=thought.at,
        session_id=thought.session_id,
        agent_id=thought.agent_id,
        signing_key_id=thought.signing_key_id,
        thought_type=thought.thought_type,
        role=thought.role,
        confidence=thought.confidence,
        importance=thought.importance,
        digest=bytes.fromhex(thought.content_digest),
        previous=bytes.fromhex(thought.prev_hash),
        hash=bytes.fromhex(thought.hash),
        body=None if body is None else BodyRow(*body),
        mark=None,
        marked_at=None,
        links=(*refs, *relations),
    )


def bootstrap(invocation: Invocation, request: ChainBootstrapRequest) -> Apply:
    """The first thought of a chain, unless it has one."""
    given = "binary" if request.storage_adapter is None else request.storage_adapter.strip().lower()
    if given not in ADAPTERS:
        raise InvalidRequest(
            reason=f"Unknown storage adapter '{request.storage_adapter}'",
            hint="known are: binary, jsonl",
            path="$.args.storage_adapter",
        )
    secrets.refuse(secrets.fields(request, "$.args", *WORDS))
    key = key_of(request.chain_key)
    body = Body(
        os.urandom(ledger.SALT_BYTES), request.content, normal.labels(request.tags), normal.labels(request.concepts)
    )
    agent_id = _writer(invocation, request.agent_id, SYSTEM_AGENT)
    thought = _thought(invocation, agent_id, "Summary", "Checkpoint", body)
    importance = normal.importance_of(request.importance, normal.BOOTSTRAP_IMPORTANCE)

    def apply(tx: WriteTransaction) -> ChainBootstrapReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        chain = ensure_chain(tx, space, key, given)
        empty = not chain.length
        if empty:
            draft = Draft(thought._replace(importance=importance), body)
            chain = _write(invocation, tx, chain, draft, request).chain
        return ChainBootstrapReport(bootstrapped=empty, thought_count=chain.length, head_hash=chain.head.hex())

    return apply


def branch(invocation: Invocation, request: ChainBranchRequest) -> Apply:
    """A chain that goes on from a thought of another."""
    key = key_of(request.new_chain_key)

    def apply(tx: WriteTransaction) -> ChainBranchReport:
        parent = OpenChain(invocation, tx, request.chain_key)
        row = parent.existing()
        place = ThoughtLocator(request.anchor_id, request.anchor_hash, request.anchor_index)
        if not any(each is not None for each in place):
            place = ThoughtLocator(position=max(0, parent.length - 1))
        if not parent.length:
            raise NotFound(kind="thought", name="0", listing="the chain is empty: there is nothing to share")
        last = parent.located(place)
        if chains.find(tx, row.space, key) is not None:
            raise Conflict(reason=f"the chain {key!r} exists already", hint="choose another new_chain_key")
        shared = last.position + 1
        made = chains.add(
            tx, ChainRow(0, row.space, key, row.adapter, row.chain, shared, tx.now, tx.now, shared, last.hash, 0)
        )
        line = [Segment(each.chain, each.first, min(each.until, shared)) for each in parent.line if each.first < shared]
        chain_agents.copy_all(tx, row.chain, made.chain, line)
        made = grow(invocation, tx, made, "branched", branched_from=parent.key)
        return ChainBranchReport(chain=summary(invocation, tx, made))

    return apply


HANDLERS: Mapping[str, Handler] = {
    "chain.bootstrap": Write(bootstrap),
    "chain.append": Write(append, again=appended_again),
    "chain.append_retrospective": Write(append_retrospective, again=appended_again),
    "chain.branch": Write(branch),
}
