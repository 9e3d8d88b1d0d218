"""Sends the versions of skills of another registry: each once, in their order."""

from __future__ import annotations

from typing import Any, Final, cast

from beetle.asking import Asked, Asking
from beetle.contracts.codec import convert_request
from beetle.contracts.skill_registry import (
    SkillRegistrySearchReport,
    SkillRegistryUploadRequest,
    SkillRegistryVersionsReport,
)
from beetle.importing.items import SkillStanding, SkillVersion
from beetle.named_tuple import NamedTuple

STANDINGS: Final = {"deprecated": "skill_registry.deprecate", "revoked": "skill_registry.revoke"}


class _Skill(NamedTuple):
    """A skill: what it is, the hashes of the versions that are there, and how many of these were met."""

    skill_id: str
    status: str
    there: list[str]
    met: int = 0


class SkillSender:
    """Takes versions of skills; those of one follow each other.

    Args:
        sends: whether anything is sent; otherwise it is only checked.
    """

    def __init__(self, sends: bool) -> None:
        self._sends = sends
        self._skill: _Skill | None = None

    def version(self, item: SkillVersion) -> Asking[bool | None]:
        """Upload a version; whether it is new, None where nothing is sent.

        Raises:
            BeetleError: it is refused.
        """
        arguments = {
            "skill_id": item.skill_id, "agent_id": item.agent_id, "format": item.format, "content": item.content,
        }  # fmt: skip
        convert_request(arguments, SkillRegistryUploadRequest, "$")
        if not self._sends:
            return None
        skill = yield from self._known(item.skill_id)
        if item.digest in skill.there[skill.met :]:
            self._skill = skill._replace(met=skill.there.index(item.digest, skill.met) + 1)
            return False
        yield Asked("skill_registry.upload", arguments)
        there = [*skill.there, item.digest]
        self._skill = skill._replace(there=there, met=len(there), status="active")
        return True

    def standing(self, item: SkillStanding) -> Asking[None]:
        """Deprecate or revoke a skill that is active, unless it has a later version of its own.

        Raises:
            BeetleError: it is refused.
        """
        if not self._sends or item.status not in STANDINGS:
            return
        skill = yield from self._known(item.skill_id)
        if skill.there and skill.status == "active" and skill.there[-1] == item.last_digest:
            said = {} if item.reason is None else {"reason": item.reason}
            yield Asked(STANDINGS[item.status], {"skill_id": item.skill_id, **said})

    def _known(self, skill_id: str) -> Asking[_Skill]:
        if self._skill is None or self._skill.skill_id != skill_id:
            asked = Asked("skill_registry.search", {"skill_ids": [skill_id]})
            searched = cast(SkillRegistrySearchReport, (yield asked))
            status = next((each.status for each in searched.skills if each.skill_id == skill_id), None)
            there = [] if status is None else (yield from _digests(skill_id))
            self._skill = _Skill(skill_id, status or "active", there)
        return self._skill


def _digests(skill_id: str) -> Asking[list[str]]:
    found: list[str] = []
    asked: dict[str, Any] = {"skill_id": skill_id}
    while True:
        page = cast(SkillRegistryVersionsReport, (yield Asked("skill_registry.versions", asked)))
        found += [each.content_hash or "" for each in page.versions]
        if not page.has_more:
            return found
        asked = {"skill_id": skill_id, "cursor": page.next_cursor}
