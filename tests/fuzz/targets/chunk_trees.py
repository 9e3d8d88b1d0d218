"""Folders of JSON chunk files: chunk.import_tree and the reader of one file."""

from __future__ import annotations

import base64
from pathlib import Path
from random import Random

from beetle.chunk_tree.archive import Member, packed
from beetle.chunk_tree.document import ChunkDocument, read_chunk, written
from beetle.contracts.codec import to_plain
from tests.fuzz.mutation import changed_archive, changed_json
from tests.fuzz.targets.prepared import SCOPE, fill
from tests.fuzz.targets.target import Memory, Target

PLACE = "chunks/2026-02/chunk-2026-02-10-a1b2c3d4.json"


class ChunkTrees(Target):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memory = Memory(folder, fill)

    def __call__(self, data: bytes) -> None:
        found = read_chunk(data, PLACE)
        if isinstance(found, ChunkDocument):
            assert read_chunk(written(found).encode(), PLACE) == found
        if not data:
            return
        dry = self._memory.ask("chunk.import_tree", {"archive": data, "dry_run": True}, SCOPE)
        taken = self._memory.ask("chunk.import_tree", {"archive": data}, SCOPE)
        assert (dry is None) == (taken is None)
        if taken is not None:
            self._memory.ask("chunk.export_tree", {}, SCOPE)

    def seeds(self) -> list[bytes]:
        tree = to_plain(self._memory.call("chunk.export_tree", {}, SCOPE))
        chunk = _chunk("a1b2c3d4", {"related_to": ["chunk-2026-02-10-b1b2c3d4"], "follows": []})
        other = _chunk("b1b2c3d4", {"contradicts": ["chunk-2026-02-10-a1b2c3d4"]})
        return [
            base64.b64decode(tree["archive"]) if isinstance(tree["archive"], str) else tree["archive"],
            packed([chunk, other, Member("archive/2026-02/chunk-2026-02-10-c1b2c3d4.json", other.data)]),
            chunk.data,
        ]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With a changed file in an archive that is whole."""
        return changed_json(dice, data) if data[:1] == b"{" else changed_archive(dice, data, changed_json)

    def renew(self) -> None:
        self._memory.renew()

    def close(self) -> None:
        self._memory.close()


def _chunk(name: str, links: dict[str, list[str]]) -> Member:
    import json

    chunk_id = f"chunk-2026-02-10-{name}"
    document = {
        "id": chunk_id, "content": "a note of a tree", "summary": "a note", "tokens": 5, "type": "note",
        "metadata": {
            "created": "2026-02-10T21:37:00Z", "conversation_id": "tree", "confidence": 0.5, "access_count": 2,
            "last_accessed": "2026-02-11T21:37:00Z", "source": "import",
        },
        "links": links, "tags": ["a", "b"], "more": {"kept": [1, 2.5, None]},
    }  # fmt: skip
    return Member(f"chunks/2026-02/{chunk_id}.json", json.dumps(document).encode())
