"""Contents of uploaded skills: reading them as documents, and putting versions together from what is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import cast

from beetle.contracts.errors import IntegrityViolation, InvalidRequest
from beetle.contracts.skill_registry import FORMATS, SkillFormat
from beetle.domain import skill_document
from beetle.domain.deltas import Damaged, Encoding, Packed, pack_next, pack_whole, unpack
from beetle.domain.skill_document import PATH, Document
from beetle.runtime.host.front_matter import Unreadable, read_mapping
from beetle.store import skill_registry
from beetle.store.damaged_rows import is_readable
from beetle.store.engine.transaction import Reading
from beetle.store.skill_registry import BodyRow

WANTED = ("schema_version", "name", "description", "tags", "triggers", "warnings")
WHOLE_EVERY = 8
"""A version is read from at most so many rows."""
MOST_BYTES = 1 << 24
"""No version is larger, whatever its row says."""
OTHER_NAMES = {"md": "markdown"}


def format_of(text: str, path: str = "$.args.format") -> SkillFormat:
    """A format, whatever its case.

    Raises:
        InvalidRequest: there is no such format.
    """
    name = text.strip().lower()
    name = OTHER_NAMES.get(name, name)
    if name not in FORMATS:
        raise InvalidRequest(reason=f"unknown format - at {path}", hint="give markdown, md or json", path=path)
    return name


def document_of(content: str, form: str) -> Document:
    """What a content says.

    Raises:
        InvalidRequest: it cannot be taken; `path` and, where one is to blame, `field` tell where.
    """
    if "\x00" in content:
        raise InvalidRequest(
            reason=f"the skill cannot be taken: it holds a NUL character - at {PATH}",
            hint="a skill is text; take it out",
            path=PATH,
        )
    if form == "json":
        return skill_document.of_json(content)
    front, body = skill_document.split_markdown(content)
    values = {} if front is None else read_mapping(front, WANTED)
    if isinstance(values, Unreadable):
        raise InvalidRequest(
            reason=f"the skill cannot be taken: {values.reason} - at {PATH}", hint=values.hint, path=PATH
        )
    return skill_document.of_markdown(values, body)


def searched(content: str, form: str) -> Iterable[str]:
    """The texts of a stored content that a search looks through, beside what the skill's own row says."""
    if form == "json":
        return skill_document.of_json(content).searched
    intro, sections = skill_document.sections_of(skill_document.split_markdown(content)[1])
    return (intro, *(text for section in sections for text in (section.heading, section.body)))


def rendered(content: str, source: str, wanted: str) -> str:
    """A content in a format: in its own as it is."""
    if source == wanted:
        return content
    found = document_of(content, source)
    return skill_document.to_json(found) if wanted == "json" else skill_document.to_markdown(found)


def hash_of(content: bytes) -> bytes:
    """SHA-256 of a content."""
    return hashlib.sha256(content).digest()


def packed(tx: Reading, skill: int | None, number: int, content: bytes) -> Packed:
    """A new version's content as it is stored: after the version before it, and each so many by itself."""
    if skill is None or number % WHOLE_EVERY == 0:
        return pack_whole(content)
    return pack_next(content_bytes(tx, skill, number - 1), content)


def content_bytes(tx: Reading, skill: int, number: int) -> bytes:
    """The content of a version, byte for byte.

    Raises:
        IntegrityViolation: what is stored does not make the content that was uploaded.
    """
    found: bytes | None = None
    reached = -1
    for body in skill_registry.bodies_to(tx, skill, number):
        found, reached = unpacked(body, found), body.number
    if found is None or reached != number:
        raise IntegrityViolation(reason="the content of this version is damaged: it cannot be read")
    return found


def unpacked(body: BodyRow, before: bytes | None) -> bytes | None:
    """The content of one row, given that of the version before; None where it is damaged."""
    if not is_readable(numbers=(body.size,), blobs=(body.packed,)) or not 0 <= body.size <= MOST_BYTES:
        return None
    try:
        found = unpack(Packed(cast(Encoding, body.encoding), body.packed), body.size, before)
    except Damaged:
        return None
    return found if hash_of(found) == body.content_hash else None
