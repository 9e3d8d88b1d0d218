"""The targets by name. A new one is a class of `Target` in a file of its own, and its line here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The fuzzer watches what is imported after it has begun.
    from tests.fuzz.targets.target import Target

TARGETS = {
    "archives": "archives:Archives",
    "chunk-trees": "chunk_trees:ChunkTrees",
    "config": "configuration:Configuration",
    "frames": "frames:Frames",
    "hooks": "hooks:Hooks",
    "manifest": "manifest:Manifest",
    "mcp": "mcp:McpLines",
    "replica": "replica:Replica",
    "rpc": "rpc:Rpc",
    "skills": "skills:Skills",
    "snapshots": "snapshots:Snapshots",
    "transcripts": "transcripts:Transcripts",
}


def opened(name: str, folder: Path) -> Target:
    """The target of that name, at work in an empty folder."""
    module, _, kind = TARGETS[name].partition(":")
    found: Target = getattr(import_module(f"tests.fuzz.targets.{module}"), kind)(folder)
    return found
