"""Fail every I/O operation of a scripted sequence, one run each: nothing acknowledged is lost, nothing half there.

A power cut in the middle of each single operation is tried by tests/faults/test_power_cut.py; here, by hand
(`-m slow`), one at every point of the whole sequence, with a log and a cache so small that they overflow in a write.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError
from beetle.runtime.areas.evidence import lifecycle
from beetle.store.engine import writer
from tests.faults.fault_vfs import FaultVFS
from tests.faults.script import CANARY, STEPS, Outcome, State, attempt, observed, possible
from tests.store.conftest import DISK_BACKENDS, assert_clean, bytes_of, commit, found, open_runtime, turn

TYPED = {"full": {"storage_full"}, "ioerr": {"store_corrupt"}, "torn": {"store_corrupt"},
         "cut": {"store_corrupt"}, "readonly": {"store_read_only"}}  # fmt: skip
SETTINGS = {"wal_bytes": 64 * 1024, "page_cache_kib": 64}
EMPTY: State = frozenset()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A sweep has hundreds of erasures that cannot finish; the waits are tuned, what is waited for is not."""
    monkeypatch.setattr(writer, "ERASURE_RETRY_S", 0.01)
    monkeypatch.setattr(lifecycle, "ERASURE_WAIT_S", 0.1)
    yield


@cache
def operations(backend: str) -> int:
    """How many operations the whole sequence takes when nothing fails, from the first opening to the close."""
    vfs = FaultVFS()
    try:
        with (
            TemporaryDirectory() as folder,
            open_runtime(Path(folder, "count.db"), backend, vfs=vfs.name, **SETTINGS) as memory,
        ):
            outcomes = [attempt(memory, step) for step in STEPS]
            assert all(outcome.error is None for outcome in outcomes)
            assert {observed(memory)} == possible(outcomes, {EMPTY})
        return vfs.count
    finally:
        vfs.close()


def check_typed(outcome: Outcome, kind: str) -> None:
    """An operation fails by the planned fault, or because an earlier one that failed did not make what it needs."""
    if outcome.error is not None:
        allowed = TYPED[kind] | ({"not_found"} if outcome.step.name == "delete skill" else set())
        assert outcome.error.key in allowed, (outcome.step.name, outcome.error)


def reads_go_on(memory: MemoryRuntime, backend: str, lasting: bool) -> None:
    # In rollback mode a fault that lasts keeps the writer from undoing a half-made change; nobody may read it then.
    if backend != "file" or not lasting:
        observed(memory)
        memory.recall(query="apples")


def open_under_fault(path: Path, backend: str, vfs: FaultVFS, kind: str) -> MemoryRuntime | None:
    try:
        return open_runtime(path, backend, vfs=vfs.name, **SETTINGS)
    except BeetleError as error:
        assert error.key in TYPED[kind], error
        return None


def sweep_one(folder: Path, backend: str, plan: str) -> None:
    path, vfs = folder / "store.db", FaultVFS(plan)
    kind, lasting = plan.split("@")[0], "+" in plan
    outcomes: list[Outcome] = []
    try:
        memory = open_under_fault(path, backend, vfs, kind)
        if memory is not None:
            for step in STEPS:
                outcomes.append(attempt(memory, step))
                check_typed(outcomes[-1], kind)
                if outcomes[-1].error is not None:
                    reads_go_on(memory, backend, lasting)
            vfs.heal()
            states = possible(outcomes, {EMPTY})
            assert observed(memory) in states
            commit(memory, turn("after", "later figs"))
            assert found(memory, "figs")
            memory.close()
    finally:
        vfs.close()
    with open_runtime(path, backend) as again:
        assert_clean(again)
        if memory is not None:
            expected = {state | {("live", "after", "later figs")} for state in states}
            assert observed(again) in expected
        commit(again, turn("more", "plums"))


def cut_one(folder: Path, backend: str, plan: str) -> None:
    path, vfs = folder / "store.db", FaultVFS(plan)
    outcomes: list[Outcome] = []
    try:
        memory = open_under_fault(path, backend, vfs, "cut")
        if memory is not None:
            outcomes = [attempt(memory, step) for step in STEPS]
            for outcome in outcomes:
                check_typed(outcome, "cut")
            memory.close()
        rebooted = folder / "rebooted"
        rebooted.mkdir()
        vfs.after_power_cut(rebooted)
    finally:
        vfs.close()
    path = rebooted / "store.db"
    erased = {o.step.name for o in outcomes if o.error is None and getattr(o.report, "erasure", None) == "done"}
    if "delete raw" in erased:
        assert CANARY.encode() not in bytes_of(path)
    with open_runtime(path, backend) as again:
        assert_clean(again)
        assert observed(again) in possible(outcomes, {EMPTY})
        commit(again, turn("more", "plums"))
        assert found(again, "plums")


FAULTS = ("full@{}", "full@{}+", "ioerr@{}", "ioerr@{}+", "torn@{}", "readonly@{}+")
KINDS = (*FAULTS, "cut@{}/1", "cut@{}/2", "cut@{}/3")


def sweep(folder: Path, backend: str, kind: str, every: int, first: int) -> None:
    last = operations(backend)
    assert last > 60, "the sequence hardly touches the disk"
    for point in range(first, last + 1, every):
        run = folder / str(point)
        run.mkdir()
        plan = kind.format(point)
        try:
            (cut_one if kind.startswith("cut") else sweep_one)(run, backend, plan)
        except BaseException as error:
            error.add_note(f"under {plan} on {backend}")
            raise
        shutil.rmtree(run)


@pytest.mark.parametrize("backend", ["sqlite", "file"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_some_io_points_loses_nothing(tmp_path: Path, backend: str, kind: str) -> None:
    # A prime stride with another start for each kind: together they meet points of every phase.
    sweep(tmp_path, backend, kind, every=149, first=1 + 16 * KINDS.index(kind))


@pytest.mark.slow
@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_every_io_point_loses_nothing(tmp_path: Path, backend: str, kind: str) -> None:
    sweep(tmp_path, backend, kind, every=1, first=1)
