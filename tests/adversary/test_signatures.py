"""What the device has signed: snapshots, exports, and the event log's head. Whoever changes them cannot sign them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import replace
from beetle.contracts.errors import Conflict, IntegrityViolation, StorageFull
from beetle.domain.chain import chain_hash
from beetle.domain.continuity import close_envelope, open_envelope
from beetle.runtime.areas.snapshots import file_form, store_snapshots
from beetle.runtime.areas.snapshots.file_form import PAYLOAD_AT, UNSIGNED_MAGIC, Header
from beetle.runtime.host import log_head
from beetle.runtime.host.identity import Keys
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import commit, open_runtime, store_of, turn

ADDS_DEVICE = """
INSERT INTO device (device_id, label, state, owner_id, agent_id, capabilities, salt, verifier, fingerprint, generation,
  created_at, updated_at)
VALUES ('mallory', 'm', 'active', 'owner-a', 'a', '["recall","admin"]', x'00', x'00', 'f', 1, 1, 1)
"""
TRIGGERS = (
    "CREATE TRIGGER keep BEFORE DELETE ON body BEGIN INSERT INTO meta VALUES (old.message, old.content); END",
    "CREATE TRIGGER again AFTER UPDATE ON device BEGIN UPDATE device SET state = 'active'; END",
)


def keys_of(memory: MemoryRuntime) -> Keys:
    keys = memory._opened._opened.identity.keys()
    assert keys is not None
    return keys


def file_of(memory: MemoryRuntime, snapshot_id: str) -> Path:
    return Path(store_snapshots.path_of(store_of(memory), snapshot_id))


def edit(path: str | Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for each in statements:
        for _ in connection.execute(each):
            pass
    connection.close()


def rewrite(
    memory: MemoryRuntime, snapshot_id: str, *statements: str, head: Callable[[Header], Header] = lambda head: head
) -> None:
    """Change the store inside a snapshot, and make its sums and counts anew, as anybody can who may write the file."""
    file = file_of(memory, snapshot_id)
    header = file_form.read_snapshot_file(str(file), snapshot_id).header
    assert header is not None
    inside = file.with_name("inside.db")
    inside.write_bytes(zlib.decompress(file.read_bytes()[PAYLOAD_AT:]))
    edit(inside, *statements)
    connection = apsw.Connection(str(inside))
    devices = connection.execute("SELECT count(*) FROM device").get
    connection.close()
    payload = zlib.compress(inside.read_bytes())
    made = replace(
        header, store_bytes=inside.stat().st_size, payload_bytes=len(payload),
        payload_sha256=hashlib.sha256(payload).hexdigest(), counts={**header.counts, "devices": devices},
    )  # fmt: skip
    inside.unlink()
    file.write_bytes(file_form.encode(head(made)) + payload)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


# Snapshots


def test_a_snapshot_with_a_device_and_triggers_added_restores_in_no_way(path: str, tmp_path: Path) -> None:
    """Signed as before, unsigned, or signed by the attacker's own device: its sums fit, and it changes nothing."""
    with open_runtime(path) as memory, open_runtime(tmp_path / "mallory" / "store.db") as mallory:
        commit(memory, turn("t1", "the key is blue"))
        before = store_of(memory).store_id, store_of(memory).epoch
        signed: dict[str, Callable[[Header], Header]] = {
            "wrong_signature": lambda header: header,
            "unsigned": lambda header: replace(header, signed=None),
            "other_device": lambda header: store_snapshots.signed(header, keys_of(mallory)),
        }
        for fault, head in signed.items():
            taken = memory.create_snapshot().snapshot.snapshot_id
            rewrite(memory, taken, ADDS_DEVICE, *TRIGGERS, head=head)
            report = memory.verify_snapshot(snapshot_id=taken)
            assert not report.valid and fault in report.reasons
            for other_store in (False, True):
                with pytest.raises(IntegrityViolation) as refused:
                    memory.restore_snapshot(snapshot_id=taken, other_store=other_store)
            wanted = "wrong_signature" if fault == "wrong_signature" else "schema_altered"
            assert wanted in refused.value.details["faults"]
            assert wanted in report.reasons
        assert (store_of(memory).store_id, store_of(memory).epoch) == before


