"""skill_registry.*: uploading skills as versions that never change, finding, reading, deprecating and revoking them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from beetle.contracts.codec import format_us, to_us
from beetle.contracts.errors import Conflict, IntegrityViolation, InvalidRequest, NotFound, SignatureInvalid
from beetle.contracts.skill_registry import (
    FORMATS,
    REGISTRY_VERSION,
    SCHEMA_VERSION,
    STATUSES,
    SkillManifest,
    SkillRegistryDeprecateRequest,
    SkillRegistryListReport,
    SkillRegistryListRequest,
    SkillRegistryManifestReport,
    SkillRegistryManifestRequest,
    SkillRegistryMdReport,
    SkillRegistryMdRequest,
    SkillRegistryMutationReport,
    SkillRegistryReadReport,
    SkillRegistryReadRequest,
    SkillRegistryRevokeRequest,
    SkillRegistrySearchReport,
    SkillRegistrySearchRequest,
    SkillRegistryUploadRequest,
    SkillRegistryVersionsReport,
    SkillRegistryVersionsRequest,
    UploadedSkill,
    UploadedSkillVersion,
)
from beetle.domain import skill_document
from beetle.domain.skill_document import ID_CHARS, Document
from beetle.runtime.areas import secrets
from beetle.runtime.areas.registry import uploader
from beetle.runtime.areas.registry.guide import GUIDE
from beetle.runtime.areas.registry.uploader import Agent, Signature
from beetle.runtime.host import skill_documents
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Plain, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Page, page
from beetle.store import evidence, skill_registry
from beetle.store.engine.transaction import Reading
from beetle.store.engine.writer import WriteTransaction
from beetle.store.skill_registry import FIRST, Place, RegistrySkillRow, SkillText, VersionRow

AT_ONCE = 100
"""Skills that are read of the store at a time."""
SEARCHABLE = (
    "text", "skill_ids", "names", "tags_any", "triggers_any", "uploaded_by_agent_ids", "uploaded_by_agent_names",
    "uploaded_by_agent_owners", "statuses", "formats", "schema_versions", "since", "until", "limit",
)  # fmt: skip
READ_PARAMETERS = ("skill_id", "version_id", "format")
LISTING = "`beetle registry list` shows the skills that this owner has"
DISABLED = "disabled"
"""What a revoked skill may be called too."""


# Finding.


def skill_md(invocation: Invocation, request: SkillRegistryMdRequest) -> SkillRegistryMdReport:
    """The page is the build's own."""
    del invocation, request
    return SkillRegistryMdReport(markdown=GUIDE)


def manifest(invocation: Invocation, request: SkillRegistryManifestRequest) -> SkillRegistryManifestReport:
    """What this build takes, and this profile."""
    del request
    return SkillRegistryManifestReport(
        manifest=SkillManifest(
            registry_version=REGISTRY_VERSION,
            current_skill_schema_version=SCHEMA_VERSION,
            supported_formats=FORMATS,
            searchable_fields=SEARCHABLE,
            read_parameters=READ_PARAMETERS,
            content_bytes=invocation.shared.profile.budgets.skill_text_bytes,
        )
    )


