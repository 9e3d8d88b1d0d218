"""The power goes at every single step that a write makes on the disk: what the store is then.

`python -m tests.faults.power_cut [--operation NAME] [--backend NAME] [--points all|N] [--seeds N] [--seed S]` runs each
operation of the table of cases that changes something once, over a disk that is recorded (tests/faults/power_disk.py).
Then the files are made that the disk may hold after a cut at each step: nothing of what was not synced, and `--seeds`
times some of it. The log's index (`-shm`), which nobody syncs, holds anything: noise, or the index of a later log. Each
is opened as the product opens a store, and looked through; identical files once.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from beetle.contracts.errors import BeetleError
from beetle.open import UNFILLED
from beetle.store.engine.transaction import Reading
from tests.building import step, talk, turn
from tests.cases import CASES, CHAIN, RECORD, WORD, Case, Prepared
from tests.conformance.doors import InProcess
from tests.faults.power_disk import Change, Disk, Moment

BACKENDS = ("sqlite", "file", "embedded")
OWNER = "owner-one"
PROFILE = "dev-full"
KEY = "the request before the cut"
FINISH_S = 30.0
INDEX = "b.db-shm"
INDEX_BYTES = 32_768
"""The first piece of it, which has its header."""
CANARY = "wrzqxyvkbnm"
LEFT_OUT = {"subscribe", "unsubscribe", "harness.run"}
"""They write nothing to the store, or to a store of their own."""
OPENING = "opening"
SEVERAL: Mapping[str, str] = {
    "admin.rebuild_toc": "makes the table of contents anew day by day; what is left to do stands in its outbox",
    "chunk.import_tree": "a part at a time; the next opening goes on, and nothing is left of the request's key",
    "snapshot.restore": "puts the snapshot in the store's place, and then notes the request in it",
    "store.repair": "puts the new store in the old one's place, fills its index, and then notes the request in it",
    "transcript.lifecycle, delete_raw": "erases slice by slice; the next opening goes on, and notes what it did itself",
    "memory.forget, confirmed": "takes away slice by slice; the next opening goes on",
}
"""Writes of several transactions: a cut may come between them. Repeated, the request ends as it would have."""
REFUSED_AGAIN = {"snapshot.restore": "conflict"}
"""Of those, what is refused once it has been done without being noted: the error says that it was."""
TABLES_SQL = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
HOUSEKEEPING = {"log_head", "event_log", "event_place", "pending_erasure", "table_seal", "row_seal", "scheduled_job"}
"""Tables in which the daemon itself writes, before and behind a caller's write; `store.verify` judges them."""


class Row(NamedTuple):
    """A write that is tried: its case, what is asked before it, and what must be nowhere once it is acknowledged."""

    case: Case
    before: tuple[tuple[str, dict[str, Any]], ...] = ()
    gone: bytes = b""


def _forget(got: Prepared) -> dict[str, Any]:
    found = got._ask("memory.forget", {"query": CANARY, "dry_run": True})
    return {"query": CANARY, "token": found["token"]}


SAID = ("transcript.commit", talk(turn("t8", "an apple"), turn("t9", f"the word {CANARY}"), turn("t10", "a pear")))
LONG = talk(turn("t1", "a long message with many words in it " * 3000), turn("t2", "x"))
MORE: Mapping[str, Row] = {
    "transcript.commit, long": Row(Case("transcript.commit", LONG)),
    "chain.bootstrap, with a mirror": Row(
        Case("chain.bootstrap", {**CHAIN, "content": "a chain with a file", "storage_adapter": "jsonl"})
    ),
    "transcript.lifecycle, delete_raw": Row(
        Case("transcript.lifecycle", step("delete_raw", "t9")), (SAID,), CANARY.encode()
    ),
    "memory.forget, confirmed": Row(Case("memory.forget", _forget), (SAID,), CANARY.encode()),
}
"""What the table's cases only begin: a write over many pages, one with a file of its own, and erasures."""


def rows() -> dict[str, Row | None]:
    """Everything that is tried, by name; a new operation that writes is among them by its case."""
    table = [case for case in CASES if (case.changes or case.row.effect != "read") and case.op not in LEFT_OUT]
    return {OPENING: None, **{case.op: Row(case) for case in table}, **MORE}


class Seen(NamedTuple):
    """What a store held when it was opened: a digest of each table, and what recall finds."""

    tables: tuple[tuple[str, str], ...]
    found: tuple[str, ...]

    def other_than(self, other: Seen) -> list[str]:
        """Where the two differ."""
        mine, theirs = dict(self.tables), dict(other.tables)
        differ = [name for name in mine if mine[name] != theirs.get(name)]
        return differ + (["recall"] if self.found != other.found else [])


