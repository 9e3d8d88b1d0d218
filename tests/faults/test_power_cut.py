"""The power goes in the middle of every operation that writes; see tests/faults/power_cut.py, which tries every step.

Whole, by hand: `python -m tests.faults.power_cut`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from beetle.contracts.operations import OPERATIONS
from tests.faults.power_cut import LEFT_OUT, fresh, opened, record, rows, try_points
from tests.faults.power_disk import Change, Moment

NAMES = tuple(rows())
THIRD = NAMES[::3]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh(tmp_path_factory.mktemp("start") / "store")


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "sqlite") for name in NAMES), *((name, "file") for name in THIRD)]
)
def test_a_power_cut_loses_nothing_acknowledged_and_leaves_nothing_half_done(
    name: str, backend: str, start: Path, tmp_path: Path
) -> None:
    made = record(name, backend, start, tmp_path / "run")
    tried = try_points(made, tmp_path / "cut", most=1, seeds=1, first=7, both=False)
    assert tried.images == 1 and not tried.broken, tried.broken


def test_a_journal_that_lost_its_first_sector_keeps_no_repair_from_ending(start: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(start, tmp_path / "copy")) / "b.db"
    Path(f"{store}-journal").write_bytes(bytes(512) + b"x" * 512)
    door = opened(store, "file")
    try:
        assert door.call("store.repair", {})["changed"] and door.call("store.verify", {})["clean"]
    finally:
        door.close()


def test_every_operation_that_writes_is_tried() -> None:
    writing = {row.name for row in OPERATIONS if row.effect != "read"} - LEFT_OUT
    assert writing <= set(NAMES)


def test_the_disk_forgets_what_was_not_synced() -> None:
    """The model itself: a file's bytes need its sync, its name that of its folder."""
    moment = Moment([
        Change("create", 1, "a"), Change("write", 1, data=b"x" * 1024), Change("sync", 1), Change("folder"),
        Change("write", 1, at=0, data=b"y" * 1024), Change("create", 2, "b"), Change("synced", 2, data=b"whole"),
        Change("folder"), Change("rename", 2, "b", to="a"),
    ])  # fmt: skip
    moment.go_to(3)
    assert moment.image(0) == {} and moment.image(None) == {"a": b"x" * 1024}
    moment.go_to(5)
    assert moment.image(0) == {"a": b"x" * 1024} and moment.image(None) == {"a": b"y" * 1024}
    torn = {moment.image(seed)["a"] for seed in range(1, 40)}
    assert {b"x" * 1024, b"y" * 1024, b"x" * 512 + b"y" * 512, b"y" * 512 + b"x" * 512} == torn
    moment.go_to(9)
    assert moment.image(0) == {"a": b"x" * 1024, "b": b"whole"} and moment.image(None) == {"a": b"whole"}
