"""Uploaded skills of an archive: checked, and written with the times and ids that they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.contracts.continuity_records import UploadedSkillRecord, UploadedVersionRecord
from beetle.contracts.errors import InvalidRequest
from beetle.domain.skill_document import Document
from beetle.runtime.areas import secrets
from beetle.runtime.host import skill_documents
from beetle.runtime.host.identity import is_signed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import skill_registry
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.skill_registry import RegistrySkillRow, SkillText, VersionRow


def check(records: Iterable[UploadedSkillRecord], root: str) -> None:
    """Hold every version to what an upload is held to.

    Raises:
        InvalidRequest: a content is no skill, or a signature is not of its content.
    """
    for place, each in enumerate(records):
        for number, version in enumerate(each.versions):
            path = f"{root}.uploaded_skills[{place}].versions[{number}].content"
            try:
                skill_documents.document_of(version.content, version.format)
            except InvalidRequest as error:
                raise InvalidRequest(reason=error.message, hint=error.hint, path=path) from None
            if not _is_sound(version):
                raise InvalidRequest(
                    reason="its signature is not of its content", hint="nothing was written", path=path
                )  # fmt: skip


def _is_sound(version: UploadedVersionRecord) -> bool:
    if version.signature is None or version.key is None:
        return True
    return is_signed(version.content.encode(), version.signature, version.key)


def words(records: Iterable[UploadedSkillRecord]) -> Iterator[secrets.Said]:
    """What the skills say, for the detector of secrets."""
    for place, each in enumerate(records):
        yield f"records.uploaded_skills[{place}].status_reason", each.status_reason
        for number, version in enumerate(each.versions):
            yield f"records.uploaded_skills[{place}].versions[{number}].content", version.content


def write(invocation: Invocation, tx: WriteTransaction, space: int, each: UploadedSkillRecord) -> None:
    """A skill as it stood, with every version."""
    last = each.versions[-1]
    document = skill_documents.document_of(last.content, last.format)
    row = RegistrySkillRow(
        0, each.skill_id, each.status, len(each.versions), each.created_at, each.updated_at,
        SkillText(document.name, document.description, document.tags, document.triggers, document.warnings,
                  each.status_reason),
    )  # fmt: skip
    skill = skill_registry.add_skill(tx, space, row)
    for number, version in enumerate(each.versions):
        document = skill_documents.document_of(version.content, version.format)
        packed = skill_documents.packed(tx, skill, number, version.content.encode())
        made = _version(version, number, document, invocation.caller.name)
        skill_registry.add_version(tx, skill, made, *packed)


def _version(each: UploadedVersionRecord, number: int, document: Document, principal: str) -> VersionRow:
    content = each.content.encode()
    return VersionRow(
        0, number, each.version_id, each.at, principal, each.agent_id, each.agent_name, each.agent_owner,
        each.chain_key, each.format, document.schema_version, len(content), skill_documents.hash_of(content),
        each.signing_key_id, each.key, each.signature,
    )  # fmt: skip