def test_a_device_that_was_put_into_a_snapshot_is_suspended_and_counted(path: str) -> None:
    """Even where the operator vouches for the file: what the store that is open does not have, opens nothing."""
    with open_runtime(path) as memory:
        memory.add_device(device_id="own", label="own", capabilities=["recall"])
        taken = memory.create_snapshot().snapshot.snapshot_id
        rewrite(memory, taken, ADDS_DEVICE, head=lambda header: replace(header, signed=None))
        with pytest.raises(Conflict) as refused:
            memory.restore_snapshot(snapshot_id=taken)
        assert refused.value.details["faults"] == ["unsigned"] and "no device has signed it" in refused.value.message
        assert memory.restore_snapshot(snapshot_id=taken, other_store=True, dry_run=True).devices_suspended == 1
        report = memory.restore_snapshot(snapshot_id=taken, other_store=True)
        assert report.devices_suspended == 1
        states = {each.device_id: each.state for each in memory.list_devices().devices}
        assert states == {"own": "active", "mallory": "suspended"}


def test_a_snapshot_of_another_device_says_whose_it_is(path: str, tmp_path: Path) -> None:
    with open_runtime(path) as memory, open_runtime(tmp_path / "other" / "store.db") as other:
        commit(other, turn("t1", "theirs"))
        taken = other.create_snapshot().snapshot
        assert taken.device == keys_of(other).fingerprint
        folder = Path(store_snapshots.folder_of(store_of(memory)))
        folder.mkdir()
        shutil.copy(file_of(other, taken.snapshot_id), folder)
        listed = memory.list_snapshots().snapshots[0]
        assert (listed.device, listed.own) == (taken.device, False)
        with pytest.raises(Conflict) as refused:
            memory.restore_snapshot(snapshot_id=taken.snapshot_id)
        assert refused.value.details["device"] == taken.device and taken.device in refused.value.message
        assert keys_of(memory).fingerprint in refused.value.message and "other_store" in refused.value.hint
        report = memory.restore_snapshot(snapshot_id=taken.snapshot_id, other_store=True)
        assert report.snapshot.device == taken.device
        assert memory.verify_store().clean


def test_a_snapshot_from_before_there_were_signatures_needs_to_be_vouched_for(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "kept"))
        taken = memory.create_snapshot().snapshot.snapshot_id
        file = file_of(memory, taken)
        header = file_form.read_snapshot_file(str(file), taken).header
        assert header is not None
        old = file_form.encode(replace(header, signed=None))[:8192]
        old = old.replace(file_form.MAGIC, UNSIGNED_MAGIC, 1).replace(b',"signed":null', b"", 1).rstrip()
        old = old.ljust(8191) + b"\n"
        line = hashlib.sha256(old).hexdigest().encode() + b"\n"
        file.write_bytes(old + line + file.read_bytes()[PAYLOAD_AT:])
        assert memory.verify_snapshot(snapshot_id=taken).reasons == ("unsigned",)
        with pytest.raises(Conflict):
            memory.restore_snapshot(snapshot_id=taken)
        assert memory.restore_snapshot(snapshot_id=taken, other_store=True).changed


def test_without_its_identity_a_store_makes_unsigned_snapshots_and_still_knows_its_own(path: str) -> None:
    with open_runtime(path) as memory:
        signed = memory.create_snapshot().snapshot
        os.rename(path + ".identity", path + ".away")
        unsigned = memory.create_snapshot().snapshot
        assert signed.device is not None and unsigned.device is None
        assert memory.verify_snapshot(snapshot_id=unsigned.snapshot_id).reasons == ("unsigned",)
        assert memory.verify_snapshot(snapshot_id=signed.snapshot_id).valid
        os.rename(path + ".away", path + ".identity")
        assert memory.restore_snapshot(snapshot_id=signed.snapshot_id).devices_suspended == 0


