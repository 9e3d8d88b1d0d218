"""Taking an uploaded skill away for good."""

from __future__ import annotations

from beetle.contracts.codec import pack
from beetle.contracts.errors import IntegrityViolation
from beetle.domain.digest import keyed
from beetle.runtime.host import skill_documents
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import skill_registry
from beetle.store.engine.transaction import Reading
from beetle.store.engine.writer import WriteTransaction
from beetle.store.skill_registry import RegistrySkillRow


def texts_of(tx: Reading, row: RegistrySkillRow) -> str:
    """All that any version of a skill says, and why it has its status; without what is damaged."""
    found = [row.skill_id, row.text.status_reason or "", row.text.name, row.text.description]
    for number in range(row.versions):
        try:
            found.append(skill_documents.content_bytes(tx, row.skill, number).decode())
        except IntegrityViolation:
            continue
    return "\n".join(found)


def erase(invocation: Invocation, tx: WriteTransaction, row: RegistrySkillRow) -> list[bytes]:
    """Take every version away; keyed digests of what went."""
    gone = skill_registry.versions_of(tx, row.skill)
    skill_registry.delete_skill(tx, row.skill)
    tx.log(invocation.event("skill", "registry_forgotten", skill_id=row.skill_id, versions=row.versions))
    return [keyed(invocation.key, "uploaded skill", pack((row.skill_id, each.content_hash))) for each in gone]
