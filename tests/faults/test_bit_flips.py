"""Damaged stores: what is wrong is found and named, and what is intact is brought into a new store.

Every page, by hand: `python -m tests.faults.bit_flips`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.__main__ import main
from beetle.contracts.errors import STATUS, StoreCorrupt, StoreLocked
from beetle.open import UNFILLED
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.salvage import salvage_closed
from tests.building import talk, turn
from tests.conformance.doors import InProcess
from tests.faults.bit_flips import KINDS, OWNER, PROFILE, Rows, bits, flip, make, pages, rows_of
from tests.faults.power_cut import fresh, record, seen, write_image
from tests.faults.power_disk import Moment
from tests.sdk.killed import die_at


class Made(NamedTuple):
    """A closed store, its rows, and its pages by kind."""

    store: Path
    rows: Rows
    pages: Mapping[str, list[int]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    store = make(tmp_path_factory.mktemp("made"))
    return Made(store, rows_of(store), pages(store))


@pytest.fixture
def store(made: Made, tmp_path: Path) -> Path:
    """A copy."""
    return Path(shutil.copytree(made.store.parent, tmp_path / "store")) / made.store.name


@pytest.mark.parametrize("kind", KINDS)
def test_a_flip_in_a_page_of_each_kind_is_told_and_what_is_intact_is_saved(
    made: Made, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(kind)
    page = chance.choice(made.pages[kind])
    done = flip(made.store, page, bits(kind, page, chance), made.rows, tmp_path / "flipped")
    assert done.saved >= done.rows * 0.9


@settings(max_examples=5, derandomize=True, deadline=None, database=None)
@given(data=st.data())
def test_a_flip_anywhere_is_told(made: Made, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    page = data.draw(st.integers(1, max(each for some in made.pages.values() for each in some)))
    bit = data.draw(st.integers(0, PAGE_SIZE * 8 - 1))
    flip(made.store, page, bit, made.rows, tmp_path_factory.mktemp("flipped") / "copy")


def leaf_of(store: Path, table: str) -> int:
    """The number of a table's first leaf, which has some rows."""
    connection = sqlite3.connect(store)
    (page,) = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno LIMIT 1", (table,)
    ).fetchone()
    connection.close()
    return page


def damage(store: Path, at: int, data: bytes) -> bytes:
    """Overwrite bytes of the file; the whole of it afterwards."""
    with store.open("r+b") as file:
        file.seek(at)
        file.write(data)
    return store.read_bytes()


def opened(store: Path) -> InProcess:
    return InProcess(OWNER, store, PROFILE)


def test_an_open_store_is_repaired_and_the_damaged_file_kept(store: Path) -> None:
    whole = damage(store, (leaf_of(store, "body") - 1) * PAGE_SIZE, bytes(PAGE_SIZE))
    door = opened(store)
    try:
        named = {each["check"] for each in door.call("store.verify", {})["findings"]}
        assert "pages" in named
        tried = door.call("store.repair", {"dry_run": True})
        assert not tried["whole"] and not tried["changed"] and store.read_bytes() == whole
        done = door.call("store.repair", {})
        assert done["changed"] and not done["whole"] and not done["clean"]
        assert [each["table"] for each in done["tables"]] == ["body"] and done["tables"][0]["incomplete"]
        assert Path(done["kept_as"]).read_bytes() == whole
        # What is gone is named record by record, and nothing else is.
        assert {"evidence"} <= {each["check"] for each in done["findings"]} <= {"evidence", "recall_index"}
        door.call("transcript.commit", talk(turn("after", "the figs are ripe")))
        assert [each["excerpt"] for each in door.call("memory.recall", {"query": "figs"})["hits"]]
        after = door.call("store.verify", {})
        assert not after["clean"] and all(each["known"] for each in after["findings"]), "still named, and nothing new"
        with sqlite3.connect(store) as other:
            other.execute(
                "UPDATE body SET content = 'what nobody has said' WHERE message = (SELECT max(message) FROM body)"
            )
        new = [each for each in door.call("store.verify", {})["findings"] if not each["known"]]
        assert new and "pages" not in {each["check"] for each in new}
    finally:
        door.close()