class Record(NamedTuple):
    """One write on a recorded disk: the steps, where it began, where it was acknowledged, and what it answered.

    `index` is the log's index behind the write, empty where the backend has none.
    """

    name: str
    row: Row | None
    backend: str
    steps: list[Change]
    begun: int
    acknowledged: int
    args: dict[str, Any]
    answer: dict[str, Any] | None
    before: Seen | None
    after: Seen
    index: bytes

    @property
    def points(self) -> range:
        """The steps before which the power may go."""
        return range(self.begun, len(self.steps) + 1)


class Broken(Exception):
    """What a cut has left is not what it has to be."""


def seen(door: InProcess) -> Seen:
    """What the open store holds."""
    with door.opened.store.read() as tx:
        tables = _tables(tx)
    return Seen(tables, tuple(hit["ref"] for hit in door.call("memory.recall", {"query": WORD})["hits"]))


def _tables(tx: Reading) -> tuple[tuple[str, str], ...]:
    """A digest of every table but those in which the daemon keeps house."""
    names = [
        name for (name,) in tx.rows(TABLES_SQL) if name not in HOUSEKEEPING and not name.startswith("recall_index")
    ]
    # The public key is recorded with the first signature, whatever that is for.
    where = {"meta": " WHERE key <> 'identity_key'"}
    rows = ((name, repr(list(tx.rows(f'SELECT * FROM "{name}"{where.get(name, "")}')))) for name in names)
    return tuple((name, hashlib.sha256(text.encode()).hexdigest()[:16]) for name, text in rows)


