from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.conformance.doors import InProcess, Plain

BACKUP = """\
---
schema_version: 1
name: Nightly backup
description: Copy the store each night.
tags:
  - ops
  - Storage
triggers: [backup, "restore drill"]
warnings:
  - It needs twice the store's size.
---
# Nightly backup

Begin with the small stores.

## Steps

1. Copy it.
"""
numbers = count()


class Registry:
    """The skill registry of an owner of its own."""

    def __init__(self, door: InProcess, owner: str) -> None:
        self.door = door
        self.owner = owner

    def ask(self, op: str, **args: Any) -> Plain:
        return self.door.call(f"skill_registry.{op}", args, {"owner_id": self.owner})

    def upload(self, content: str = BACKUP, **more: Any) -> Plain:
        return self.ask("upload", **{"agent_id": "agent-main", "content": content, **more})["skill"]

    def refused(self, key: str, op: str, **args: Any) -> Any:
        return self.door.refused(key, f"skill_registry.{op}", args, {"owner_id": self.owner})

    def refused_upload(self, content: str, key: str = "invalid_request", **more: Any) -> Any:
        return self.refused(key, "upload", **{"agent_id": "agent-main", "content": content, **more})

    def found(self, **filters: Any) -> list[str]:
        return [each["skill_id"] for each in self.ask("search", **filters)["skills"]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    door = InProcess("nobody", tmp_path_factory.mktemp("registry") / "store.db")
    yield door
    door.close()


@pytest.fixture
def registry(opened: InProcess) -> Registry:
    return Registry(opened, f"owner-{next(numbers)}")


def skill(name: str, text: str = "do it", **fields: str) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in {"description": f"how to {name}", **fields}.items())
    return f"---\nname: {name}\n{head}---\n# {name}\n\n{text}\n"
