"""A thought as it is kept, its canonical bytes (RFC 8785) and its hash. docs/chain-format.md says it to strangers.

What can be erased (content, tags, concepts, signature) is hashed through a salted digest of its own: an erased thought
takes the salt with it, so that nobody can try guesses, and the chain still verifies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import rfc8785

from beetle.named_tuple import NamedTuple

SCHEMA_VERSION = 1
SALT_BYTES = 16
NO_HASH = ""
"""`prev_hash` of the first thought of a chain."""
EPOCH = datetime(1970, 1, 1)
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999."""


class Relation(NamedTuple):
    """A typed link to an earlier thought of the chain (`position`) or to any record (`ref`), one of the two.

    Valid from `valid_at` until `invalid_at`, in microseconds; None is open.
    """

    kind: str
    position: int | None = None
    ref: str | None = None
    valid_at: int | None = None
    invalid_at: int | None = None


class Body(NamedTuple):
    """What of a thought can be erased. `salt` has 16 bytes, `signature` 64 where there is one."""

    salt: bytes
    content: str
    tags: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    signature: bytes | None = None


class Thought(NamedTuple):
    """All of a thought but its body. `at` in microseconds; digest and hashes are SHA-256 in lower-case hex."""

    schema_version: int
    thought_id: str
    position: int
    at: int
    session_id: str | None
    agent_id: str
    signing_key_id: str | None
    thought_type: str
    role: str
    confidence: float | None
    importance: float
    refs: tuple[int, ...]
    relations: tuple[Relation, ...]
    content_digest: str
    prev_hash: str
    hash: str


def timestamp(at: int) -> str:
    """RFC 3339 in UTC with six digits of a second, as it is hashed and shown; a number where no calendar has it."""
    if not FIRST_US <= at <= LAST_US:
        return str(at)
    return (EPOCH + timedelta(microseconds=at)).isoformat(timespec="microseconds") + "Z"


def canonical(value: Any) -> bytes:
    """The RFC 8785 canonical JSON of plain values, in UTF-8.

    Raises:
        ValueError: a number is not finite or an integer is beyond 2^53, which JSON cannot hold.
    """
    return rfc8785.dumps(value)


BODY_FIELDS = ("concepts", "content", "salt", "tags", "thought_signature")


def body_fields(body: Body) -> dict[str, Any]:
    """A body as it is hashed and exported."""
    return {
        "concepts": list(body.concepts),
        "content": body.content,
        "salt": body.salt.hex(),
        "tags": list(body.tags),
        "thought_signature": None if body.signature is None else list(body.signature),
    }


def body_digest(body: Body) -> str:
    """`content_digest` of a thought."""
    return hashlib.sha256(canonical(body_fields(body))).hexdigest()


def relation_fields(relation: Relation) -> dict[str, Any]:
    """A relation as it is hashed and exported."""
    return {
        "index": relation.position,
        "invalid_at": None if relation.invalid_at is None else timestamp(relation.invalid_at),
        "kind": relation.kind,
        "ref": relation.ref,
        "valid_at": None if relation.valid_at is None else timestamp(relation.valid_at),
    }


def hashed_fields(thought: Thought) -> dict[str, Any]:
    """A thought as it is hashed: every field but its hash, the body by its digest."""
    return {
        "agent_id": thought.agent_id,
        "confidence": thought.confidence,
        "content_digest": thought.content_digest,
        "id": thought.thought_id,
        "importance": thought.importance,
        "index": thought.position,
        "prev_hash": thought.prev_hash,
        "refs": list(thought.refs),
        "relations": [relation_fields(each) for each in thought.relations],
        "role": thought.role,
        "schema_version": thought.schema_version,
        "session_id": thought.session_id,
        "signing_key_id": thought.signing_key_id,
        "thought_type": thought.thought_type,
        "timestamp": timestamp(thought.at),
    }


def thought_hash(thought: Thought) -> str:
    """What `hash` of a thought must be."""
    return hashlib.sha256(canonical(hashed_fields(thought))).hexdigest()


def signable(thought: Thought, body: Body) -> bytes:
    """What a thought's Ed25519 signature is over: what the agent says, in its normal form, before it has a place."""
    return canonical(
        {
            "agent_id": thought.agent_id,
            "concepts": list(body.concepts),
            "confidence": thought.confidence,
            "content": body.content,
            "importance": thought.importance,
            "refs": list(thought.refs),
            "relations": [relation_fields(each) for each in thought.relations],
            "role": thought.role,
            "schema_version": thought.schema_version,
            "session_id": thought.session_id,
            "tags": list(body.tags),
            "thought_type": thought.thought_type,
        }
    )


class Break(NamedTuple):
    """The first thought that does not hold, and why."""

    position: int
    problem: str


NOT_CONTIGUOUS = "its index is not its place"
NOT_LINKED = "its prev_hash is not the hash of the thought before"
NOT_HASHED = "its hash is not that of its fields"
NOT_SAID = "its content is not what was hashed"


def problem_of(thought: Thought, body: Body | None, index: int, previous: str) -> str | None:
    """Why a thought does not hold at its place behind a hash; None when it does, also without its body."""
    if thought.position != index:
        return NOT_CONTIGUOUS
    if thought.prev_hash != previous:
        return NOT_LINKED
    if not _is_hashed(thought):
        return NOT_HASHED
    if body is not None and body_digest(body) != thought.content_digest:
        return NOT_SAID
    return None


def _is_hashed(thought: Thought) -> bool:
    try:
        return thought_hash(thought) == thought.hash
    except rfc8785.CanonicalizationError:
        # A number that JSON cannot hold was never hashed: something else wrote it.
        return False


def first_break(
    thoughts: Iterable[tuple[Thought, Body | None]], index: int = 0, previous: str = NO_HASH
) -> tuple[int, str, Break | None]:
    """Walk thoughts from a place on: how many hold from genesis on, the hash there, and the first that does not."""
    for thought, body in thoughts:
        problem = problem_of(thought, body, index, previous)
        if problem is not None:
            return index, previous, Break(index, problem)
        index, previous = index + 1, thought.hash
    return index, previous, None
