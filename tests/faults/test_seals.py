"""Seals where the store's first opening went wrong: what the runtime wrote is its own all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle.contracts.errors import BeetleError
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import assert_clean, commit, open_runtime, store_of, turn


def test_what_was_written_before_there_was_an_identity_is_sealed_by_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    blocked = Path(f"{path}.identity.new")
    blocked.mkdir()
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "kept"))
        assert_clean(memory)
    blocked.rmdir()
    with open_runtime(path) as memory:
        assert_clean(memory)
        # Another program's row is found as before: it had no seal to be made stronger.
        store_of(memory).writer.apart(lambda db: db.execute("INSERT INTO meta VALUES ('by_hand', 1)"))
        assert not memory.verify_store().clean


@pytest.mark.parametrize("first", [2, 9, 16])
def test_rows_that_could_not_be_sealed_are_sealed_with_the_next_write(tmp_path: Path, first: int) -> None:
    met = 0
    for point in range(first, 800, 21):
        folder = tmp_path / str(point)
        folder.mkdir()
        vfs = FaultVFS(f"full@{point}+")
        try:
            memory = open_runtime(folder / "store.db", vfs=vfs.name)
        except BeetleError:
            continue
        else:
            try:
                commit(memory, turn("t1", "under the fault"))
            except BeetleError:
                met += 1
            vfs.heal()
            commit(memory, turn("t2", "after the fault"))
            assert_clean(memory)
            memory.close()
        finally:
            vfs.close()
    assert met, "no fault came between the opening and the first write"
