"""Uploaded skills: verification of every version, archives, counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, cast

from beetle.contracts.codec import pack
from beetle.contracts.continuity_records import UploadedSkillRecord, UploadedVersionRecord
from beetle.contracts.errors import IntegrityViolation
from beetle.domain.digest import keyed
from beetle.runtime.host import skill_documents
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.plane import Exported, Plane, Verified
from beetle.runtime.planes.query_words import said_in
from beetle.store import skill_registry
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.skill_registry import RegistrySkillRow
from beetle.store.verify import Finding

NAME: Final = "skill_registry"
MOST = 100
DAMAGED = "the content is not what was uploaded"


def _contents(tx: Reading) -> Iterator[Finding]:
    """Every version put together again, in their order, and compared with its hash."""
    told, of, before = 0, 0, None
    for skill, number, body in skill_registry.all_bodies(tx):
        before = None if body is None else skill_documents.unpacked(body, before if skill == of else None)
        of = skill
        if before is None and told < MOST:
            told += 1
            yield Finding(NAME, f"uploaded skill {skill}, version {number}", DAMAGED)
    for skill in skill_registry.uncounted(tx):
        yield Finding(NAME, f"uploaded skill {skill}", "its versions or its words are not all there")


def _gather(gathering: Gathering, space: int) -> dict[str, Any]:
    """A chat has none of its own. A skill of which a version is damaged stays behind whole."""
    if gathering.chat is not None:
        return {}
    found: list[UploadedSkillRecord] = []
    for row in skill_registry.every_skill(gathering.tx, space):
        try:
            found.append(_record(gathering, row))
        except IntegrityViolation:
            gathering.leave_out("uploaded_skills")
    return {"uploaded_skills": tuple(found)}


def _record(gathering: Gathering, row: RegistrySkillRow) -> UploadedSkillRecord:
    made: list[UploadedVersionRecord] = []
    for each in skill_registry.versions_of(gathering.tx, row.skill):
        content = skill_documents.content_bytes(gathering.tx, row.skill, each.number).decode()
        gathering.spend(len(content))
        made.append(
            UploadedVersionRecord(
                version_id=each.version_id, at=each.uploaded_at, agent_id=each.agent_id, agent_name=each.agent_name,
                format=cast(Any, each.format), content=content, agent_owner=each.agent_owner, chain_key=each.chain_key,
                signing_key_id=each.signing_key_id, key=each.key, signature=each.signature,
            )
        )  # fmt: skip
    if len(made) != row.versions:
        raise IntegrityViolation(reason=f"versions of the skill {row.skill_id!r} are missing")
    return UploadedSkillRecord(
        skill_id=row.skill_id, status=cast(Any, row.status), created_at=row.created_at, updated_at=row.updated_at,
        versions=tuple(made), status_reason=row.text.status_reason,
    )  # fmt: skip


# Erasure.


def _texts_of(tx: Reading, row: RegistrySkillRow) -> Iterator[str]:
    """All that any version of a skill says, who uploaded it, and why it has its status; without what is damaged."""
    yield from (row.skill_id, row.text.status_reason or "", row.text.name, row.text.description)
    for each in skill_registry.versions_of(tx, row.skill):
        yield from (each.agent_id, each.agent_name, each.agent_owner or "")
        with suppress(IntegrityViolation):
            content = skill_documents.content_bytes(tx, row.skill, each.number).decode()
            yield content
            yield said_in(content)


def _select(asked: Forgetting) -> None:
    """Uploaded skills rest on no turn: with the space all go, by words each of which any version holds them."""
    if not asked.request.whole_space and not asked.words:
        return
    for row in skill_registry.every_skill(asked.tx, asked.space):
        asked.invocation.check("the uploaded skills were looked through")
        if asked.request.whole_space or asked.words.are_in(*_texts_of(asked.tx, row)):
            asked.found.add(UPLOADED, row.skill, _as_known(row))


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    row = skill_registry.skill_by_key(tx, space, key)
    return None if row is None else _as_known(row)


def _as_known(row: RegistrySkillRow) -> Known:
    return Known((row.skill_id, row.created_at), (row.versions, row.updated_at))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    row = skill_registry.skill_by_key(tx, space, key)
    if row is None:
        return None
    gone = skill_registry.versions_of(tx, row.skill)
    skill_registry.delete_skill(tx, row.skill)
    tx.log(invocation.event("skill", "registry_forgotten", skill_id=row.skill_id, versions=row.versions))
    return Gone([keyed(invocation.key, "uploaded skill", pack((row.skill_id, each.content_hash))) for each in gone])


UPLOADED = Kind("uploaded", "uploaded_skills", 50, _known, _erase)

PLANE = Plane(
    NAME,
    verified=Verified(skill_registry.rows, {NAME: _contents}),
    forgotten=Forgotten(80, _select, (UPLOADED,)),
    exported=Exported(60, _gather),
    counts=skill_registry.counts,
)
