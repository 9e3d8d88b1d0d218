"""Reading evidence into records: conversations, turns and messages, as they may leave."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from beetle.contracts.codec import UNSET, UnsetType, fields_of, to_us
from beetle.contracts.continuity_records import AttrRecord, ConversationRecord, MessageRecord, TurnRecord
from beetle.contracts.tool_parts import tail_of
from beetle.contracts.transcript import TranscriptMessage, TranscriptTurn
from beetle.contracts.turns import ActorAttribution, HostOpaqueRef, ToolCall, ToolResult
from beetle.domain.fingerprint import turn_fingerprint
from beetle.runtime.pipeline.views import sanitize_turns
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.proof import proof
from beetle.store import continuity, transcripts

PAGE_TURNS = 200
LAST = 2**62


def conversations(gathering: Gathering, space: int) -> dict[str, Any]:
    """The conversations; the gathering knows the place of each from then on."""
    tx, only = gathering.tx, gathering.conversation
    rows = [] if gathering.chat is not None and only is None else continuity.conversations(tx, space, only)
    if gathering.sort == "public" and gathering.chat is None:
        # A public archive has no transcript at all.
        gathering.leave_out("messages", sum(continuity.count_messages(tx, key) for key, _, _ in rows))
        return {"conversations": ()}
    found: list[ConversationRecord] = []
    for key, channel, conversation_id in rows:
        kept: list[TurnRecord] = []
        prints: list[bytes] = []
        for turn in _conversation(gathering, key, channel, conversation_id):
            gathering.said.update(turns=1, messages=len(turn.messages))
            if gathering.keep_turns:
                kept.append(turn)
            else:
                prints.append(turn_fingerprint(turn))
        if not kept and not prints and gathering.sort != "everything":
            continue
        gathering.fingerprints.append(prints)
        gathering.places[key] = len(found)
        named = gathering.chat is None
        found.append(
            ConversationRecord(
                channel_id=channel if named else None,
                conversation_id=conversation_id if named else None,
                turns=tuple(kept),
            )
        )
    return {"conversations": tuple(found)}


def _conversation(gathering: Gathering, key: int, channel: str, conversation_id: str) -> Iterator[TurnRecord]:
    after = 0
    proven = transcripts.unproven if gathering.key is None else proof(gathering.key)
    while page := transcripts.turns_forward(gathering.tx, key, after + 1, LAST, PAGE_TURNS, proven):
        after = page[-1].sequence
        doors = continuity.doors(gathering.tx, key, page[0].sequence, after)
        # Judged as in every export.
        revealed = page if gathering.sort == "everything" else sanitize_turns(page, gathering.viewer)
        for turn, shown in zip(page, revealed, strict=True):
            made = _turn(gathering, turn, shown, doors[turn.turn_id])
            if made is None:
                continue
            name = (channel, conversation_id, turn.turn_id)
            gathering.turns[name] = frozenset(each.message_id for each in made.messages)
            if len(made.messages) == len(turn.messages) and all(m.state == "live" for m in turn.messages):
                gathering.whole.add(name)
            yield made


def _turn(gathering: Gathering, turn: TranscriptTurn, shown: TranscriptTurn, door: str) -> TurnRecord | None:
    everything = gathering.sort == "everything"
    messages = [each for each in shown.messages if everything or each.content is not UNSET]
    lost = sum(each.state != "deleted" for each in turn.messages) - sum(each.state != "deleted" for each in messages)
    labels = [sum(ref.label is not None for ref in each.host_refs) for each in (turn, shown)]
    gathering.leave_out("messages", lost)
    gathering.leave_out("host_refs", len(turn.host_refs) - len(shown.host_refs))
    gathering.leave_out("labels", labels[0] - labels[1])
    gathering.leave_out("attrs", len(turn.attrs) - len(shown.attrs))
    if not messages:
        return None
    made = tuple(_message(each) for each in messages)
    places = {each.message_id: place for place, each in enumerate(made)}
    said = sum(len(each.content or "") + len(each.tools or "") for each in made)
    gathering.spend(said + sum(len(each.value or "") for each in shown.attrs))
    return TurnRecord(
        turn_id=turn.turn_id,
        at=us(turn.at),
        door=cast(Any, door),
        archived=turn.archived,
        messages=made,
        host_refs=tuple(
            HostOpaqueRef(
                kind=ref.kind, ref_id=ref.ref_id, relation=ref.relation, label=ref.label,
                visibility=cast(Any, ref.visibility),
            )
            for ref in shown.host_refs
        ),
        attrs=tuple(
            AttrRecord(
                key=attr.key or "",
                value=attr.value or "",
                message=None if attr.message_id is None else places.get(attr.message_id),
                visibility=cast(Any, attr.visibility),
                export_allowed=attr.export_allowed,
            )
            for attr in shown.attrs
        ),
    )  # fmt: skip


def _message(each: TranscriptMessage) -> MessageRecord:
    actor = None
    if each.actor is not None:
        actor = ActorAttribution(**{name: getattr(each.actor, name) for name in ActorAttribution.__struct_fields__})
    return MessageRecord(
        message_id=each.message_id,
        role=each.role,
        at=us(each.at),
        visibility=each.visibility,
        content=None if each.content is UNSET else each.content,
        tools=_tools(each),
        event_type=each.event_type,
        state=each.state,
        actor=actor,
    )


def _tools(each: TranscriptMessage) -> str | UnsetType:
    calls = () if each.tool_calls is UNSET else each.tool_calls
    result = None if each.tool_result is UNSET else ToolResult(**fields_of(each.tool_result))
    return tail_of(tuple(ToolCall(**fields_of(call)) for call in calls), result) or UNSET


def us(at: str) -> int:
    """Microseconds since the epoch of a time as reports give it."""
    return to_us(datetime.fromisoformat(at))
