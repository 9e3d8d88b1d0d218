"""The run: a floor of plain SQLite, then a daemon on a temporary store that is written to, asked and started again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from beetle import __version__
from beetle.bench.daemon import PATIENCE_S, BenchDaemon, Launch
from beetle.bench.disk import is_counted, written_bytes
from beetle.bench.figures import Figure, Result
from beetle.bench.texts import question, turn_text
from beetle.contracts.errors import BeetleError, NoRoom, ServicesUnavailable, StoreReadOnly
from beetle.named_tuple import NamedTuple
from beetle.store.raw_floor import RawFloor

AT = "2026-01-02T03:04:05Z"
BATCH = 20
"""Turns of the larger commits."""
QUESTIONS = 200
"""At most, and no more than there are turns."""
STARTS = 2
LIMIT = 8
READY = "ready"
ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROJECTED_CHARS = 4000
KIB, MIB = 1024, 2**20
ROOM_BASE, ROOM_TURN = 64 * MIB, 24 * KIB
"""Room on the disk that a run may need: for each turn of each phase, with its log and its copy in a replica."""

Told = Callable[[str], None]


class Asked(NamedTuple):
    """What is measured. `turns` are written by one client, again by `clients` together, and again in larger commits."""

    turns: int = 2000
    clients: int = 8
    replica: bool = False


class TooLittleRoom(NoRoom):
    hint_template = "give fewer --turns, or a --folder on another disk"


class NoFolder(StoreReadOnly):
    hint_template = "give a --folder that this user may write to"


class Written(NamedTuple):
    """One phase of writing."""

    seconds: float
    text_bytes: int
    disk_bytes: int | None

    @property
    def amplification(self) -> float | None:
        """Bytes to the disk for each byte of text."""
        return None if self.disk_bytes is None else self.disk_bytes / self.text_bytes


def measure(asked: Asked, folder: Path, launch: Launch, on_progress: Told) -> Result:
    """Measure in a folder made in `folder` and removed afterwards. `tell` is told what is measured next.

    Raises:
        TooLittleRoom: the disk has less room than the run may need.
        NoFolder: nothing can be made in `folder`.
        ServicesUnavailable: the daemon does not start, or a client of it failed.
    """
    need = ROOM_BASE + ROOM_TURN * 3 * asked.turns
    if (free := shutil.disk_usage(folder).free) < need:
        raise TooLittleRoom(path=str(folder), needed=need, free=free)
    try:
        temporary = tempfile.TemporaryDirectory(prefix="beetle-bench-", dir=folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise NoFolder(path=str(folder), reason=error.strerror) from None
    with temporary as made:
        return _Run(asked, Path(made), launch, on_progress).result()


class _Run:
    def __init__(self, asked: Asked, folder: Path, launch: Launch, on_progress: Told) -> None:
        self._asked, self._folder, self._launch, self._tell = asked, folder, launch, on_progress
        self._counted = is_counted(folder)
        self._figures: list[Figure] = []

    def result(self) -> Result:
        """Every figure."""
        asked = self._asked
        self._tell("plain SQLite")
        floors = [_Floor(self._folder / "floor0", asked.turns, self._counted)]
        self._tell("starts on an empty store")
        self._starts("empty")
        wrote = self._write_and_ask(floors)
        self._tell("starts on the full store")
        self._starts("full")
        self._add("written_in_all", "written to disk for 1 KiB of text, whole run", "KiB", wrote)
        settings = {**asked._asdict(), "profile": self._launch.profile, "bytes_counted": self._counted}
        return Result(__version__, device(), settings, tuple(self._figures))

    def _add(
        self, name: str, title: str, unit: str, value: float | None, floor: float | None = None, *, more: bool = False
    ) -> None:
        self._figures.append(Figure(name, title, unit, value, floor, "more" if more else "less"))

    def _daemon(self) -> BenchDaemon:
        room = self._folder / "daemon"
        room.mkdir(mode=0o700, exist_ok=True)
        return BenchDaemon(room, self._launch, replica=self._asked.replica)

    def _starts(self, how: str) -> None:
        took, rss = [], 0.0
        for _ in range(STARTS):
            with self._daemon() as daemon:
                took.append(daemon.start_ms)
                rss = daemon.rss_mib()
        self._add(f"start_{how}", f"start to first answer, {how} store", "ms", middle(took))
        self._add(f"rss_{how}", f"memory when idle, {how} store", "MiB", rss)

    def _write_and_ask(self, floors: list[_Floor]) -> float | None:
        """Everything with one daemon; bytes that it wrote from start to end for each byte of text."""
        asked, phases = self._asked, []
        with self._daemon() as daemon:
            sidecar = self._sidecar(daemon)
            for title, clients, batch in (("1 client", 1, 1), (f"{asked.clients} clients", asked.clients, 1),
                                          (f"commits of {BATCH}", 1, BATCH)):  # fmt: skip
                self._tell(f"writes, {title}")
                phases.append((title, self._phase(daemon, sidecar, len(phases), clients, batch)))
            self._tell("plain SQLite again")
            floors.append(_Floor(self._folder / "floor1", asked.turns, self._counted))
            self._write_figures(phases, floors)
            self._tell("recall and projection")
            self._ask(daemon, floors[-1])
            self._add("rss_asked", "memory after all answers", "MiB", daemon.rss_mib())
        said = sum(each.text_bytes for _, each in phases)
        self._add(
            "store",
            "store for 1 KiB of text",
            "KiB",
            daemon.store.stat().st_size / said,
            middle([f.size for f in floors]),
        )
        written = daemon.written_in_all
        return written / said if self._counted and written is not None else None

    def _sidecar(self, daemon: BenchDaemon) -> int | None:
        """The process of the sidecar, once it has reached its target."""
        if not self._asked.replica:
            return None
        end = time.monotonic() + PATIENCE_S
        with daemon.client() as client:
            while (found := client.replication_status()).state != "replicating" and time.monotonic() < end:
                time.sleep(0.05)
        return found.pid

    def _phase(self, daemon: BenchDaemon, sidecar: int | None, number: int, clients: int, batch: int) -> Written:
        each = max(1, self._asked.turns // clients)
        before = daemon.written(sidecar)
        writers = range(100 * number, 100 * number + clients)
        seconds = together([lambda start, w=w: write(daemon, w, each, batch, start) for w in writers])
        said = sum(len(turn_text(writer, turn).encode()) for writer in writers for turn in range(each))
        return Written(seconds, said, daemon.written(sidecar) - before if self._counted else None)

    def _write_figures(self, phases: Sequence[tuple[str, Written]], floors: Sequence[_Floor]) -> None:
        for number, (title, phase) in enumerate(phases):
            key = ("one", "many", "batch")[number]
            clients = self._asked.clients if key == "many" else 1
            count = max(1, self._asked.turns // clients) * clients
            rate = middle([each.batch.rate if key == "batch" else each.single.rate for each in floors])
            disk = [each.batch.amplification if key == "batch" else each.single.amplification for each in floors]
            raw = middle([each for each in disk if each is not None]) if None not in disk else None
            self._add(f"ingest_{key}", f"acknowledged turns, {title}", "/s", count / phase.seconds, rate, more=True)
            self._add(f"written_{key}", f"written to disk for 1 KiB of text, {title}", "KiB", phase.amplification, raw)

    def _ask(self, daemon: BenchDaemon, floor: _Floor) -> None:
        questions = questions_of(self._asked.turns)
        with daemon.client() as client:
            recalls = times(questions, lambda each: client.recall(query=each, limit=LIMIT))
            projects = times(questions, lambda each: client.project(user_query=each, system_max_len=PROJECTED_CHARS))
        shares = ((50, "p50"), (99, "p99"))
        for share, name in shares:
            self._add(f"recall_{name}", f"recall, {name}", "ms", quantile(recalls, share), quantile(floor.found, share))
        for share, name in shares:
            self._add(f"project_{name}", f"projection, {name}", "ms", quantile(projects, share))


class _Rate(NamedTuple):
    rate: float
    amplification: float | None


class _Floor:
    """Plain SQLite on the same texts: a commit a turn, then commits of `BATCH`, then the questions."""

    def __init__(self, path: Path, turns: int, counted: bool) -> None:
        texts = [turn_text(0, number) for number in range(turns)]
        larger = [turn_text(200, number) for number in range(turns)]
        raw = RawFloor(str(path))
        self.single = self._timed(raw, [[each] for each in texts], counted)
        self.batch = self._timed(raw, [larger[at : at + BATCH] for at in range(0, turns, BATCH)], counted)
        self.found = times(questions_of(turns), lambda each: raw.find(each, LIMIT))
        raw.close()
        said = sum(len(each.encode()) for each in texts + larger)
        self.size = path.stat().st_size / said

    @staticmethod
    def _timed(raw: RawFloor, commits: Sequence[Sequence[str]], counted: bool) -> _Rate:
        before, began = written_bytes(os.getpid()), time.perf_counter()
        for each in commits:
            raw.commit(each)
        seconds, after = time.perf_counter() - began, written_bytes(os.getpid())
        turns = sum(map(len, commits))
        said = sum(len(text.encode()) for each in commits for text in each)
        known = counted and before is not None and after is not None
        return _Rate(turns / seconds, (after - before) / said if known else None)  # type: ignore[operator]


def write(daemon: BenchDaemon, writer: int, turns: int, batch: int, start: Callable[[], None]) -> None:
    """One client: commit so many turns, so many at a time."""
    with daemon.client() as client:
        client.hello()
        start()
        for first in range(0, turns, batch):
            made = [_turn(writer, number) for number in range(first, min(first + batch, turns))]
            client.commit_transcript(conversation={"conversation_id": f"w{writer}"}, turns=made)


def _turn(writer: int, number: int) -> dict[str, Any]:
    name = f"{writer}-{number}"
    message = {"message_id": name, "role": "user", "content": turn_text(writer, number)}
    return {"turn_id": name, "at": AT, "messages": [message]}


def together(works: Sequence[Callable[[Callable[[], None]], None]]) -> float:
    """Seconds from the first beginning to the last end, each in a process of its own: threads would share one lock."""
    gates = [os.pipe() for _ in works]
    told_read, told_write = os.pipe()
    children: list[int] = []
    try:
        for work, (gate, _) in zip(works, gates, strict=True):
            # A signal waits until a child has its own answer to it, and its parent knows of the child.
            allowed = signal.pthread_sigmask(signal.SIG_BLOCK, ENDED_BY)
            try:
                pid = os.fork()
                if pid == 0:
                    # Only this process has them: a child reads the end of its gate when it is gone.
                    for _, opened in gates:
                        os.close(opened)
                    _in_child(work, gate, told_write, allowed)
                children.append(pid)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
        os.close(told_write)
        with open(told_read, encoding="ascii") as told:
            _all_say(READY, told, len(works))
            for _, opened in gates:
                os.write(opened, b"!")
            spans = [json.loads(line) for line in _all_say("[", told, len(works))]
    except BaseException:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        for each in (end for gate in gates for end in gate):
            os.close(each)
        for pid in children:
            os.waitpid(pid, 0)
    return max(end for _, end in spans) - min(began for began, _ in spans)


def _all_say(what: str, told: IO[str], count: int) -> list[str]:
    """A line of each, which begins so.

    Raises:
        ServicesUnavailable: one says something else: what it failed by.
    """
    lines = [told.readline() for _ in range(count)]
    for each in lines:
        if not each.startswith(what):
            raise ServicesUnavailable(reason=f"a client failed: {each.strip()}", hint="`beetle doctor`")
    return lines


def _in_child(
    work: Callable[[Callable[[], None]], None], gate: int, told: int, allowed: Collection[int | signal.Signals]
) -> None:
    """Never returns. `allowed` is the mask of signals that it works with."""
    outcome, began = "a defect", 0.0
    for each in ENDED_BY:
        if callable(signal.getsignal(each)):  # one that is ignored, as by nohup, stays so
            signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, allowed)

    def start() -> None:
        nonlocal began
        os.write(told, f"{READY}\n".encode())
        if not os.read(gate, 1):
            os._exit(1)
        began = time.monotonic()

    try:
        work(start)
        outcome = json.dumps([began, time.monotonic()])
    except (BeetleError, OSError) as error:
        outcome = str(error).replace("\n", " ")[:1000]
    finally:
        os.write(told, f"{outcome}\n".encode())
        os._exit(0)


def questions_of(turns: int) -> list[str]:
    """What is asked of so many turns."""
    return [question(number) for number in range(min(QUESTIONS, turns))]


def times(questions: Sequence[str], ask: Callable[[str], object]) -> list[float]:
    """Milliseconds of each, after a tenth of them have been asked once."""
    for each in questions[: len(questions) // 10]:
        ask(each)
    return list(_timed(questions, ask))


def _timed(questions: Sequence[str], ask: Callable[[str], object]) -> Iterator[float]:
    for each in questions:
        began = time.perf_counter()
        ask(each)
        yield (time.perf_counter() - began) * 1000


def quantile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def middle(values: Sequence[float]) -> float:
    """The mean of the middle one or two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def device() -> dict[str, Any]:
    """The machine that was measured."""
    system = os.uname()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    return {"machine": system.machine, "kernel": system.release, "cores": os.cpu_count(), "memory_mib": memory}
