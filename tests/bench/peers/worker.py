"""A process of `tests.bench.peers.work`, as the one that measures sees it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.peers.stores import KINDS, Settings
from tests.running import ROOT, rss_mib

OFFLINE = {
    "ANONYMIZED_TELEMETRY": "False", "MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
}  # fmt: skip
"""What keeps the libraries from speaking to anybody."""


class NotInstalled(Exception):
    """The library is not there."""


class Ended(Exception):
    """The process ended before it answered; the text is the last line of its log."""


class Worker:
    """A store of that name in `folder`, in a process of its own, with the interpreter that has its library.

    Raises:
        NotInstalled, Ended: it cannot be opened.
    """

    def __init__(self, name: str, folder: Path, settings: Settings, python: str, *, prefix: Sequence[str] = ()) -> None:
        folder.mkdir(exist_ok=True)
        home = folder.with_name(folder.name + ".home")
        home.mkdir(exist_ok=True)
        self._log = folder.with_name(folder.name + ".log")
        interpreter = sys.executable if KINDS[name].library is None else python
        own = {"HOME": str(home), "MEM0_DIR": str(home / "mem0")}
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [*prefix, interpreter, "-m", "tests.bench.peers.work", name, str(folder),
                 json.dumps(settings._asdict())],
                cwd=ROOT, env={**os.environ, **OFFLINE, **own}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True,
            )  # fmt: skip
        try:
            opened = self._answer()
        except Ended:
            self.close()
            raise
        if "missing" in opened:
            self.close()
            raise NotInstalled(opened["missing"])
        self.version: str = opened["version"]

    def do(self, what: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a request of `tests.bench.peers.work`.

        Raises:
            Ended: it failed.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Ended(self._last_line()) from None
        return self._answer()

    def close(self) -> int:
        """Its exit code, when all that it started has ended too."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # something was left to be written, and the process is gone
            self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def rss_mib(self) -> list[float]:
        """Resident memory of the process and of each that it started."""
        return [rss_mib(pid) for pid in family(self._process.pid)]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            self._process.wait()
            raise Ended(self._last_line())
        return json.loads(line)

    def _last_line(self) -> str:
        return (self._log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]


def family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from family(int(child))


def started(name: str, folder: Path, settings: Settings, python: str, question: str) -> tuple[Worker, float]:
    """A worker, and the milliseconds from starting its process to its first answer."""
    began = time.perf_counter()
    worker = Worker(name, folder, settings, python)
    if KINDS[name].finds:
        worker.do("ask", questions=[question])
    return worker, (time.perf_counter() - began) * 1000


def disk_bytes(folder: Path) -> int:
    """What the files of a folder take on the disk."""
    return sum(each.stat().st_blocks * 512 for each in folder.rglob("*") if each.is_file())
