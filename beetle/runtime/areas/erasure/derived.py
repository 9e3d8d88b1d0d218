"""Erasing single records that are no turns: facts, skills, candidates, proposals, briefs, thoughts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from beetle.runtime.areas.chains import erasing as erasing_thoughts
from beetle.runtime.areas.evolve import proposals as evolve
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.governance import judging, queue
from beetle.runtime.areas.registry import erasing as registry_erasing
from beetle.runtime.areas.skills import erasing
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import (
    candidates,
    continuity_write,
    forgetting,
    long_term,
    plane_thoughts,
    proposals,
    skill_registry,
    skills,
    thoughts,
    tool_registries,
)
from beetle.store.engine.writer import WriteTransaction

Digests = list[bytes]
Erase = Callable[[Invocation, WriteTransaction, int, int, str], tuple[str, "Digests | None"]]
"""By space, key and authority: what the report counts it as, and digests of what went; None where nothing was left."""


def _fact(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    rows = [row for row in long_term.facts_by_key(tx, [key]) if row.state != "deleted"]
    digests = [digest for row in rows for digest in long_term.digests_of(tx, row.fact)]
    facts.forget(invocation, tx, space, rows, authority)
    for row in rows:
        if row.state == "current":
            topic = (row.target, row.kind, row.topic_mac)
            judging.judge_again(invocation, tx, space, reason="weaker_authority", topic=topic)
    return "facts", digests if rows else None


def _skill(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    name = forgetting.skill_name(tx, space, key)
    skill = None if name is None else skills.find_skill(tx, space, name)
    if skill is None:
        return "skills", None
    digests = erasing.digests_of(invocation, skills.revisions(tx, key))
    erasing.erase(invocation, tx, space, skill, authority)
    judging.judge_skill_again(invocation, tx, space, skill.name)
    return "skills", digests


def _candidate(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del authority
    row = candidates.by_key(tx, space, key)
    if row is None:
        return "candidates", None
    queue.drop(invocation, tx, space, row, "forgotten")
    return "candidates", [row.content_mac] if row.content_mac is not None else []


def _proposal(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del authority
    name = forgetting.open_proposal(tx, space, key)
    row = None if name is None else proposals.find(tx, space, name)
    if row is None:
        return "proposals", None
    evolve.drop(invocation, tx, [row], "forgotten")
    return "proposals", []


def _private(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del authority
    item = forgetting.item_by_key(tx, space, key)
    if item is None:
        return "private_items", None
    record_id, plane, digest = item
    continuity_write.remove_item(tx, space, record_id, plane)
    tx.log(invocation.event("memory", "private_forgotten", "sealed", record_id=record_id, target=plane))
    return "private_items", [digest]


def _brief(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del invocation, space, authority
    return "tool_briefs", [] if forgetting.erase_brief(tx, key) else None


def _registry(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del invocation, space, authority
    if not forgetting.has_registry(tx, key):
        return "tool_registries", None
    tool_registries.delete_registry(tx, key)
    return "tool_registries", []


def _thought(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del authority
    rows = [row for row in thoughts.by_keys(tx, [key]) if row.body is not None]
    for row in rows:
        chain_key = plane_thoughts.names_of(tx, [key])[key][0]
        erasing_thoughts.erase(invocation, tx, space, chain_key, row)
        tx.log(invocation.event("chain", "erased", chain_key=chain_key, indexes=[row.position]))
    return "thoughts", [row.digest for row in rows] or None


def _chain_agent(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del invocation, space, authority
    return "chain_agents", [] if plane_thoughts.forget_agent(tx, key) else None


def _uploaded(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
) -> tuple[str, Digests | None]:
    del authority
    row = skill_registry.skill_by_key(tx, space, key)
    return "uploaded_skills", None if row is None else registry_erasing.erase(invocation, tx, row)


ERASE: Mapping[str, Erase] = {
    "fact": _fact,
    "skill": _skill,
    "candidate": _candidate,
    "proposal": _proposal,
    "private": _private,
    "brief": _brief,
    "registry": _registry,
    "thought": _thought,
    "chain_agent": _chain_agent,
    "uploaded": _uploaded,
}
"""By the plane that a part of an erasure names."""
