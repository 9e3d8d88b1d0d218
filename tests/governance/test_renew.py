"""identity.renew: another identity takes the place of a lost one, and says what that costs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import Conflict, Forbidden, IntegrityViolation, PrivacyDenied, StorageFull, StoreReadOnly
from beetle.runtime.host.identity import State
from beetle.store.private import UNKNOWN_CHECK
from tests.adversary.test_signatures import edit
from tests.faults.fault_vfs import FaultVFS
from tests.governance.keeping import CANARY, identity_of, keep, key_file, line, write_key
from tests.governance.queued import OWNER, decide, refused, said, waiting
from tests.governance.renewed import POINTS
from tests.governance.test_private import VIEWS, asking_as
from tests.store.conftest import assert_clean, commit, found, lifecycle, open_runtime, store_of, turn

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


def renew(memory: MemoryRuntime, **more: Any) -> Any:
    """The dry run, and what its token does."""
    shown: Any = memory.renew_identity(dry_run=True, **more)
    return memory.renew_identity(token=shown.token, **more)


def identity_told(memory: MemoryRuntime) -> Any:
    """What an inspection tells of it."""
    operator = memory.inspect().operator
    assert operator is not None
    return operator.identity


def look(memory: MemoryRuntime) -> Any:
    """The dry run's report."""
    return memory.renew_identity(dry_run=True)


def filled(path: str) -> tuple[str, str]:
    """A store with a private record in it and a turn, closed, without its key file; the record, and the fingerprint."""
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "the ferry leaves at noon"))
        record = keep(memory, CANARY)
        lost = identity_of(memory).fingerprint
    key_file(path).unlink()
    assert lost is not None
    return record, lost


def test_a_lost_identity_is_replaced_and_what_it_sealed_stays_closed(path: str) -> None:
    record, lost = filled(path)
    with open_runtime(path) as memory:
        before = memory.inspect().event_log
        shown = look(memory)
        assert (shown.state, shown.former, shown.device, shown.closes) == ("missing", lost, None, 1)
        assert shown.closed_refs == (f"private_garden:{record}",)
        assert shown.unproven > 10 and shown.broken == 0 and shown.found == 0
        assert memory.inspect().event_log == before and not key_file(path).exists()
        done = memory.renew_identity(token=shown.token)
        assert done.changed and done.head_signed and done.unproven >= shown.unproven
        assert done.device == identity_of(memory).fingerprint not in (None, lost)
        with pytest.raises(PrivacyDenied) as refused:
            memory.get_private(record_id=record)
        assert refused.value.details["state"] == "closed"
        again = keep(memory, CANARY)
        assert again != record and memory.get_private(record_id=again).content == CANARY
        assert [(each.record_id, each.closed) for each in memory.list_private().items] == [
            (record, True),
            (again, False),
        ]
        assert found(memory, "ferry")
        assert_clean(memory)
    with open_runtime(path) as memory:
        assert_clean(memory)
        assert memory.verify_store().checked["closed"] == 1
        shown = identity_told(memory)
        assert (shown.state, shown.device, shown.former, shown.closed) == ("usable", done.device, (lost,), 1)
        assert memory.delete_private(record_id=record).erasure == "done"
        assert identity_told(memory).closed == 0
        assert_clean(memory)


def test_a_key_file_that_is_there_becomes_the_store_s_and_what_is_none_is_set_aside(path: str) -> None:
    filled(path)
    write_key(key_file(path), line(bytes(range(32))))
    given = key_file(path).read_bytes()
    with open_runtime(path) as memory:
        shown = look(memory)
        assert shown.state == "wrong" and shown.device is not None
        done = memory.renew_identity(token=shown.token)
        assert (done.device, done.kept_as) == (shown.device, None)
        assert key_file(path).read_bytes() == given
        keep(memory, "of the second")
        # And the next one is lost by a folder in its place.
        key_file(path).unlink()
        key_file(path).mkdir()
        done = renew(memory)
        assert (done.state, done.former, done.closes, done.closed) == ("broken", shown.device, 1, 2)
        assert done.kept_as is not None and os.path.isdir(done.kept_as)
        assert len(identity_told(memory).former) == 2
        assert_clean(memory)


def test_where_the_new_key_file_cannot_be_made_the_one_that_is_there_stays_and_the_error_names_what_failed(
    path: str,
) -> None:
    filled(path)
    write_key(key_file(path), b"no key\r\n")
    fresh = Path(f"{key_file(path)}.new")
    (fresh / "x").mkdir(parents=True)
    with open_runtime(path) as memory:
        shown = look(memory)
        with pytest.raises(StoreReadOnly) as refused:
            memory.renew_identity(token=shown.token)
        assert refused.value.details["path"] == os.fspath(fresh) and "no folder" in refused.value.hint
        assert key_file(path).read_bytes() == b"no key\r\n"
        assert not list(Path(path).parent.glob("*.aside-*"))
        shutil.rmtree(fresh)
        done = renew(memory)
        assert done.kept_as is not None and Path(done.kept_as).read_bytes() == b"no key\r\n"


