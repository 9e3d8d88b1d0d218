"""Taking a runtime skill away for good."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.codec import pack
from beetle.domain.digest import keyed
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.facts import removed
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import skills
from beetle.store.engine.writer import WriteTransaction
from beetle.store.skills import RevisionRow, SkillRow


def erase(invocation: Invocation, tx: WriteTransaction, space: int, skill: SkillRow, authority: str) -> int:
    """Record, revisions, derived refs, index row and what is proposed of it go; the number of the event that tells."""
    history = skills.revisions(tx, skill.skill)
    procedural.unindex(tx, space, skill)
    values = (removed.Value(skill.name, each.content) for each in history)
    removed.record(invocation, tx, space, values, authority)
    skills.delete_skill(tx, skill.skill)
    proposals.drop_about(invocation, tx, space, [skill.name])
    return tx.log(invocation.event("skill", "deleted", name=skill.name, revision=skill.revision))


def digests_of(invocation: Invocation, revisions: Iterable[RevisionRow]) -> list[bytes]:
    """Keyed digests of what some revisions say."""
    said = ((each.topic, each.title, each.summary, each.content, each.citations) for each in revisions)
    return [keyed(invocation.key, "skill revision", pack(each)) for each in said]
