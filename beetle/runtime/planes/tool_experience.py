"""Tool experience: the hosts' tool registries, and what was observed of their tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from beetle.contracts.codec import convert_request
from beetle.contracts.continuity_records import BriefRecord, ObservationRecord, RegistryRecord, ToolRecord
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.refs import format_ref
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.plane import Erased, Exported, Plane
from beetle.runtime.planes.query_words import said_in
from beetle.store import continuity, forgetting, tool_observations, tool_registries
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.forgetting import KnownRegistry, ObservedBrief

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


# Erasure.


def _erase_of_turns(tx: Writing, turns: Sequence[int], messages: Sequence[int]) -> None:
    del messages
    tool_observations.erase_briefs(tx, turns)


def _select(asked: Forgetting) -> None:
    """Briefs of tools that were used in a turn that goes, or that hold the words; with the space its registries."""
    everything = asked.request.whole_space
    for each in forgetting.briefs(asked.tx, asked.space):
        if everything or each.turn in asked.turns or asked.words.are_in(said_in(each.brief)):
            asked.found.add(BRIEF, each.observation, _as_known(each))
    for each in forgetting.registries(asked.tx, asked.space) if everything else ():
        asked.found.add(REGISTRY, each.registry, _registry_as_known(each))


def _known_brief(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    found = forgetting.brief_by_key(tx, space, key)
    return None if found is None else _as_known(found)


def _as_known(brief: ObservedBrief) -> Known:
    return Known((brief.tool_id, brief.turn_id, brief.at))


def _known_registry(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    found = forgetting.registry_by_key(tx, space, key)
    return None if found is None else _registry_as_known(found)


def _registry_as_known(registry: KnownRegistry) -> Known:
    return Known((registry.registry_id, registry.created_at), (registry.revision, registry.fingerprint))


def _erase_brief(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del invocation, space, authority
    return Gone([]) if forgetting.erase_brief(tx, key) else None


def _erase_registry(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del authority
    found = forgetting.registry_by_key(tx, space, key)
    if found is None:
        return None
    tool_registries.delete_registry(tx, key)
    told = {"registry_id": found.registry_id, "revision": found.revision, "tools": 0, "drifted": 0}
    tx.log(invocation.event("memory", "tool_registry_deleted", **told))
    return Gone([])


BRIEF = Kind("brief", "tool_briefs", 30, _known_brief, _erase_brief)
REGISTRY = Kind("registry", "tool_registries", 40, _known_registry, _erase_registry)

PLANE = Plane(
    NAME,
    erased=Erased(tool_observations.holds_brief, _erase_of_turns),
    forgotten=Forgotten(60, _select, (BRIEF, REGISTRY)),
    exported=Exported(50, _gather),
)
