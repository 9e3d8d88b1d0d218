"""Folders of Agent Skills for tests."""

from __future__ import annotations

from pathlib import Path

from beetle.runtime.host.profile import load_profile
from beetle.runtime.host.skill_folder import Measured, Mount, MountScan, measure, scan

BUDGETS = load_profile("standalone").budgets


def write_skill(folder: Path, name: str, description: str = "Rotate and merge PDF pages.", **files: str) -> Path:
    """A skill in a folder of its own; `files` are its resources, with `__` for a slash."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n")
    for path, text in files.items():
        file = folder / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def scanned(path: Path, most: int = 100) -> MountScan:
    """The scan of one mount."""
    return scan(Mount("skills", str(path)), most)


def names(found: MountScan) -> list[str]:
    return [each.name for each in found.skills]


def told(found: MountScan | Measured) -> list[tuple[str, str]]:
    """(kind, path) of the findings, sorted."""
    return sorted((each.kind, each.path) for each in found.findings)


def measured(path: Path, depth: int = 6, room: int = 1 << 20) -> Measured:
    """The files of the one skill of a mount."""
    found = scanned(path)
    (skill,) = found.skills
    return measure(Mount("skills", str(path)), skill, (), depth, room)
