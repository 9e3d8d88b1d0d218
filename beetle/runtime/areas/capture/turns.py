"""turn.capture: a host's turn as evidence, once."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from beetle.contracts.capture import (
    NO_HOST,
    AttestLevel,
    CaptureAttr,
    MemoryCaptureTurnReport,
    MemoryCaptureTurnRequest,
)
from beetle.contracts.codec import pack_json, replace
from beetle.contracts.common import ConversationRef
from beetle.contracts.errors import Conflict, InvalidRequest
from beetle.contracts.refs import format_ref
from beetle.contracts.tool_parts import refuse_binary
from beetle.contracts.turns import ActorAttribution, MessageDelta, ToolCall
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.capture import signing
from beetle.runtime.areas.capture.keeping import Where, keep, one_message
from beetle.runtime.areas.capture.signing import Signed
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import sees_all
from beetle.runtime.planes.evidence import NAME
from beetle.store import captures, evidence
from beetle.store.captures import Known, NewCapture
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.evidence import PreparedTurn

VIEWS = ("host_ui", "export")
ATTR = "capture"
"""The attr that says how a turn was captured: it goes with the turn into archives."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
METADATA_BYTES = 65_536
METADATA_DEPTH = 32
AGENT_ID = re.compile(r"(?!/)(?!.*\.\.)[A-Za-z0-9_\-:@./]{1,128}\Z")
NAMESPACE_LEVELS = 8
ENTITIES = ("entity_id", "mentioned_entity_id")


class Prepared(NamedTuple):
    """A turn ready to be written, and the signature that came with it."""

    turn: PreparedTurn
    new: NewCapture
    signed: Signed | None
    where: Where


def capture(invocation: Invocation, request: MemoryCaptureTurnRequest) -> Apply:
    """Digests, index fields and the signature are worked out here; who may sign is asked in the transaction."""
    begun = time.monotonic()
    metadata = _metadata(invocation, request.metadata)
    _check_namespace(request.namespace)
    signed = signing.signed(request)
    made = _prepared(invocation, request, metadata, signed)

    def apply(tx: WriteTransaction) -> MemoryCaptureTurnReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        host_key = None if signed is None else signing.host_key(tx, space, signed, made.new.host_kind)
        known = captures.known(tx, space, request.host_session_id, request.host_turn_index)
        if known is not None:
            return _repeat(invocation, tx, made, known, begun)
        new = made.new._replace(host_key=host_key)
        key = keep(
            invocation, tx, space, made.where, made.turn, "capture", "captured", host_turn_index=new.host_turn_index,
            host_version=new.host_version, attest_level=new.attest_level,
        )  # fmt: skip
        captures.add(tx, key, space, new)
        return _report(made.where, made.turn.turn_id, made.turn.turn_id, new.attest_level, begun)

    return apply


def _prepared(
    invocation: Invocation, request: MemoryCaptureTurnRequest, metadata: dict[str, Any], signed: Signed | None
) -> Prepared:
    at = request.timestamp_iso or EPOCH + timedelta(microseconds=invocation.now)
    agent = invocation.scope.agent_id
    level: AttestLevel = "self_signed" if signed is None else "signed_by_peer"
    message = MessageDelta(
        message_id=f"turn-{request.host_turn_index}",
        role=cast(Any, request.role),
        content=request.content,
        at=at,
        actor=ActorAttribution(agent_id=agent),
        tool_calls=tuple(ToolCall(tool=each.tool, brief=each.brief) for each in request.tool_calls or ()),
    )
    kind = request.host_kind or NO_HOST
    told = CaptureAttr(
        host_session_id=request.host_session_id,
        host_turn_index=request.host_turn_index,
        host_kind=kind,
        host_version=request.host_version,
        agent_id=agent,
        attest_level=level,
        host_signature_b64=request.host_signature_b64,
        host_pubkey_b64=request.host_pubkey_b64,
    )
    attrs = {ATTR: pack_json(told).decode(), "metadata": pack_json(metadata).decode()}
    if request.namespace is not None:
        attrs["namespace"] = request.namespace
    turn = one_message(invocation, message, attrs=attrs, views=VIEWS)
    new = NewCapture(
        request.host_session_id, request.host_turn_index, kind, request.host_version, agent, request.role, turn.at,
        level, None,
    )  # fmt: skip
    return Prepared(turn, new, signed, Where(kind, request.host_session_id))