def list_skills(invocation: Invocation, request: SkillRegistryListRequest, tx: Reading) -> SkillRegistryListReport:
    """The last changed first; the cursor stands at a time of change and a skill."""
    found = _page(invocation, tx, request, (), lambda row: True)
    return SkillRegistryListReport(
        total=skill_registry.count_skills(tx, evidence.find_space(tx, invocation.space_id)),
        skills=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def search(invocation: Invocation, request: SkillRegistrySearchRequest, tx: Reading) -> SkillRegistrySearchReport:
    """Every filter that is given must fit."""
    filters = tuple(getattr(request, name) for name in SEARCHABLE if name != "limit")
    found = _page(invocation, tx, request, filters, _fits(invocation, tx, request))
    return SkillRegistrySearchReport(
        skills=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _page(
    invocation: Invocation,
    tx: Reading,
    request: SkillRegistryListRequest | SkillRegistrySearchRequest,
    filters: tuple[Any, ...],
    fits: Callable[[RegistrySkillRow], bool],
) -> Page[UploadedSkill]:
    bound_to = invocation.bound(request.chain_key, *filters)
    after = FIRST if request.cursor is None else Place(*read_cursor(invocation.key, bound_to, request.cursor))
    space = evidence.find_space(tx, invocation.space_id)
    return page(
        invocation,
        _fitting(invocation, tx, space, after, fits),
        request.limit,
        lambda row: _shown(tx, row),
        bound_to=bound_to,
        place=lambda row: [row.updated_at, row.skill],
    )


def _fitting(
    invocation: Invocation, tx: Reading, space: int | None, after: Place, fits: Callable[[RegistrySkillRow], bool]
) -> Iterator[RegistrySkillRow]:
    while rows := skill_registry.list_skills(tx, space, after, AT_ONCE):
        for row in rows:
            invocation.check("the skills were looked through")
            if fits(row):
                yield row
        after = Place(rows[-1].updated_at, rows[-1].skill)


def _fits(
    invocation: Invocation, tx: Reading, request: SkillRegistrySearchRequest
) -> Callable[[RegistrySkillRow], bool]:
    ids = {skill_document.normal_id(each) for each in request.skill_ids}
    statuses = _words(request.statuses, STATUSES, {DISABLED: "revoked"}, "statuses")
    formats = _words(request.formats, FORMATS, skill_documents.OTHER_NAMES, "formats")
    since = None if request.since is None else to_us(request.since)
    until = None if request.until is None else to_us(request.until)
    of_versions = (
        set(request.uploaded_by_agent_ids), _folded(request.uploaded_by_agent_names),
        _folded(request.uploaded_by_agent_owners), formats, set(request.schema_versions),
    )  # fmt: skip
    names, tags, triggers = _folded(request.names), _folded(request.tags_any), _folded(request.triggers_any)
    text = (request.text or "").casefold()

    def fits(row: RegistrySkillRow) -> bool:
        if (ids and row.skill_id not in ids) or (statuses and row.status not in statuses):
            return False
        if names and row.text.name.casefold() not in names:
            return False
        if (tags and tags.isdisjoint(_folded(row.text.tags))) or (
            triggers and triggers.isdisjoint(_folded(row.text.triggers))
        ):
            return False
        if (since, until) != (None, None) and not _uploaded_within(tx, row, since, until):
            return False
        if any(of_versions) and not _has_version(tx, row, of_versions):
            return False
        return not text or _says(invocation, tx, row, text)

    return fits


def _folded(words: Sequence[str]) -> set[str]:
    return {each.strip().casefold() for each in words}


def _words(given: Sequence[str], known: Sequence[str], others: Mapping[str, str], field: str) -> set[str]:
    found = {others.get(each, each) for each in _folded(given)}
    if found - set(known):
        hint = f"known are {', '.join(known)}"
        path = f"$.args.{field}"
        raise InvalidRequest(reason=f"a word that is none of the known - at {path}", hint=hint, path=path)
    return found


def _uploaded_within(tx: Reading, row: RegistrySkillRow, since: int | None, until: int | None) -> bool:
    at = _latest(tx, row).uploaded_at
    return (since is None or at >= since) and (until is None or at <= until)


def _has_version(tx: Reading, row: RegistrySkillRow, wanted: tuple[set[Any], ...]) -> bool:
    """Whether each of the filters is met by some version, not need by the same."""
    left = [each for each in wanted if each]
    by_place = [place for place, each in enumerate(wanted) if each]
    met: set[int] = set()
    for version in skill_registry.versions_of(tx, row.skill):
        said = (
            version.agent_id, version.agent_name.casefold(), (version.agent_owner or "").casefold(), version.format,
            version.schema_version,
        )  # fmt: skip
        met.update(place for place, each in zip(by_place, left, strict=True) if said[place] in each)
    return len(met) == len(left)


def _says(invocation: Invocation, tx: Reading, row: RegistrySkillRow, text: str) -> bool:
    """Whether the latest version holds a text; a damaged one is searched by what its row says."""
    if any(text in each.casefold() for each in (row.text.name, row.text.description, *row.text.warnings)):
        return True
    try:
        content = skill_documents.content_bytes(tx, row.skill, row.versions - 1).decode()
    except IntegrityViolation:
        return False
    invocation.work.breathe()
    return any(text in each.casefold() for each in skill_documents.searched(content, _latest(tx, row).format))


# Reading.


def read(invocation: Invocation, request: SkillRegistryReadRequest, tx: Reading) -> SkillRegistryReadReport:
    """One version, in either format."""
    form = skill_documents.format_of(request.format)
    row = _existing(invocation, tx, request.skill_id)
    version = _latest(tx, row)
    if request.version_id is not None:
        found = skill_registry.find_version(tx, row.skill, request.version_id.strip().lower())
        if found is None:
            listing = f"`beetle registry versions {row.skill_id}` shows them"
            raise NotFound(kind=f"version of the skill {row.skill_id!r}", name=request.version_id, listing=listing)
        version = found
    content = skill_documents.content_bytes(tx, row.skill, version.number).decode()
    return SkillRegistryReadReport(
        skill_id=row.skill_id,
        version_id=version.version_id,
        version_number=version.number,
        format=form,
        source_format=cast(Any, version.format),
        schema_version=version.schema_version,
        status=cast(Any, row.status),
        status_reason=row.text.status_reason,
        safety_warnings=skill_document.cautions(row.status, row.text.warnings, content),
        content_hash=version.content_hash.hex(),
        signed=version.signature is not None,
        content=skill_documents.rendered(content, version.format, form),
    )


def versions(invocation: Invocation, request: SkillRegistryVersionsRequest, tx: Reading) -> SkillRegistryVersionsReport:
    """The oldest first; the cursor stands at a version's number."""
    row = _existing(invocation, tx, request.skill_id)
    bound_to = invocation.bound(request.chain_key, row.skill_id)
    after = -1 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    found = page(
        invocation,
        skill_registry.versions_of(tx, row.skill, after, request.limit + 1),
        request.limit,
        _version,
        bound_to=bound_to,
        place=lambda version: version.number,
    )
    return SkillRegistryVersionsReport(
        skill_id=row.skill_id,
        versions=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _existing(invocation: Invocation, tx: Reading, skill_id: str) -> RegistrySkillRow:
    name = skill_document.normal_id(skill_id)
    found = skill_registry.find_skill(tx, evidence.find_space(tx, invocation.space_id), name)
    if found is None:
        raise NotFound(kind="uploaded skill", name=skill_id, listing=LISTING)
    return found


def _latest(tx: Reading, row: RegistrySkillRow) -> VersionRow:
    found = skill_registry.version_numbered(tx, row.skill, row.versions - 1)
    if found is None:
        raise IntegrityViolation(reason=f"the latest version of the skill {row.skill_id!r} is missing")
    return found


def _shown(tx: Reading, row: RegistrySkillRow) -> UploadedSkill:
    latest = _latest(tx, row)
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
        created_at=format_us(row.created_at),
        updated_at=format_us(row.updated_at),
        latest_uploaded_at=format_us(latest.uploaded_at),
        latest_uploaded_by_agent_id=latest.agent_id,
        latest_uploaded_by_agent_name=latest.agent_name,
        latest_uploaded_by_agent_owner=latest.agent_owner,
        latest_source_format=cast(Any, latest.format),
    )


def _version(version: VersionRow) -> UploadedSkillVersion:
    return UploadedSkillVersion(
        version_id=version.version_id,
        version_number=version.number,
        uploaded_at=format_us(version.uploaded_at),
        uploaded_by_agent_id=version.agent_id,
        uploaded_by_agent_name=version.agent_name,
        uploaded_by_agent_owner=version.agent_owner,
        source_format=cast(Any, version.format),
        content_hash=version.content_hash.hex(),
        content_bytes=version.size,
        schema_version=version.schema_version,
        signing_key_id=version.signing_key_id,
    )


# Writing.


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
    return SkillRegistryMutationReport(skill=_shown(tx, row))


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
        row = _existing(invocation, tx, request.skill_id)
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
        row = _existing(invocation, tx, request.skill_id)
        if row.status == "revoked":
            return SkillRegistryMutationReport(skill=_shown(tx, row))
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
        return SkillRegistryMutationReport(skill=_shown(tx, row))
    row = row._replace(status=status, updated_at=tx.now, text=row.text._replace(status_reason=reason))
    skill_registry.change_skill(tx, row)
    tx.log(invocation.event("skill", f"registry_{status}", skill_id=row.skill_id, **_chain(request)))
    return SkillRegistryMutationReport(skill=_shown(tx, row))


HANDLERS: Mapping[str, Handler] = {
    "skill_registry.md": Plain(skill_md),
    "skill_registry.list": Read(list_skills),
    "skill_registry.manifest": Plain(manifest),
    "skill_registry.search": Read(search),
    "skill_registry.read": Read(read),
    "skill_registry.versions": Read(versions),
    "skill_registry.upload": Write(upload),
    "skill_registry.deprecate": Write(deprecate),
    "skill_registry.revoke": Write(revoke),
}
