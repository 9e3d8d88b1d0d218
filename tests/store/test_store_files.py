"""Names of an open store's files, while nothing in their folder changes and when something does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beetle.store.engine import store_files
from beetle.store.engine.follower import Follower
from beetle.store.engine.store_files import StoreFiles, StoreMoved, files_of

NAMES = ("store.db", "store.db.lock", "store.db-wal", "store.db-shm")


class Looks:
    """How often one of the files was looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        mark = store_files._mark

        def counted(path: str) -> tuple[int, int] | None:
            self.count += 1
            return mark(path)

        monkeypatch.setattr(store_files, "_mark", counted)

    def of(self, files: StoreFiles) -> int:
        """Of one check."""
        before = self.count
        files.check()
        return self.count - before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    for name in NAMES:
        (made / name).write_bytes(b"")
    return made


@pytest.fixture
def settled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreFiles]:
    """Files whose folder has rested for so long that it alone is looked at, and will be from now on."""
    monkeypatch.setattr(store_files, "SETTLED_S", 0.02)
    monkeypatch.setattr(store_files, "FINELY_SETTLED_S", 0.02)
    monkeypatch.setattr(store_files, "LOOK_S", 3600.0)
    looks = Looks(monkeypatch)
    files = files_of(str(folder / NAMES[0]), Follower(2**20), walled=True)
    assert looks.of(files) == len(NAMES), "the folder has just changed"
    end = time.monotonic() + 30
    while looks.of(files):
        assert time.monotonic() < end, "the folder never rests"
    yield files
    files.close()


def replace(file: Path) -> None:
    (other := file.with_suffix(".other")).write_bytes(b"")
    os.replace(other, file)


def replace_folder(file: Path) -> None:
    os.rename(file.parent, file.parent.with_suffix(".moved"))
    file.parent.mkdir()
    for name in NAMES:
        (file.parent / name).write_bytes(b"")


def replace_and_date_back(file: Path) -> None:
    """As a restore that keeps times does."""
    found = file.parent.stat()
    replace(file)
    os.utime(file.parent, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink,
    "renamed": lambda file: os.rename(file, f"{file}.moved"),
    "replaced": replace,
    "dated back": replace_and_date_back,
    "folder": replace_folder,
}


@pytest.mark.parametrize(
    ("change", "name"),
    [*(("removed", name) for name in NAMES), *((change, NAMES[0]) for change in CHANGES if change != "removed")],
)
def test_a_file_that_goes_from_a_folder_at_rest_is_missed(
    settled: StoreFiles, folder: Path, change: str, name: str
) -> None:
    CHANGES[change](folder / name)
    with pytest.raises(StoreMoved, match="while it was open"):
        settled.check()
    assert settled.is_lost(), "and is lost for good"


def test_a_folder_that_is_gone_took_the_files_with_it(settled: StoreFiles, folder: Path) -> None:
    os.rename(folder, folder.with_suffix(".moved"))
    with pytest.raises(StoreMoved, match="removed or renamed"):
        settled.check()
    os.rename(folder.with_suffix(".moved"), folder)
    assert settled.is_lost()


def test_another_file_in_the_folder_is_nothing_but_a_reason_to_look(
    settled: StoreFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    assert not looks.of(settled)
    (folder / "another").write_bytes(b"")
    assert looks.of(settled) == len(NAMES)


def test_the_files_are_looked_at_from_time_to_time_all_the_same(
    settled: StoreFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    assert not looks.of(settled)
    monkeypatch.setattr(store_files, "LOOK_S", 0.0)
    assert looks.of(settled) == len(NAMES)
