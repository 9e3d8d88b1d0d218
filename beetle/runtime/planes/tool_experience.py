"""Tool experience: the hosts' tool registries, and what was observed of their tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from beetle.contracts.codec import convert_request
from beetle.contracts.continuity_records import BriefRecord, ObservationRecord, RegistryRecord, ToolRecord
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.refs import format_ref
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.plane import Erased, Exported, Plane
from beetle.store import continuity, tool_observations
from beetle.store.engine.transaction import Writing

NAME = "tool_experience"


def _gather(gathering: Gathering, space: int) -> dict[str, Any]:
    """A chat has none of its own."""
    if gathering.chat is not None:
        return {}
    return {
        "registries": tuple(_registries(gathering, space)),
        "observations": tuple(_observations(gathering, space)),
    }


def _brief(gathering: Gathering, text: str) -> BriefRecord | None:
    """A brief as it is stored; a damaged one is left out."""
    try:
        return convert_request(continuity.brief(text), BriefRecord)
    except InvalidRequest:
        gathering.leave_out("briefs")
        return None


def _registries(gathering: Gathering, space: int) -> Iterator[RegistryRecord]:
    for (_, registry_id, scope, fingerprint, revision, created_at, updated_at), tools in continuity.registries(
        gathering.tx, space
    ):
        yield RegistryRecord(
            registry_id=registry_id,
            scope=scope,
            fingerprint=fingerprint,
            revision=revision,
            created_at=created_at,
            updated_at=updated_at,
            tools=tuple(
                ToolRecord(
                    tool_id=tool_id, title=title, summary=summary, schema_fingerprint=schema,
                    permission_tags=continuity.tags(permission), risk_tags=continuity.tags(risk),
                )
                for tool_id, title, summary, schema, permission, risk in tools
            ),
        )  # fmt: skip


def _observations(gathering: Gathering, space: int) -> Iterator[ObservationRecord]:
    """What was observed of tools, without what was observed in a turn of which anything stays behind.

    In a public archive it is tied to no turn and has no brief.
    """
    sort = gathering.sort
    for each in continuity.observations(gathering.tx, space):
        turn = None
        if each.channel is not None and each.conversation_id is not None and each.in_turn is not None:
            named = (each.channel, each.conversation_id, each.in_turn)
            if (sort == "public" and not each.open) or (sort == "private" and not gathering.is_whole(*named)):
                gathering.leave_out("observations")
                continue
            turn = None if sort == "public" else format_ref("evidence", *named)
        shown = sort != "public" and each.brief is not None
        if each.brief is not None and not shown:
            gathering.leave_out("briefs")
        yield ObservationRecord(
            registry_id=each.registry_id, registry_fingerprint=each.registry_fingerprint,
            registry_scope=each.registry_scope, tool_id=each.tool_id, schema_fingerprint=each.schema_fingerprint,
            outcome=cast(Any, each.outcome), at=each.at, duration_ms=each.duration_ms,
            permission_tags=continuity.tags(each.permission_tags), risk_tags=continuity.tags(each.risk_tags),
            turn=turn, turn_id=None if sort == "public" else each.turn_id,
            brief=_brief(gathering, each.brief) if shown and each.brief is not None else None,
        )  # fmt: skip


def _erase(tx: Writing, turn: int, messages: Iterable[int]) -> None:
    del messages
    tool_observations.erase_briefs(tx, turn)


PLANE = Plane(NAME, erased=Erased(tool_observations.holds_brief, _erase), exported=Exported(50, _gather))
