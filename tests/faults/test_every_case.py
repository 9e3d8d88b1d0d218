"""A full disk under every case that changes the store: it is refused as a whole, and works once there is room again."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle.open import state_fingerprint
from tests.cases import CASES, Case, Prepared
from tests.conformance.doors import InProcess
from tests.faults.fault_vfs import FaultVFS

ELSEWHERE: dict[str, str] = {
    "memory.close": "it folds what is there: test_disk_limits.py",
    "memory.recover": "it answers, and says which step failed",
    "snapshot.create": "it writes files beside the store, which are not on this disk: tests/sdk/test_snapshot.py",
    "snapshot.restore": "likewise",
    "snapshot.prune": "likewise",
    "store.repair": "likewise: tests/faults/test_bit_flips.py",
}
CHANGES = [case for case in CASES if case.changes and case.op not in ELSEWHERE]


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.op)
def test_a_change_on_a_full_disk_is_refused_whole_and_works_afterwards(case: Case, tmp_path: Path) -> None:
    vfs = FaultVFS()
    door = InProcess("owner-one", tmp_path / "b.db", "dev-full", vfs=vfs.name)
    try:
        args = case.request(Prepared(door.prepare))
        before = state_fingerprint(door.opened, door.owner)
        vfs.arm("full@1+")
        door.refused("storage_full", case.op, args)
        assert vfs.hits
        vfs.heal()
        assert state_fingerprint(door.opened, door.owner) == before
        door.call(case.op, args)
        assert door.call("store.verify", {})["clean"]
    finally:
        door.close()
        vfs.close()


def test_recovery_on_a_full_disk_says_what_failed_and_recovers_afterwards(tmp_path: Path) -> None:
    vfs = FaultVFS()
    door = InProcess("owner-one", tmp_path / "b.db", "dev-full", vfs=vfs.name)
    try:
        vfs.arm("full@1+")
        report = door.call("memory.recover", {})
        assert vfs.hits and not report["recovered"]
        assert "failed" in {each["outcome"] for each in report["steps"]}
        vfs.heal()
        assert door.call("memory.recover", {})["recovered"] and door.call("store.verify", {})["clean"]
    finally:
        door.close()
        vfs.close()