def test_a_store_that_cannot_be_opened_is_repaired_by_the_command(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, command = damage(store, 0, b"no database here"), [f"--store={store}", "--profile=dev-full"]
    assert main([*command, "verify"]) == STATUS["store_corrupt"].exit_code
    assert main([*command, "repair", "--dry-run"]) == 0 and store.read_bytes() == whole
    assert main([*command, "repair"]) == 0
    told = capsys.readouterr().out
    assert "Every row of every table was read." in told and "verifies clean" in told
    (kept,) = store.parent.glob("b.db.before-r-*")
    assert kept.read_bytes() == whole and main([*command, "verify"]) == 0


def test_a_store_that_somebody_has_open_is_not_repaired_behind_its_back(store: Path) -> None:
    door = opened(store)
    try:
        with pytest.raises(StoreLocked):
            salvage_closed(str(store), 1, "v", dry_run=False)
    finally:
        door.close()


@pytest.fixture
def left_open(store: Path, tmp_path: Path) -> Path:
    """A store as a crash leaves it, the last commit in its log alone."""
    copy = tmp_path / "copy"
    copy.mkdir()
    door = opened(store)
    door.call("transcript.commit", talk(turn("in the log", "the plums are blue")))
    for name in ("b.db", "b.db-wal", "b.db.identity"):
        shutil.copy2(store.with_name(name), copy / name)
    door.close()
    return copy / "b.db"


def test_commits_that_stand_in_the_log_alone_are_saved(left_open: Path) -> None:
    damage(left_open, 0, b"no database here")
    log = Path(f"{left_open}-wal").read_bytes()
    done, kept = salvage_closed(str(left_open), 1, "v", dry_run=False)
    assert done.whole and kept is not None and Path(kept + "-wal").read_bytes() == log
    door = opened(left_open)
    try:
        door.call("memory.recover", {})
        assert door.call("memory.recall", {"query": "plums"})["hits"] and door.call("store.verify", {})["clean"]
    finally:
        door.close()


@pytest.mark.parametrize("byte", [2, 10, 17, 30])
def test_a_log_that_sqlite_would_silently_drop_is_refused(left_open: Path, byte: int) -> None:
    log = Path(f"{left_open}-wal")
    damage(log, byte, bytes([log.read_bytes()[byte] ^ 1]))
    with pytest.raises(StoreCorrupt, match="log"):
        opened(left_open)
    done, _ = salvage_closed(str(left_open), 1, "v", dry_run=False)
    assert not done.whole and "log" in done.notes[0]
    opened(left_open).close()


def test_a_half_made_change_is_undone_by_its_journal(tmp_path: Path) -> None:
    made = record("transcript.commit, long", "file", fresh(tmp_path / "start"), tmp_path / "run")
    moment, half = Moment(made.steps), None
    for point in range(made.begun, made.acknowledged):
        moment.go_to(point)
        image = moment.image(None)
        if image.get("b.db-journal", b"")[8:12].strip(b"\0"):
            half = image
    assert half is not None
    store = write_image(half, tmp_path / "half")
    damage(store, 0, b"no database here")
    assert salvage_closed(str(store), 1, "v", dry_run=False)[0].whole
    door = opened(store)
    try:
        assert UNFILLED in door.opened.store.open_report.findings
        door.call("scheduler.run", {"job_name": "optimize", "wait": True})
        assert seen(door) == made.before
    finally:
        door.close()


def test_without_its_key_a_store_is_refused_and_stays_as_it_is(store: Path) -> None:
    whole = damage(store, (leaf_of(store, "meta") - 1) * PAGE_SIZE, bytes(PAGE_SIZE))
    names = set(os.listdir(store.parent))
    with pytest.raises(StoreCorrupt, match="key"):
        salvage_closed(str(store), 1, "v", dry_run=False)
    assert store.read_bytes() == whole and set(os.listdir(store.parent)) - {"b.db.lock"} == names - {"b.db.lock"}


def test_a_repair_can_be_killed_anywhere(store: Path, made: Made) -> None:
    """kill -9 before every change to a name: the next opening, or the next repair, has every row."""
    damage(store, 0, b"no database here")
    Path(f"{store}-wal").write_bytes(b"")
    start = Path(shutil.copytree(store.parent, store.parent.with_name("start")))
    number, settled = 0, 0
    while True:
        number += 1
        shutil.rmtree(store.parent)
        shutil.copytree(start, store.parent)
        child = os.fork()
        if child == 0:
            die_at(number)
            salvage_closed(str(store), 1, "v", dry_run=False)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL)
        try:
            opened(store).close()
            settled += 1
        except StoreCorrupt:
            salvage_closed(str(store), 1, "v", dry_run=False)
            opened(store).close()
        assert rows_of(store) == made.rows, number
        if code == 0:
            break
    assert number > 5 and settled > 1