# Exports


def test_an_export_says_whose_it_is_and_replaces_nothing_unasked(path: str, tmp_path: Path) -> None:
    with open_runtime(path) as memory, open_runtime(tmp_path / "other" / "store.db") as other:
        for each in (memory, other):
            each.write(kind="procedural", source="manual", writes=[{
                "name": "tea", "topic": "t", "title": "Tea", "summary": "s", "content": "boil"}])  # fmt: skip
        theirs = other.export_space()
        own = memory.export_space()
        assert own.archive and theirs.archive
        assert (own.device, theirs.device) == (keys_of(memory).fingerprint, keys_of(other).fingerprint)
        body = bytes(open_envelope(theirs.archive, "space").envelope.body)
        unsigned = close_envelope("space", None, body)
        for archive, device in ((theirs.archive, theirs.device), (unsigned, None)):
            with pytest.raises(Conflict) as refused:
                memory.import_space(archive=archive, mode="full_restore")
            assert refused.value.details.get("device") == device and "other_store" in refused.value.hint
            report = memory.import_space(archive=archive, mode="full_restore", other_store=True)
            assert (report.own, report.device) == (False, device)
        back = memory.import_space(archive=own.archive, mode="full_restore")
        assert (back.own, back.device) == (True, own.device)


def test_an_export_whose_sums_were_made_anew_is_refused(path: str, tmp_path: Path) -> None:
    with open_runtime(path) as memory, open_runtime(tmp_path / "other" / "store.db") as other:
        memory.write(kind="procedural", source="manual", writes=[{
            "name": "tea", "topic": "t", "title": "Tea", "summary": "s", "content": "boil"}])  # fmt: skip
        archive = memory.export_space().archive or b""
        signed = open_envelope(archive, "space").envelope.signed or ""
        body = bytes(open_envelope(archive, "space").envelope.body)
        changed = body.replace(b"boil", b"cold")
        assert changed != body
        for target in (memory, other):
            with pytest.raises(IntegrityViolation):
                forged = close_envelope("space", None, changed, lambda digest: signed)
                target.import_space(archive=forged, mode="bootstrap_import")


# The event log's head


def written(path: str, turns: int = 6) -> None:
    with open_runtime(path) as memory:
        for number in range(turns):
            commit(memory, turn(f"t{number}", f"said {number}"))
        assert memory.verify_store().unsigned_events == turns


def findings(path: str) -> list[tuple[str, str, str]]:
    with open_runtime(path) as memory:
        found = memory.verify_store(pages=False).findings
        return [(each.check, each.subject, each.problem) for each in found]


def make_anew(path: str, *statements: str) -> None:
    """Change the log, and make its chain anew from the first row to the last."""
    edit(path, *statements)
    connection = apsw.Connection(path)
    previous = bytes(32)
    columns = "seq, at, space, topic, event, operation, principal, subject"
    for number, row in enumerate(list(connection.execute(f"SELECT {columns} FROM event_log ORDER BY seq")), 1):
        fields = (number, *row[1:])
        previous = chain_hash(previous, fields)
        connection.execute("UPDATE event_log SET seq = ?, hash = ? WHERE seq = ?", (number, previous, row[0]))
    connection.close()


def test_a_log_that_was_closed_is_signed_to_its_last_row(path: str) -> None:
    written(path)
    with open_runtime(path) as memory:
        assert memory.verify_store().clean and memory.verify_store().unsigned_events == 0
        commit(memory, turn("more", "more"))
        report = memory.verify_store()
        assert report.clean and report.unsigned_events == 1
        memory.create_snapshot()
        assert memory.verify_store().unsigned_events == 1, "its own event alone"


