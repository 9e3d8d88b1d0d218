"""`mentisdb-skills.bin`: the skill registry of MentisDB, with each version's text as it was uploaded.

The first version of a skill is whole, a later one is a unified diff to the one before. The text that comes out is
compared with the hash that stands beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from beetle.importing.bincode import Decoder, Malformed
from beetle.importing.items import Item, Items, Problem, SkillStanding, SkillVersion, Source, SourceLocation
from beetle.importing.patches import BadPatch, patched
from beetle.named_tuple import NamedTuple

REGISTRY_VERSION: Final = 2
FORMATS: Final = ("markdown", "json")
STATUSES: Final = ("active", "deprecated", "revoked")
CONTENTS: Final = ("full", "delta")
MOST_BYTES: Final = 64 * 2**20
MOST_SKILLS: Final = 100_000
MOST_VERSIONS: Final = 100_000
MOST_CHARS: Final = 2**22
"""Longest text of a version that is made; MentisDB takes in a million bytes."""
MOST_MADE: Final = 2**28
"""Characters that all texts of a registry make together: a small file may hold many changes to a long text."""


class _Version(NamedTuple):
    place: SourceLocation
    number: int
    agent_id: str
    format: str
    digest: str
    content: str
    text: str


def read(source: Source) -> Items:
    """The versions of each skill, the oldest first, and what the skill is behind them."""
    data = source.stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        yield Problem(None, f"the file is longer than {MOST_BYTES:,} bytes")
        return
    found = Decoder(data)
    try:
        version = found.number(32)
        if version != REGISTRY_VERSION:
            raise Malformed(0, f"registry version {version} is not {REGISTRY_VERSION}, the one that is read")
        yield from _skills(found)
        if found.left:
            raise Malformed(found.position, f"{found.left:,} bytes stand behind the registry's end")
    except Malformed as error:
        yield Problem(SourceLocation("byte", error.position), f"{error.reason}; nothing behind it can be read")


def _skills(found: Decoder) -> Iterator[Item]:
    budget = _Budget()
    for _ in found.many(lambda: None, MOST_SKILLS):
        yield from _skill(found, budget)


class _Budget:
    """What the texts of a file may make together."""

    def __init__(self) -> None:
        self.left = MOST_MADE

    def spend(self, text: str) -> None:
        """Raises BadPatch where a text is too much."""
        self.left -= len(text)
        if self.left < 0:
            raise BadPatch(f"the texts of this file are more than {MOST_MADE:,} characters together")


def _skill(found: Decoder, budget: _Budget) -> Iterator[Item]:
    begin = SourceLocation("byte", found.position)
    found.text()
    skill_id = found.text()
    found.text()
    found.text()
    status = found.variant(STATUSES)
    reason = found.optional(found.text)
    before: str | None = None
    last = ""
    for version in found.many(lambda: _version(found), MOST_VERSIONS):
        last = version.digest
        try:
            before = _text(version, before)
            budget.spend(before)
            digest = hashlib.sha256(before.encode()).hexdigest()
            if digest != version.digest:
                raise BadPatch("its text is not the one that its content_hash is of")
        except BadPatch as error:
            yield Problem(version.place, f"version {version.number} of the skill {skill_id!r}: {error}")
        else:
            yield SkillVersion(version.place, skill_id, version.agent_id, version.format, before, digest)
    yield SkillStanding(begin, skill_id, status, reason, last)


def _version(found: Decoder) -> _Version:
    place = SourceLocation("byte", found.position)
    found.uuid()
    number = found.number(32)
    found.text()
    agent_id = found.text()
    found.optional(found.text)
    found.optional(found.text)
    form = found.variant(FORMATS)
    digest = found.text()
    content = found.variant(CONTENTS)
    text = found.text()
    found.optional(found.text)
    found.optional(found.data)
    return _Version(place, number, agent_id, form, digest, content, text)


def _text(version: _Version, before: str | None) -> str:
    if version.content == "full":
        return version.text
    if before is None:
        raise BadPatch("it is a change to a version that is not there")
    return patched(before, version.text, MOST_CHARS)
