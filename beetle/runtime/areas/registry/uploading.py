"""skill_registry.upload, deprecate, revoke: versions never change, and revoked is for good."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from beetle.contracts.errors import Conflict, InvalidRequest, SignatureInvalid
from beetle.contracts.skill_registry import (
    SkillRegistryDeprecateRequest,
    SkillRegistryMutationReport,
    SkillRegistryRevokeRequest,
    SkillRegistryUploadRequest,
)
from beetle.domain import skill_document
from beetle.domain.skill_document import ID_CHARS, Document
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import secrets
from beetle.runtime.areas.registry import uploader
from beetle.runtime.areas.registry.showing import again, existing, shown
from beetle.runtime.areas.registry.uploader import Agent, Signature
from beetle.runtime.host import skill_documents
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, skill_registry
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.skill_registry import RegistrySkillRow, SkillText, VersionRow


class _Given(NamedTuple):
    """What is to be uploaded, as it was read."""

    request: SkillRegistryUploadRequest
    skill_id: str
    format: str
    document: Document
    content: bytes


def upload(invocation: Invocation, request: SkillRegistryUploadRequest) -> Apply:
    """One more version: the same content again is one too. A deprecated skill is active again, a revoked one is not."""
    form = skill_documents.format_of(request.format)
    document = skill_documents.document_of(request.content, form)
    secrets.refuse([(skill_document.PATH, request.content)])
    given = _Given(request, _wanted_id(request, document), form, document, request.content.encode())
    if request.skill_signature is None and invocation.shared.dependencies.require_signed_skills:
        raise SignatureInvalid(
            reason="this daemon takes signed skills alone",
            hint="give signing_key_id and skill_signature, the agent's Ed25519 signature over the content's bytes",
            path="$.args.skill_signature",
        )

    return lambda tx: _add(invocation, tx, given)


def _add(invocation: Invocation, tx: WriteTransaction, given: _Given) -> SkillRegistryMutationReport:
    request, document, skill_id = given.request, given.document, given.skill_id
    space = evidence.ensure_space(tx, invocation.space_id, tx.now)
    agent = uploader.find_agent(tx, space, request.chain_key, request.agent_id.strip() or request.agent_id)
    uploader.may_upload(invocation, agent)
    signature = uploader.verified(agent, request.signing_key_id, request.skill_signature, given.content)
    known = skill_registry.find_skill(tx, space, skill_id)
    if known is not None and request.skill_id is None:
        _refuse_other_name(known, document)
    number = 0 if known is None else known.versions
    packed = skill_documents.packed(tx, None if known is None else known.skill, number, given.content)
    row = _row(known, skill_id, document, tx.now)
    if known is None:
        row = row._replace(skill=skill_registry.add_skill(tx, space, row))
    else:
        skill_registry.change_skill(tx, row)
    version = _version_row(invocation, given, agent, signature, tx.now)._replace(number=number)
    skill_registry.add_version(tx, row.skill, version, *packed)
    told = {"skill_id": skill_id, "version_id": version.version_id, "version_number": number}
    tx.log(invocation.event("skill", "version_uploaded", **told, agent_id=agent.agent_id, **_chain(request)))
    return SkillRegistryMutationReport(skill=shown(tx, row))


def _wanted_id(request: SkillRegistryUploadRequest, document: Document) -> str:
    if request.skill_id is None:
        return skill_document.id_of_name(document.name)
    found = skill_document.normal_id(request.skill_id)
    if not 0 < len(found) <= ID_CHARS:
        raise InvalidRequest(
            reason=f"a skill_id has 1 to {ID_CHARS} ASCII letters and digits, dashes between - at $.args.skill_id",
            hint="leave skill_id out, and it is made of the name",
            path="$.args.skill_id",
        )
    return found


def _refuse_other_name(known: RegistrySkillRow, document: Document) -> None:
    """Two names may make one id: a skill gets no version of another by that."""
    if known.text.name.casefold() != document.name.casefold():
        raise Conflict(
            reason=f"a skill of another name has the id {known.skill_id!r}",
            hint=f"give skill_id {known.skill_id!r} to upload a version of that one, or another skill_id",
            path="$.args.skill_id",
        )


def _row(known: RegistrySkillRow | None, skill_id: str, document: Document, now: int) -> RegistrySkillRow:
    reason = None if known is None or known.status != "revoked" else known.text.status_reason
    text = SkillText(
        document.name, document.description, document.tags, document.triggers, document.warnings, reason
    )  # fmt: skip
    if known is None:
        return RegistrySkillRow(0, skill_id, "active", 1, now, now, text)
    status = "revoked" if known.status == "revoked" else "active"
    return known._replace(status=status, versions=known.versions + 1, updated_at=now, text=text)


def _version_row(
    invocation: Invocation, given: _Given, agent: Agent, signature: Signature | None, now: int
) -> VersionRow:
    return VersionRow(
        version=0,
        number=0,
        version_id=str(uuid.UUID(bytes=invocation.shared.dependencies.ids(16), version=4)),
        uploaded_at=now,
        principal=invocation.caller.name,
        agent_id=agent.agent_id,
        agent_name=agent.name,
        agent_owner=agent.owner,
        chain_key=given.request.chain_key,
        format=given.format,
        schema_version=given.document.schema_version,
        size=len(given.content),
        content_hash=skill_documents.hash_of(given.content),
        signing_key_id=None if signature is None else signature.key_id,
        key=None if signature is None else signature.key,
        signature=None if signature is None else signature.signature,
    )


def _chain(
    request: SkillRegistryUploadRequest | SkillRegistryDeprecateRequest | SkillRegistryRevokeRequest,
) -> dict[str, str]:
    return {} if not request.chain_key else {"chain_key": request.chain_key}


def deprecate(invocation: Invocation, request: SkillRegistryDeprecateRequest) -> Apply:
    """A revoked skill stays revoked."""

    def apply(tx: WriteTransaction) -> SkillRegistryMutationReport:
        row = existing(invocation, tx, request.skill_id)
        if row.status == "revoked":
            raise Conflict(
                reason=f"the skill {row.skill_id!r} is revoked, which is for good",
                hint="nothing was changed; upload what is to be used under another skill_id",
                path="$.args.skill_id",
            )
        return _set_status(invocation, tx, row, "deprecated", request)

    return apply


def revoke(invocation: Invocation, request: SkillRegistryRevokeRequest) -> Apply:
    """Again changes nothing, the reason neither."""

    def apply(tx: WriteTransaction) -> SkillRegistryMutationReport:
        row = existing(invocation, tx, request.skill_id)
        if row.status == "revoked":
            return SkillRegistryMutationReport(skill=shown(tx, row))
        return _set_status(invocation, tx, row, "revoked", request)

    return apply


def _set_status(
    invocation: Invocation,
    tx: WriteTransaction,
    row: RegistrySkillRow,
    status: str,
    request: SkillRegistryDeprecateRequest | SkillRegistryRevokeRequest,
) -> SkillRegistryMutationReport:
    reason = (request.reason or "").strip() or None
    secrets.refuse([("$.args.reason", reason)])
    if (row.status, row.text.status_reason) == (status, reason):
        return SkillRegistryMutationReport(skill=shown(tx, row))
    row = row._replace(status=status, updated_at=tx.now, text=row.text._replace(status_reason=reason))
    skill_registry.change_skill(tx, row)
    tx.log(invocation.event("skill", f"registry_{status}", skill_id=row.skill_id, **_chain(request)))
    return SkillRegistryMutationReport(skill=shown(tx, row))


HANDLERS: Mapping[str, Handler] = {
    "skill_registry.upload": Write(upload, again=again),
    "skill_registry.deprecate": Write(deprecate, again=again),
    "skill_registry.revoke": Write(revoke, again=again),
}