TAMPERINGS: dict[str, tuple[bool, str, str]] = {
    "a cut tail": (
        False, "DELETE FROM event_log WHERE seq > (SELECT max(seq) - 3 FROM event_log)", "rows were cut off"),
    "a chain made anew": (True, "UPDATE event_log SET principal = 'nobody' WHERE seq = 2", "the chain was made anew"),
    "a row taken out": (True, "DELETE FROM event_log WHERE seq = 2", "rows were cut off"),
    "no signature": (False, "DELETE FROM log_head", "its row is missing"),
    "another signature": (
        False, "UPDATE log_head SET signed = replace(signed, '.', '.e')", "is not what this store's device has signed"),
}  # fmt: skip


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_log_that_was_changed_while_it_was_closed_is_named_and_never_signed_over(path: str, tampering: str) -> None:
    written(path)
    anew, statement, problem = TAMPERINGS[tampering]
    (make_anew if anew else edit)(path, statement)
    for _ in range(2):
        ((_, told),) = [(subject, told) for check, subject, told in findings(path) if check == "event_log_head"]
        assert problem in told
        with open_runtime(path) as memory:
            commit(memory, turn("later", "goes on"))


def test_another_device_s_signature_is_named(path: str, tmp_path: Path) -> None:
    written(path)
    with open_runtime(tmp_path / "other" / "store.db") as other:
        keys = keys_of(other)
    connection = sqlite3.connect(path)
    (store,) = connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
    (rows, digest) = connection.execute("SELECT seq, hash FROM event_log ORDER BY seq DESC LIMIT 1").fetchone()
    text = log_head.signed_text.sign(keys, log_head.HEAD, digest=digest.hex(), store=store, rows=rows)
    connection.execute("UPDATE log_head SET signed = ?", (text,))
    connection.commit()
    connection.close()
    assert findings(path) == [
        ("event_log_head", "signed head", f"was signed by another device, {keys.fingerprint}"),
        ("seals", "log_head row 1", "is not what the runtime wrote"),
    ]  # fmt: skip


def test_what_was_written_is_signed_in_time_without_anybody_asking(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_head, "SIGN_AFTER_S", 0.01)
    with open_runtime(path) as memory:
        for number in range(3):
            commit(memory, turn(f"t{number}", "said"))
            wait_until(lambda: memory.verify_store(pages=False).unsigned_events == 0)


def test_a_head_whose_signing_the_disk_refused_is_signed_at_the_next_occasion(path: str) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, vfs=vfs.name) as memory:
            commit(memory, turn("t", "said"))
            vfs.arm("full@1+")
            with pytest.raises(StorageFull):
                memory.create_snapshot()
            vfs.heal()
            memory.create_snapshot()
            assert memory.verify_store().unsigned_events == 1, "its own event alone"
    finally:
        vfs.close()


def test_the_head_is_signed_within_a_minute_of_writing() -> None:
    assert log_head.SIGN_AFTER_S < 60


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_store_that_was_killed_is_clean_and_tells_its_unsigned_rows(path: str, tmp_path: Path) -> None:
    killed = tmp_path / "killed" / "store.db"
    killed.parent.mkdir()
    with open_runtime(path) as memory:
        memory.create_snapshot()
        for number in range(4):
            commit(memory, turn(f"t{number}", "said"))
        for end in ("", "-wal", ".identity"):
            shutil.copy(path + end, f"{killed}{end}")
    with open_runtime(killed) as memory:
        report = memory.verify_store()
        assert report.clean and report.unsigned_events == 5
    assert findings(str(killed)) == []


def test_a_refusal_of_the_disk_at_close_closes_the_store_all_the_same(path: str) -> None:
    memory = open_runtime(path)
    commit(memory, turn("t1", "kept"))
    store = store_of(memory)
    store.writer.close()
    memory._opened.release()
    assert store.closed
    assert findings(path) == []
