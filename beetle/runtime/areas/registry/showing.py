"""Uploaded skills and their versions as reports have them."""

from __future__ import annotations

from typing import Any, cast

from beetle.contracts.codec import replace
from beetle.contracts.errors import IntegrityViolation, NotFound
from beetle.contracts.skill_registry import (
    SkillRegistryMutationReport,
    UploadedSkill,
    UploadedSkillVersion,
)
from beetle.domain import skill_document
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, skill_registry
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.skill_registry import RegistrySkillRow, VersionRow

LISTING = "`beetle registry list` shows the skills that this owner has"


def existing(invocation: Invocation, tx: Reading, skill_id: str) -> RegistrySkillRow:
    """The skill of that id, in whatever spelling.

    Raises:
        NotFound: the space has none.
    """
    name = skill_document.normal_id(skill_id)
    found = skill_registry.find_skill(tx, evidence.find_space(tx, invocation.space_id), name)
    if found is None:
        raise NotFound(kind="uploaded skill", name=skill_id, listing=LISTING)
    return found


def latest_of(tx: Reading, row: RegistrySkillRow) -> VersionRow:
    """Its newest version.

    Raises:
        IntegrityViolation: it is missing.
    """
    found = skill_registry.version_numbered(tx, row.skill, row.versions - 1)
    if found is None:
        raise IntegrityViolation(reason=f"the latest version of the skill {row.skill_id!r} is missing")
    return found


def shown(tx: Reading, row: RegistrySkillRow) -> UploadedSkill:
    """A skill as reports have it."""
    latest = latest_of(tx, row)
    return UploadedSkill(
        skill_id=row.skill_id,
        name=row.text.name,
        description=row.text.description,
        status=cast(Any, row.status),
        status_reason=row.text.status_reason,
        schema_version=latest.schema_version,
        tags=row.text.tags,
        triggers=row.text.triggers,
        warnings=row.text.warnings,
        latest_version_id=latest.version_id,
        version_count=row.versions,
        created_at=_created(row),
        updated_at=shown_time(row.updated_at, "registry_skill", row.skill_id),
        latest_uploaded_at=shown_time(latest.uploaded_at, "registry_version", latest.version_id),
        latest_uploaded_by_agent_id=latest.agent_id,
        latest_uploaded_by_agent_name=latest.agent_name,
        latest_uploaded_by_agent_owner=latest.agent_owner,
        latest_source_format=cast(Any, latest.format),
    )


def again(
    invocation: Invocation, request: Any, tx: Reading, first: SkillRegistryMutationReport
) -> SkillRegistryMutationReport:
    """A first report with its skill as it is now. One that was erased counts as revoked, whatever has its id by now."""
    del request
    row = skill_registry.find_skill(tx, evidence.find_space(tx, invocation.space_id), first.skill.skill_id)
    if row is None or _created(row) != first.skill.created_at:
        return replace(first, skill=replace(first.skill, status="revoked"))
    return replace(first, skill=shown(tx, row))


def _created(row: RegistrySkillRow) -> str:
    return shown_time(row.created_at, "registry_skill", row.skill_id)


def version_shown(version: VersionRow) -> UploadedSkillVersion:
    """A version as reports have it."""
    return UploadedSkillVersion(
        version_id=version.version_id,
        version_number=version.number,
        uploaded_at=shown_time(version.uploaded_at, "registry_version", version.version_id),
        uploaded_by_agent_id=version.agent_id,
        uploaded_by_agent_name=version.agent_name,
        uploaded_by_agent_owner=version.agent_owner,
        source_format=cast(Any, version.format),
        content_hash=version.content_hash.hex(),
        content_bytes=version.size,
        schema_version=version.schema_version,
        signing_key_id=version.signing_key_id,
        skill_signature=None if version.signature is None else tuple(version.signature),
        public_key_bytes=None if version.key is None else tuple(version.key),
    )
