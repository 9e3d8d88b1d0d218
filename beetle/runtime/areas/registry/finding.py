"""skill_registry.md, manifest, list, search, read, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from beetle.contracts.codec import to_us
from beetle.contracts.errors import IntegrityViolation, InvalidRequest, NotFound
from beetle.contracts.skill_registry import (
    FORMATS,
    REGISTRY_VERSION,
    SCHEMA_VERSION,
    STATUSES,
    SkillManifest,
    SkillRegistryListReport,
    SkillRegistryListRequest,
    SkillRegistryManifestReport,
    SkillRegistryManifestRequest,
    SkillRegistryMdReport,
    SkillRegistryMdRequest,
    SkillRegistryReadReport,
    SkillRegistryReadRequest,
    SkillRegistrySearchReport,
    SkillRegistrySearchRequest,
    SkillRegistryVersionsReport,
    SkillRegistryVersionsRequest,
    UploadedSkill,
)
from beetle.domain import skill_document
from beetle.runtime.areas.registry.guide import GUIDE
from beetle.runtime.areas.registry.showing import existing, latest_of, shown, version_shown
from beetle.runtime.host import skill_documents
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Plain, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Page, page
from beetle.store import evidence, skill_registry
from beetle.store.engine.transaction import Reading
from beetle.store.skill_registry import FIRST, RegistrySkillRow, SkillPosition

AT_ONCE = 100
"""Skills that are read of the store at a time."""
SEARCHABLE = (
    "text", "skill_ids", "names", "tags_any", "triggers_any", "uploaded_by_agent_ids", "uploaded_by_agent_names",
    "uploaded_by_agent_owners", "statuses", "formats", "schema_versions", "since", "until", "limit",
)  # fmt: skip
READ_PARAMETERS = ("skill_id", "version_id", "format")
DISABLED = "disabled"
"""What a revoked skill may be called too."""


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
    after = FIRST if request.cursor is None else SkillPosition(*read_cursor(invocation.key, bound_to, request.cursor))
    space = evidence.find_space(tx, invocation.space_id)
    return page(
        invocation,
        _fitting(invocation, tx, space, after, fits),
        request.limit,
        lambda row: shown(tx, row),
        bound_to=bound_to,
        place=lambda row: [row.updated_at, row.skill],
    )


def _fitting(
    invocation: Invocation,
    tx: Reading,
    space: int | None,
    after: SkillPosition,
    fits: Callable[[RegistrySkillRow], bool],
) -> Iterator[RegistrySkillRow]:
    while rows := skill_registry.list_skills(tx, space, after, AT_ONCE):
        for row in rows:
            invocation.check("the skills were looked through")
            if fits(row):
                yield row
        after = SkillPosition(rows[-1].updated_at, rows[-1].skill)


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
    unknown = sorted(found - set(known))
    if unknown:
        raise InvalidRequest(
            reason=f"Unknown word {unknown[0]!r} - at $.args.{field}",
            hint=f"known are {', '.join(known)}",
            path=f"$.args.{field}",
        )
    return found


def _uploaded_within(tx: Reading, row: RegistrySkillRow, since: int | None, until: int | None) -> bool:
    at = latest_of(tx, row).uploaded_at
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
    return any(text in each.casefold() for each in skill_documents.searched(content, latest_of(tx, row).format))


def read(invocation: Invocation, request: SkillRegistryReadRequest, tx: Reading) -> SkillRegistryReadReport:
    """One version, in either format."""
    form = skill_documents.format_of(request.format)
    row = existing(invocation, tx, request.skill_id)
    version = latest_of(tx, row)
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
    row = existing(invocation, tx, request.skill_id)
    bound_to = invocation.bound(request.chain_key, row.skill_id)
    after = -1 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    found = page(
        invocation,
        skill_registry.versions_of(tx, row.skill, after, request.limit + 1),
        request.limit,
        version_shown,
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


HANDLERS: Mapping[str, Handler] = {
    "skill_registry.md": Plain(skill_md),
    "skill_registry.list": Read(list_skills),
    "skill_registry.manifest": Plain(manifest),
    "skill_registry.search": Read(search),
    "skill_registry.read": Read(read),
    "skill_registry.versions": Read(versions),
}
