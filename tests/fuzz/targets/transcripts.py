"""Transcripts and memories of other programs: every reader of `beetle import`, and a host's own file as turns."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

from beetle.importing.files import NoFile, SourceFile, opened
from beetle.importing.formats import MARKDOWN, READERS, UnknownFormat
from beetle.importing.hosts import HostTurn, read_host
from beetle.importing.items import HOSTS, Format, Source
from tests.fuzz.contract import Broken, refusal_of
from tests.fuzz.mutation import changed_bytes, changed_json, changed_lines
from tests.fuzz.targets.prepared import SCOPE
from tests.fuzz.targets.target import Memory, Target

SAMPLES = Path(__file__).parents[2] / "importing/samples"
CAPTURED = 4
"""Turns of a file that are captured; the others are only read."""


class Transcripts(Target):
    most_bytes = 8_192
    tokens = (
        b"[", b"]", b"{", b"}", b'"', b"\\", b"null", b"\n", b"- [", b"# ", b"---\n", b'"\\ud800"', b"1e400", b"\xff",
        b'"type":"', b'"message":', b'"content":', b'"role":"user"', b'"timestamp":', b"permalink: ", b"\xef\xbb\xbf",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memory = Memory(folder)

    def __call__(self, data: bytes) -> None:
        for form, read in READERS.items():
            for layout in ("value",) if form in MARKDOWN or form == "mentisdb" else ("lines", "value"):
                for item in read(Source("file", "file", io.BytesIO(data), layout)):  # type: ignore[arg-type]
                    assert item is not None
        file = self.folder / "given"
        file.write_bytes(data)
        self._import(file)
        for host, form in HOSTS.items():
            self._capture(file, host, form)

    def _import(self, file: Path) -> None:
        before = self._memory.counts
        refused = refusal_of(lambda: self._memory.runtime.import_(file))
        self._memory.ask("transcript.conversations", {"limit": 5})
        if refused is not None and self._memory.counts != before:
            raise Broken(f"a file was refused with {refused.key}, and something of it was taken in")

    def _capture(self, file: Path, host: str, form: Format) -> None:
        try:
            with opened(SourceFile(str(file), "file", True), form) as found:
                turns = [each for each in read_host(found, host).turns if isinstance(each, HostTurn)]
        except (NoFile, UnknownFormat):
            return
        for each in turns[:CAPTURED]:
            self._memory.ask("turn.capture", each.request, SCOPE)

    def seeds(self) -> list[bytes]:
        files = [each for each in sorted(SAMPLES.rglob("*")) if each.is_file() and ".obsidian" not in each.parts]
        small = [each.read_bytes() for each in files if each.stat().st_size <= self.most_bytes]
        return [each for each in small if each]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With another value in its JSON, or another line."""
        first = data.lstrip()[:1]
        if first == b"[" or (first == b"{" and b"\n{" not in data.strip()):
            return changed_json(dice, data)
        if first == b"{":
            return changed_lines(dice, data)
        return changed_bytes(dice, data, self.tokens)

    def renew(self) -> None:
        self._memory.renew()

    def close(self) -> None:
        self._memory.close()