def write_image(image: Mapping[str, bytes], folder: Path) -> Path:
    """Make the files; the store among them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, content in image.items():
        file = folder / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(content)
        file.chmod(0o600)
    return folder / "b.db"


def opened(store: Path, backend: str, **more: Any) -> InProcess:
    return InProcess(OWNER, store, PROFILE, backend=backend, **more)


def fresh(folder: Path) -> Path:
    """A folder with a new store in it, closed again."""
    folder.mkdir()
    InProcess(OWNER, folder / "b.db", PROFILE).close()
    return folder


def record(name: str, backend: str, start: Path, folder: Path) -> Record:
    """Run one write on a copy of the store in `start`; `folder` must not be there."""
    row = rows()[name]
    if row is None:
        folder.mkdir()
    else:
        shutil.copytree(start, folder)
    disk = Disk(folder)
    try:
        with disk.recording():
            return _recorded(name, backend, row, disk, folder)
    finally:
        disk.close()


def _recorded(name: str, backend: str, row: Row | None, disk: Disk, folder: Path) -> Record:
    args: dict[str, Any] = {}
    answer = before = None
    begun = disk.mark()
    door = opened(folder / "b.db", backend, vfs=disk.vfs)
    if row is not None:
        for each in row.before:
            door.prepare(*each)
        args = row.case.request(Prepared(door.prepare))
        door.opened.store.writer.apart(lambda _: None)
        before, begun = seen(door), disk.mark()
        with suppress(BeetleError):
            answer = door.ask(row.case.op, args, idempotency_key=KEY).report
    acknowledged = disk.mark()
    if door.opened.store.closed:
        door.restart(vfs=None)
    after = seen(door)
    index = (folder / INDEX).read_bytes() if (folder / INDEX).exists() else b""
    door.close()
    return Record(name, row, backend, disk.steps, begun, acknowledged, args, answer, before, after, index)


def index_left(made: Record, seed: int | None) -> dict[str, bytes]:
    """The log's index as a cut may leave it: of other frames than the log's, or noise."""
    if not made.index:
        return {}
    return {INDEX: made.index if seed == 0 else random.Random(seed).randbytes(INDEX_BYTES)}


def check(made: Record, image: Mapping[str, bytes], acknowledged: bool, folder: Path) -> None:
    """Open what a cut has left as the product does, and look through it.

    Raises:
        Broken, BeetleError: it is not what it has to be.
    """
    if acknowledged and made.row is not None and made.row.gone:
        for path, content in image.items():
            if made.row.gone in content:
                raise Broken(f"{path} still holds what was erased")
    door = opened(write_image(image, folder), made.backend)
    try:
        held = seen(door)
        if made.row is not None:
            legal = (made.after,) if acknowledged else (made.before, made.after)
            if held not in legal and (acknowledged or made.name not in SEVERAL):
                differ = " / ".join(str(held.other_than(each)) for each in legal if each is not None)
                raise Broken(
                    f"{'acknowledged, and not whole' if acknowledged else 'neither whole nor absent'}: {differ}"
                )
        # What a cut has left to be finished, the opening finishes beside the first requests.
        door.opened.store.writer.finish_erasures(FINISH_S)
        if UNFILLED in door.opened.store.open_report.findings:
            door.call("scheduler.run", {"job_name": "optimize", "wait": True})
        verified = door.call("store.verify", {})
        if not verified["clean"]:
            raise Broken(f"not clean: {verified['findings']}")
        if made.row is None:
            private = door.call("memory.write", RECORD)
            if private["outcomes"][0]["outcome"] != "accepted":
                raise Broken("its identity cannot be used")
        elif made.answer is not None:
            _repeat(door, made, held)
    finally:
        door.close()


def _repeat(door: InProcess, made: Record, held: Seen) -> None:
    """The same request with the same key: what it reported where it was done, and done now where it was not."""
    assert made.row is not None and made.answer is not None
    try:
        again = door.ask(made.row.case.op, made.args, idempotency_key=KEY)
    except BeetleError as error:
        if error.key != REFUSED_AGAIN.get(made.name) or held.found != made.after.found:
            raise
        return
    if made.name in SEVERAL and seen(door).found != made.after.found:
        raise Broken("the repeated request has not ended as it would have")
    if made.before is None or "idempotency" not in made.after.other_than(made.before):
        return
    if "idempotency" in held.other_than(made.after):
        return
    if not again.repeated:
        raise Broken("a repeated request was not known again")
    once = made.row.case.once
    if {**again.report, **dict.fromkeys(once)} != {**made.answer, **dict.fromkeys(once)}:
        raise Broken("a repeated request was answered otherwise")


class Tried(NamedTuple):
    """Cut points of one write, different files that were looked through, and what was wrong: (point, seed, what)."""

    points: int
    images: int
    broken: list[tuple[int, int | None, str]]


def try_points(made: Record, folder: Path, *, most: int | None, seeds: int, first: int, both: bool = True) -> Tried:
    """Cut at every point, or at `most` of them; not `both` ways at each, but either at random."""
    chosen = list(made.points)
    seeded = random.Random(f"{first} {made.name} {made.backend}")
    if most is not None and most < len(chosen):
        chosen = sorted(seeded.sample(chosen, most))
    moment, known, broken = Moment(made.steps), set(), []
    for point in chosen:
        moment.go_to(point)
        acknowledged = point >= made.acknowledged
        every = (0, *range(first, first + seeds))
        for seed in every if both else (seeded.choice(every),):
            image = {**moment.image(seed), **index_left(made, seed)}
            mark = hashlib.sha256(repr((acknowledged, sorted(image.items()))).encode()).digest()
            if mark in known:
                continue
            known.add(mark)
            try:
                check(made, image, acknowledged, folder)
            except (Broken, BeetleError) as error:
                broken.append((point - made.begun, seed, f"{type(error).__name__}: {error}"))
    return Tried(len(chosen), len(known), broken)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--operation", help="only this row", choices=sorted(rows()))
    parser.add_argument("--backend", help="only this backend", choices=BACKENDS)
    parser.add_argument("--points", default="all", help="steps tried of each operation: a number, or all (default)")
    parser.add_argument("--seeds", type=int, default=1, help="random halves of what was not synced, at each step")
    parser.add_argument("--seed", type=int, default=1, help="the first of those seeds")
    asked = parser.parse_args()
    most = None if asked.points == "all" else int(asked.points)
    total, failed = [0, 0, 0], 0
    print(f"{'operation':34} {'backend':9} {'steps':>6} {'points':>6} {'tried':>6} {'passed':>6}")
    with tempfile.TemporaryDirectory() as root:
        start = fresh(Path(root, "start"))
        for name in [asked.operation] if asked.operation else rows():
            for backend in [asked.backend] if asked.backend else BACKENDS:
                made = record(name, backend, start, Path(root, "run"))
                tried = try_points(made, Path(root, "cut"), most=most, seeds=asked.seeds, first=asked.seed)
                shutil.rmtree(Path(root, "run"))
                passed = tried.images - len(tried.broken)
                line = f"{name:34} {backend:9} {len(made.points):6} {tried.points:6} {tried.images:6} {passed:6}"
                print(line, flush=True)
                for point, seed, what in tried.broken:
                    print(f"  step {point}, seed {seed}: {what}")
                total = [a + b for a, b in zip(total, (tried.points, tried.images, passed), strict=True)]
                failed += bool(tried.broken)
    print(f"{'all':34} {'':9} {'':6} {total[0]:6} {total[1]:6} {total[2]:6}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