def test_an_identity_that_is_not_lost_is_not_replaced(path: str) -> None:
    with open_runtime(path) as memory:
        shown = look(memory)
        assert (shown.state, shown.token, shown.device) == ("usable", None, identity_of(memory).fingerprint)
        with pytest.raises(Conflict, match="works"):
            memory.renew_identity(token="any")
        key_file(path).chmod(0o644)
        assert look(memory).token is None
        with pytest.raises(Conflict, match="not replaced") as refused:
            memory.renew_identity(token="any")
        assert "chmod 600" in refused.value.hint
        key_file(path).unlink()
        token = look(memory).token
        write_key(key_file(path), line(bytes(32)))
        with pytest.raises(Conflict, match="not what the dry run has shown"):
            memory.renew_identity(token=token)


def test_an_identity_is_not_given_up_for_itself(path: str) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
        memory.create_snapshot()
        # As behind a restore of a copy whose record is damaged.
        identity_of(memory).recheck(UNKNOWN_CHECK)
        shown = look(memory)
        assert (shown.state, shown.token, shown.former) == ("wrong", None, shown.device)
        with pytest.raises(Conflict, match="this store's own") as refused:
            memory.renew_identity(token="any", despite_findings=True)
        assert "open it again" in refused.value.hint
    with open_runtime(path) as memory:
        assert memory.get_private(record_id=record).content == CANARY


def test_only_an_operator_renews(path: str) -> None:
    filled(path)
    with open_runtime(path) as memory:
        for kind in ("principal", "device"):
            other = asking_as(memory, {"recover", "admin", "inspect"}, VIEWS, kind)
            with pytest.raises(Forbidden):
                other.renew_identity(dry_run=True)


# Nothing is laundered


def test_what_is_provably_wrong_is_refused_and_stays_found_and_what_cannot_be_proven_is_counted(path: str) -> None:
    filled(path)
    edit(
        path,
        "INSERT INTO meta VALUES ('by_hand', 1)",  # has no seal
        "UPDATE space SET created_at = 1",  # its seal is the lost identity's
    )
    with open_runtime(path) as memory:
        shown = look(memory)
        assert {each.subject.partition(" ")[0] for each in shown.findings} == {"meta"}
        assert (shown.broken, shown.found) == (1, len(shown.findings)) and shown.unproven
        with pytest.raises(IntegrityViolation) as refused:
            memory.renew_identity(token=shown.token)
        assert "meta" in refused.value.message and identity_of(memory).state == "missing"
        done = memory.renew_identity(token=shown.token, despite_findings=True)
        assert done.changed and done.broken == 1
        with store_of(memory).read() as tx:
            told = tx.value("SELECT subject FROM event_log WHERE event = 'identity_renewed'")
        assert json.loads(told)["unproven"] == done.unproven and json.loads(told)["findings"] == shown.found
    for _ in range(2):
        with open_runtime(path) as memory:
            left = {each.subject.partition(" ")[0] for each in memory.verify_store().findings}
            assert left == {"meta"}, "the space's row was taken over, as the report has said"


def test_a_process_that_was_there_before_the_loss_still_tells_what_was_changed(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "the ferry leaves at noon"))
        key_file(path).unlink()
        store_of(memory).writer.apart(lambda db: db.execute("UPDATE space SET created_at = 1"))
        shown = look(memory)
        assert (shown.broken, shown.unproven) == (1, 0) and shown.proven
        with pytest.raises(IntegrityViolation, match="1 rows have a seal that does not fit"):
            memory.renew_identity(token=shown.token)
        memory.renew_identity(token=shown.token, despite_findings=True)
        assert any("space" in each.subject for each in memory.verify_store().findings)


def test_a_log_that_was_cut_is_never_signed_by_the_new_identity(path: str) -> None:
    _, lost = filled(path)
    edit(path, "DELETE FROM event_log WHERE seq > (SELECT max(seq) - 2 FROM event_log)")
    with open_runtime(path) as memory:
        done = renew(memory, despite_findings=True)
        assert done.changed and not done.head_signed
    with open_runtime(path) as memory:
        told = [each.problem for each in memory.verify_store().findings if each.check == "event_log_head"]
        assert told[0] == f"was signed by a former identity of this store, {lost}"
        assert "rows were cut off" in told[1]


# What the former identity has signed


