"""The mounted folders of Agent Skills of one runtime, and their last scan, kept fresh.

What reads folders is loaded with the first look at them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from beetle.named_tuple import NamedTuple
from beetle.runtime.host.profile import Budgets

if TYPE_CHECKING:
    from beetle.domain.skill_matching import SkillWords
    from beetle.runtime.host.skill_folder import Finding, Mark, Measured, Mount, SkillFolder

RENEW_SECONDS = 2.0
"""How long a scan is taken as it is; then the folders are looked at, and read again only when something changed."""


class Scan(NamedTuple):
    """The summaries of every mount, by mount and name, and what was found wrong."""

    skills: tuple[SkillFolder, ...]
    findings: tuple[Finding, ...]
    clipped: bool
    words: SkillWords
    marks: tuple[Mark, ...]


class AgentSkills:
    """What the host has mounted, for one runtime. Nothing is read before the first need."""

    def __init__(self, dirs: tuple[str, ...], budgets: Budgets, ticks: Callable[[], float] = time.monotonic) -> None:
        """Takes absolute folders; `ticks` answers seconds."""
        self.mounts = _named(dirs)
        self._budgets = budgets
        self._ticks = ticks
        self._lock = threading.Lock()
        self._scan: Scan | None = None
        self._looked = 0.0
        self._fingerprints: dict[tuple[str, str], str] = {}

    def present(self) -> Scan:
        """The last scan, made anew when a mount changed since; looked for at most once in `RENEW_SECONDS`."""
        known = self._scan
        if known is not None and self._ticks() - self._looked < RENEW_SECONDS:
            return known
        # Who comes while another looks takes what there is: a slow disk holds one recall up, not all of them.
        if not self._lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            marks = self._marks()
            if self._scan is None or self._scan.marks != marks:
                self._scan = self._anew(marks)
            self._looked = self._ticks()
            return self._scan
        finally:
            self._lock.release()

    def anew(self) -> Scan:
        """A new scan, whatever the last one says."""
        with self._lock:
            self._scan = self._anew(self._marks())
            self._looked = self._ticks()
            return self._scan

    def _marks(self) -> tuple[Mark, ...]:
        from beetle.runtime.host.skill_folder import mark

        return tuple(mark(each) for each in self.mounts)

    def measured(self, skills: tuple[SkillFolder, ...], among: Scan) -> list[tuple[Measured, bool | None]]:
        """The files of some skills of a scan, and whether each changed since it was measured last.

        All of them together are read up to the profile's bytes.
        """
        from beetle.runtime.host.skill_folder import measure

        room = self._budgets.agent_skill_bytes
        found: list[tuple[Measured, bool | None]] = []
        mounts = {each.mount: each for each in self.mounts}
        for skill in skills:
            apart = tuple(each.folder for each in among.skills if each.mount == skill.mount) if not skill.folder else ()
            one = measure(mounts[skill.mount], skill, apart, self._budgets.agent_skill_depth, room)
            room -= one.read
            found.append((one, self._changed(skill, one.fingerprint)))
        return found

    def _changed(self, skill: SkillFolder, fingerprint: str | None) -> bool | None:
        if fingerprint is None:
            return None
        with self._lock:
            before = self._fingerprints.get((skill.mount, skill.name))
            self._fingerprints[skill.mount, skill.name] = fingerprint
        return None if before is None else before != fingerprint

    def _anew(self, marks: tuple[Mark, ...]) -> Scan:
        from beetle.domain.skill_matching import SkillWords
        from beetle.runtime.host.skill_folder import scan

        # The marks were taken before: what changes while the folders are read is seen the next time.
        skills: list[SkillFolder] = []
        findings: list[Finding] = []
        clipped = False
        for mount in self.mounts:
            one = scan(mount, self._budgets.agent_skill_count - len(skills))
            skills.extend(one.skills)
            findings.extend(one.findings)
            clipped |= one.clipped
        skills.sort(key=lambda each: (each.mount, each.name))
        words = SkillWords((each.name, each.description) for each in skills)
        known = {(each.mount, each.name) for each in skills}
        self._fingerprints = {key: value for key, value in self._fingerprints.items() if key in known}
        return Scan(tuple(skills), tuple(findings), clipped, words, marks)


def _named(dirs: tuple[str, ...]) -> tuple[Mount, ...]:
    """Each folder once, under its last name; a number tells those of one name apart."""
    if not dirs:
        return ()
    from beetle.runtime.host.skill_folder import Mount

    mounts: dict[str, Mount] = {}
    for path in dict.fromkeys(each.rstrip("/") or "/" for each in dirs):
        base = path.rpartition("/")[2] or "root"
        name, number = base, 1
        while name in mounts:
            number += 1
            name = f"{base}-{number}"
        mounts[name] = Mount(name, path)
    return tuple(mounts.values())
