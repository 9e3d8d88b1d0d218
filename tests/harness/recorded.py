"""Shared by the tests of the harness: small fixtures, and the repository's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from beetle.harness.files import OWN_FOLDER, load

Plain = dict[str, Any]
OWN = load(None, ())
"""The repository's own fixtures and benchmarks."""

SKILL = {
    "name": "pump",
    "topic": "pump",
    "title": "Quiet the pump",
    "summary": "When it is loud.",
    "content": "1. Stop.",
}
WRITE = {"op": "memory.write", "args": {"kind": "procedural", "source": "manual", "writes": [SKILL]}}
RECALL = {"op": "memory.recall", "args": {"query": "loud pump"}}


def fixture(*steps: Plain, name: str = "small", subject: str = "recall", **more: Any) -> Plain:
    """A fixture as its file holds it; it shares nothing with another."""
    head = {"schema": "beetle.fixture.v1", "name": name, "subject": subject, "about": "a test", "steps": list(steps)}
    return json.loads(json.dumps({**head, "start": "2025-01-01T00:00:00Z", **more}))


def works() -> Plain:
    """A small fixture that passes."""
    return fixture(WRITE, {**RECALL, "expect": [{"check": "hit", "plane": "procedural", "rank_at_most": 1}]})


def write(folder: Path, *documents: Plain) -> str:
    """Files of these fixtures; the folder's path."""
    for each in documents:
        (folder / f"{each['name']}.json").write_text(json.dumps(each), encoding="utf-8")
    return str(folder)


def own_document(name: str) -> Plain:
    """One of the repository's own, as its file holds it."""
    return json.loads((OWN_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