def test_receipts_snapshots_and_exports_of_a_former_identity_are_told_as_such(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "the ferry leaves at noon"), turn("t2", "the door is blue"))
        record = keep(memory, CANARY)
        receipt: str = lifecycle(memory, "mask", "t1").receipt
        taken = memory.create_snapshot().snapshot.snapshot_id
        archive = memory.export_space(include_private=True, passphrase="correct horse").archive
        lost = identity_of(memory).fingerprint
    key_file(path).unlink()
    with open_runtime(path) as memory:
        renew(memory)
        checked: Any = memory.verify_store(pages=False, receipt=receipt).receipt
        assert (checked.valid, checked.reasons, checked.device) == (False, ("former_device",), lost)
        assert memory.verify_snapshot(snapshot_id=taken).reasons == ("former_device",)
        with pytest.raises(Conflict, match="a former identity of this store") as refused:
            memory.restore_snapshot(snapshot_id=taken)
        assert refused.value.details["faults"] == ["former_device"]
        whole = {"archive": archive, "mode": "full_restore", "passphrase": "correct horse"}
        with pytest.raises(Conflict, match="the former identity of this store"):
            memory.import_space(**whole, discard_withheld=True)
        # Today's export leaves out what is closed, and says so; what it would lose is not lost unasked.
        today = memory.export_space(include_private=True, passphrase="correct horse")
        assert (today.left_out, today.counts.get("private_items", 0)) == ({"closed": 1, "messages": 1}, 0)
        with pytest.raises(Conflict, match="closed"):
            memory.import_space(archive=today.archive, mode="full_restore", passphrase="correct horse")
        # A state of before is another lost identity; the key file of today becomes its own.
        assert memory.restore_snapshot(snapshot_id=taken, other_store=True).identity == "wrong"
        done = renew(memory)
        assert (done.state, done.former, done.closed_refs) == ("wrong", lost, (f"private_garden:{record}",))
        assert_clean(memory)


def test_a_private_fact_that_waits_is_closed_and_can_be_rejected(path: str) -> None:
    with open_runtime(path) as memory:
        assert said(memory, f"Mara likes {CANARY}.", privacy="subject_private").outcome == "deferred"
    key_file(path).unlink()
    with open_runtime(path) as memory:
        shown = look(memory)
        assert (shown.closes, len(shown.closed_refs)) == (1, 1)
        memory.renew_identity(token=shown.token)
        (row,) = waiting(memory, **OWNER)
        assert row.content is None and shown.closed_refs == (row.waiting_id,)
        assert refused(PrivacyDenied, memory, "accept", row.waiting_id, **OWNER).details["state"] == "closed"
        assert_clean(memory)
        decide(memory, "reject", row.waiting_id, **OWNER)
        assert waiting(memory, **OWNER) == ()
        assert_clean(memory)


def test_forgetting_takes_what_is_closed_with_the_space_and_says_that_words_cannot_tell(path: str) -> None:
    record, _ = filled(path)
    with open_runtime(path) as memory:
        renew(memory)
        (kept,) = [each for each in memory.forget(query=CANARY, dry_run=True).stays if each.plane == "private_items"]
        assert (kept.reason, kept.refs) == ("unreadable", (f"private_garden:{record}",))
        token = memory.forget(whole_space=True, dry_run=True).token
        assert memory.forget(whole_space=True, token=token).counts["private_items"] == 1
        assert identity_told(memory).closed == 0
        assert_clean(memory)


# Trouble


def test_a_full_disk_leaves_the_store_as_it_was(path: str) -> None:
    record, _ = filled(path)
    vfs = FaultVFS()
    try:
        with open_runtime(path, vfs=vfs.name) as memory:
            token = look(memory).token
            vfs.arm("full@1+")
            with pytest.raises(StorageFull):
                memory.renew_identity(token=token)
            vfs.heal()
            assert identity_of(memory).state == "wrong" and identity_told(memory).former == ()
            commit(memory, turn("t2", "the door is blue"))
            assert_clean(memory)
            done = renew(memory)
            assert done.changed and done.closed_refs == (f"private_garden:{record}",)
            assert_clean(memory)
    finally:
        vfs.close()


@pytest.mark.parametrize(
    "points", [tuple(POINTS)[3:4], pytest.param(tuple(POINTS), marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_killed_at_any_point_the_store_has_the_old_identity_or_the_new_one(
    tmp_path: Path, points: tuple[str, ...]
) -> None:
    first = tmp_path / "store.db"
    record, lost = filled(str(first))
    for number in range(len(points)):
        (tmp_path / str(number)).mkdir()
        shutil.copy(first, tmp_path / str(number) / "store.db")
    command = [sys.executable, "-m", "tests.governance.renewed", str(tmp_path), *points]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [f"{point}: killed" for point in points], done.stderr
    states: list[State] = []
    for number in range(len(points)):
        path = tmp_path / str(number) / "store.db"
        with open_runtime(path) as memory:
            assert_clean(memory)
            assert found(memory, "ferry")
            states.append(identity_of(memory).state)
            if states[-1] != "usable":
                assert identity_told(memory).former == ()
                assert renew(memory).changed
            shown = identity_told(memory)
            assert (shown.state, shown.former, shown.closed) == ("usable", (lost,), 1)
            with pytest.raises(PrivacyDenied, match="closed"):
                memory.get_private(record_id=record)
            assert_clean(memory)
    assert states == [POINTS[each][3] for each in points]
