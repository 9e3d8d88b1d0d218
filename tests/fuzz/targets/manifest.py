"""The list of files of a built tree: read_manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random

from beetle.deploy.manifest import read_manifest
from tests.fuzz.contract import Broken, refusal_of
from tests.fuzz.mutation import changed_bytes
from tests.fuzz.targets.target import Target
from tests.trees import make_tree


class Manifest(Target):
    tokens = (b"link - - ", b" -> ", b"/../", b" 755 ", b" 644 ", b"\xff", b"\x00")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._file = folder / "MANIFEST"

    def __call__(self, data: bytes) -> None:
        self._file.write_bytes(data)
        found = []
        refusal_of(lambda: found.append(read_manifest(str(self._file))))
        for manifest in found:
            for entry in manifest.entries:
                if entry.path.startswith("/") or ".." in entry.path.split("/"):
                    raise Broken(f"{entry.path!r} leads out of the tree")

    def seeds(self) -> list[bytes]:
        tree = make_tree(self.folder / "tree", {"beetle": b"#!", "_internal/a b": b""}, {"_internal/up": "../beetle"})
        return [(tree / "MANIFEST").read_bytes()]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With a name that is that of its lines."""
        head, _, body = data.partition(b"\n")
        body = changed_bytes(dice, body, self.tokens)
        if dice.random() < 0.3:
            body = b"\n".join(sorted(body.split(b"\n")[:-1], key=lambda line: line.split(b" ", 3)[-1])) + b"\n"
        name = head.rpartition(b"-")[0] + b"-" + hashlib.sha256(body).hexdigest()[:12].encode()
        return name + b"\n" + body