def _repeat(
    invocation: Invocation, tx: WriteTransaction, made: Prepared, known: Known, begun: float
) -> MemoryCaptureTurnReport:
    """The answer for a turn that is there: what came first stays.

    Raises:
        Conflict: it is another agent's.
    """
    if known.agent_id != made.new.agent_id:
        raise Conflict(
            reason=f"turn {made.new.host_turn_index} of this session was captured by another agent",
            hint="sessions of different agents need different ids: give host_session_id a prefix of your own",
            code="INVALID_INPUT",
        )
    (message,) = made.turn.messages
    differs = (known.role, known.digest) != (message.role, message.digest)
    # What was masked or erased since is nobody's to try a guess on: neither the answer nor the count tells.
    told = differs and _sees(invocation, tx, known)
    captures.count_repeat(tx, known.turn, told)
    where = Where(known.channel_id, known.conversation_id)
    report = _report(where, known.turn_id, known.message_id, known.attest_level, begun, dedup_hit=True)
    return replace(report, content_mismatch=told, memory_deleted=known.state == "deleted")


def _sees(invocation: Invocation, tx: Reading, known: Known) -> bool:
    return sees_all(evidence.kinds_of_turn(tx, known.turn), [], invocation.viewers)


def _report(
    where: Where, turn_id: str, message_id: str, level: str, begun: float, *, dedup_hit: bool = False
) -> MemoryCaptureTurnReport:
    return MemoryCaptureTurnReport(
        memory_id=format_ref(NAME, *where, turn_id, message_id),
        dedup_hit=dedup_hit,
        attest_level=cast(AttestLevel, level),
        conversation=ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id),
        turn_id=turn_id,
        elapsed_ms=round((time.monotonic() - begun) * 1000),
    )


def _metadata(invocation: Invocation, given: dict[str, Any] | None) -> dict[str, Any]:
    """The metadata with the agent's id, which it has from the caller alone."""
    metadata = dict(given or {})
    refuse_binary(metadata, "$.args.metadata")
    agent = invocation.scope.agent_id
    if metadata.setdefault("agent_id", agent) != agent:
        raise _invalid(
            f"metadata.agent_id does not match the resolved caller {agent!r}", "$.args.metadata.agent_id",
            hint="leave agent_id out: it is stamped with the caller's",
        )  # fmt: skip
    for name in ENTITIES:
        value = metadata.get(name, "x")
        if not isinstance(value, str) or AGENT_ID.match(value) is None:
            raise _invalid(
                f"metadata.{name} is no id", f"$.args.metadata.{name}",
                hint="1 to 128 of A-Z a-z 0-9 _ - : @ . /, no .. and no / at its start",
            )  # fmt: skip
    if _depth(metadata) > METADATA_DEPTH or len(pack_json(metadata)) > METADATA_BYTES:
        raise _invalid(
            f"metadata is deeper than {METADATA_DEPTH} levels or larger than {METADATA_BYTES:,} bytes",
            "$.args.metadata",
        )
    return metadata


def _depth(value: Any) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, cast("Mapping[str, Any]", value).values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, cast("list[Any]", value)), default=0)
    return 0


def _check_namespace(namespace: str | None) -> None:
    if namespace is None:
        return
    levels = namespace.split("/")
    bad = re.search(r"[\s\\]", namespace) or ".." in namespace or "" in levels or len(levels) > NAMESPACE_LEVELS
    if bad:
        raise _invalid(
            "namespace is no label", "$.args.namespace",
            hint=f"up to {NAMESPACE_LEVELS} levels with / between them, none empty; no blanks, backslashes or ..",
        )  # fmt: skip


def _invalid(reason: str, path: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(reason=f"{reason} - at {path}", path=path, hint=hint, code="INVALID_INPUT")


HANDLERS: Mapping[str, Handler] = {"turn.capture": Write(capture, brief=True)}
