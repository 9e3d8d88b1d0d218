"""Snapshots: under load, of every backend, changed or cut anywhere, of another store, and what they keep."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.contracts.codec import replace
from beetle.contracts.common import WireScope
from beetle.contracts.errors import (
    BeetleError,
    Conflict,
    Forbidden,
    IntegrityViolation,
    NoDescriptor,
    NotFound,
    Overloaded,
    SnapshotStays,
    StorageFull,
    StoreCorrupt,
)
from beetle.open import Embedded
from beetle.runtime.areas.snapshots import file_form, store_snapshots
from beetle.runtime.areas.snapshots.file_form import MAGIC, PAYLOAD_AT, Header
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.store import snapshot_file
from tests.descriptors import descriptors_left
from tests.forked import Daemon
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    commit,
    found,
    held_snapshot,
    lifecycle,
    open_runtime,
    replay,
    store_of,
    turn,
    write_skill,
)
from tests.transports.conftest import commit as ticket

STANDALONE = "profile-linux-device-standalone-memory"
WRITERS = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "b.db"


@pytest.fixture
def memory(path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened


def made(memory: MemoryRuntime) -> str:
    return memory.create_snapshot().snapshot.snapshot_id


def file_of(memory: MemoryRuntime, snapshot_id: str) -> Path:
    return Path(store_snapshots.path_of(store_of(memory), snapshot_id))


def texts(memory: MemoryRuntime) -> list[str | None]:
    """Every message's content, None where it is erased."""
    return [message.content or None for each in replay(memory) for message in each.messages]


def beside(path: Path) -> set[str]:
    """Names of what stands beside the store, but for what always does."""
    usual = {path.name + end for end in ("", "-wal", "-shm", ".lock", ".identity", ".snapshots")}
    return {each.name for each in path.parent.iterdir()} - usual


# What is in it


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_what_was_acknowledged_before_is_in_it_and_what_came_after_is_not(path: Path, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t1", "the kettle is on"))
        write_skill(memory, "tea", "boil water")
        before = memory.inspect().counts
        snapshot_id = made(memory)
        commit(memory, turn("t2", "the lamp is off"))
        lifecycle(memory, "delete_raw", "t1")
        report = memory.restore_snapshot(snapshot_id=snapshot_id, keep_erased=True)
        assert memory.inspect().counts == before
        assert texts(memory) == ["the kettle is on"]
        assert found(memory, "kettle") and not found(memory, "lamp")
        assert_clean(memory)
        kept = report.kept_as
    assert kept is not None
    with open_runtime(kept, backend) as old:
        assert texts(old) == [None, "the lamp is off"]
        assert_clean(old)


def test_a_restored_store_is_there_after_it_is_opened_again(path: Path) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "one"))
        snapshot_id = made(memory)
        commit(memory, turn("t2", "two"))
        memory.restore_snapshot(snapshot_id=snapshot_id)
        commit(memory, turn("t3", "three"))
    with open_runtime(path) as memory:
        assert texts(memory) == ["one", "three"]
        assert_clean(memory)
        events = [each.event for each in memory.inspect().operator_actions]
        assert [each for each in events if each.startswith("snapshot")] == ["snapshot_restored", "snapshot_created"]


def test_what_was_erased_is_in_no_byte_of_a_later_snapshot(memory: MemoryRuntime) -> None:
    for number in range(30):
        commit(memory, turn(f"t{number}", f"zqcanary{number}qz " + "word " * 200))
    lifecycle(memory, "delete_raw", *(f"t{number}" for number in range(0, 30, 2)))
    payload = zlib.decompress(file_of(memory, made(memory)).read_bytes()[PAYLOAD_AT:])
    assert b"zqcanary1qz" in payload
    for number in range(0, 30, 2):
        assert f"zqcanary{number}qz".encode() not in payload, number


def test_a_deletion_says_which_copies_may_hold_it_still(memory: MemoryRuntime, path: Path) -> None:
    for name in ("t1", "t2", "t3", "t4"):
        commit(memory, turn(name, f"content of {name}"))
    assert lifecycle(memory, "delete_raw", "t1").replica_horizon is None
    made(memory)
    newest = memory.create_snapshot().snapshot
    assert lifecycle(memory, "delete_raw", "t2").replica_horizon == newest.created_at
    assert memory.inspect().runtime.replica_horizon == newest.created_at
    memory.restore_snapshot(snapshot_id=newest.snapshot_id)
    memory.prune_snapshots(keep=0)
    assert lifecycle(memory, "delete_raw", "t3").replica_horizon is not None, "the store that was set aside is a copy"
    memory.prune_snapshots(keep=0, replaced=True)
    assert beside(path) == set()
    assert lifecycle(memory, "delete_raw", "t4").replica_horizon is None


# Under load


def test_a_snapshot_under_full_write_load_holds_a_prefix_of_what_was_acknowledged() -> None:
    """Eight clients write all the while: through the snapshot, its checking and the restore. None of them fails."""
    begun, told = [0] * WRITERS, [0] * WRITERS
    stop, failed = threading.Event(), list[BaseException]()

    def write(place: int) -> None:
        try:
            with Client(daemon.socket) as client:
                while not stop.is_set():
                    begun[place] += 1
                    client.commit_transcript(**ticket(begun[place], f"w{place}"))
                    told[place] = begun[place]
        except (BeetleError, ConnectionError) as error:
            failed.append(error)

    with Daemon(profile=STANDALONE) as daemon, daemon.client() as operator:
        threads = [threading.Thread(target=write, args=(place,)) for place in range(WRITERS)]
        for each in threads:
            each.start()
        while min(told) < 20:
            assert not failed, failed
        least = list(told)
        snapshot = operator.create_snapshot().snapshot
        most = list(begun)
        assert operator.verify_snapshot(snapshot_id=snapshot.snapshot_id).valid
        report = operator.restore_snapshot(snapshot_id=snapshot.snapshot_id)
        after = list(begun)
        while any(now <= then for now, then in zip(told, after, strict=True)):
            assert not failed, failed
        stop.set()
        for each in threads:
            each.join()
        assert not failed, failed
        assert operator.verify_store().clean
        total = 0
        for place in range(WRITERS):
            held = _tickets(operator, f"w{place}")
            prefix = next((n for n, number in enumerate(held) if number != n + 1), len(held))
            assert least[place] <= prefix <= most[place], "what was acknowledged before it, and nothing begun after it"
            rest = held[prefix:]
            assert rest == list(range(told[place] - len(rest) + 1, told[place] + 1)), "all that came after the restore"
            total += prefix
        assert snapshot.counts is not None and total == snapshot.counts["messages"]
        assert report.events_behind > 0


def _tickets(client: Client, conversation: str) -> list[int]:
    numbers: list[int] = []
    cursor = None
    while True:
        page = client.replay_transcript(
            conversation={"conversation_id": conversation}, view="host_ui", limit=100, cursor=cursor
        )
        numbers += [int(each.turn_id[1:]) for each in page.turns]
        if not page.has_more:
            return numbers
        cursor = page.next_cursor


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_write_between_two_steps_of_the_copy_waits_for_nothing_and_tears_nothing(path: Path, backend: str) -> None:
    """Without a write-ahead log the copy begins again, and at last has the writers wait; with one it never does."""
    with open_runtime(path, backend) as memory:
        for number in range(60):
            commit(memory, turn(f"t{number}", f"text {number} " + "x" * 30_000))
        store, written = store_of(memory), 0

        def go_on(done: int, of: int) -> None:
            nonlocal written
            assert 0 <= done <= of
            if threading.current_thread() is threading.main_thread() and written < 12 and not held():
                written += 1
                commit(memory, turn(f"more{written}", f"more {written}"))

        def held() -> bool:
            """Whether writers wait now: the copy holds the gate for its last pages."""
            return backend == "file" and written > snapshot_file.RESTARTS

        copied = snapshot_file.back_up(store.settings, store.gate, str(path) + ".copy", go_on)
        assert written >= (snapshot_file.RESTARTS if backend == "file" else 2)
        assert (copied.restarts > 0) == (backend == "file")
        facts = snapshot_file.examine(str(path) + ".copy")
        assert facts is not None and 60 <= facts.counts["turns"] <= 60 + written
        if backend != "file":
            assert facts.counts["turns"] == 60, "one moment: that of the first page"
        assert texts(memory)[-1] == f"more {written}"


# Broken files


def broken_copies(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A snapshot changed, cut and swapped, everywhere in its head and all over the rest."""
    places = [*range(len(MAGIC) + 600), *range(8000, PAYLOAD_AT + 64), *range(PAYLOAD_AT + 64, len(data), 131)]
    for place in places:
        yield f"byte {place}", data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    for cut in (0, 1, len(MAGIC), 8192, PAYLOAD_AT - 1, PAYLOAD_AT, PAYLOAD_AT + 1, len(data) // 2, len(data) - 1):
        yield f"cut at {cut}", data[:cut]
    middle = (PAYLOAD_AT + len(data)) // 2
    yield "swapped halves", data[:PAYLOAD_AT] + data[middle:] + data[PAYLOAD_AT:middle]
    yield "something behind it", data + b"\0"


def test_a_snapshot_that_was_changed_or_cut_anywhere_is_refused_with_nothing_changed(
    memory: MemoryRuntime, path: Path
) -> None:
    commit(memory, turn("t1", "kept"))
    snapshot_id = made(memory)
    file = file_of(memory, snapshot_id)
    data = file.read_bytes()
    store = store_of(memory)
    head = store.head
    for what, broken in broken_copies(data):
        file.write_bytes(broken)
        kept = file_form.read_snapshot_file(str(file), snapshot_id)
        if kept.header is not None:
            target = str(path) + ".tried"
            fault = store_snapshots.unpack(kept, target, lambda done, of: None)
            assert fault in ("payload_changed", "too_large"), what
            os.unlink(target)
    for what, broken in list(broken_copies(data))[::40]:
        file.write_bytes(broken)
        report = memory.verify_snapshot(snapshot_id=snapshot_id)
        assert not report.valid and report.reasons, what
        with pytest.raises(IntegrityViolation):
            memory.restore_snapshot(snapshot_id=snapshot_id)
        assert (store.head, store.epoch, beside(path)) == (head, 0, set()), what
    file.write_bytes(data)
    assert memory.verify_snapshot(snapshot_id=snapshot_id).valid


def forge(memory: MemoryRuntime, snapshot_id: str, change: Callable[[bytes], bytes], **header: Any) -> None:
    """Write a snapshot anew whose digests and signature fit, but whose store or header does not."""
    file = file_of(memory, snapshot_id)
    kept = file_form.read_snapshot_file(str(file), snapshot_id)
    assert kept.header is not None
    content = change(zlib.decompress(file.read_bytes()[PAYLOAD_AT:]))
    payload = zlib.compress(content)
    digest = hashlib.sha256(payload).hexdigest()
    made = replace(
        kept.header, **{"store_bytes": len(content), "payload_bytes": len(payload), "payload_sha256": digest, **header}
    )
    keys = memory._opened._opened.identity.keys()
    assert keys is not None
    file.write_bytes(file_form.encode(store_snapshots.signed(made, keys)) + payload)


def edited(tmp_path: Path, *statements: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        place = tmp_path / "edited.db"
        place.write_bytes(content)
        connection = apsw.Connection(str(place))
        for each in statements:
            connection.execute(each)
        connection.close()
        return place.read_bytes()

    return change


FORGED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "chain_broken": (("UPDATE event_log SET principal = 'x' WHERE seq = 1",), {}),
    "head_differs": (("DELETE FROM event_log WHERE seq = (SELECT max(seq) FROM event_log)",), {}),
    "counts_differ": (("DELETE FROM derived_ref", "UPDATE meta SET value = value"), {"counts": {"turns": 4}}),
    "newer_schema": (("INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')",), {}),
    "not_a_store": (("PRAGMA application_id = 7",), {}),
}


@pytest.mark.parametrize("fault", FORGED)
def test_what_comes_out_must_be_what_the_header_says(memory: MemoryRuntime, tmp_path: Path, fault: str) -> None:
    commit(memory, turn("t1", "kept"))
    commit(memory, turn("t2", "kept too"))
    snapshot_id = made(memory)
    statements, header = FORGED[fault]
    forge(memory, snapshot_id, edited(tmp_path, *statements), **header)
    report = memory.verify_snapshot(snapshot_id=snapshot_id)
    assert fault in report.reasons and not report.valid
    with pytest.raises(IntegrityViolation) as refused:
        memory.restore_snapshot(snapshot_id=snapshot_id, other_store=True)
    assert fault in refused.value.details["faults"]
    assert texts(memory) == ["kept", "kept too"]


def test_a_damaged_page_is_found(memory: MemoryRuntime) -> None:
    for number in range(50):
        commit(memory, turn(f"t{number}", f"text {number} " * 50))
    snapshot_id = made(memory)
    forge(memory, snapshot_id, lambda content: content[:40_960] + bytes(8192) + content[49_152:])
    assert set(memory.verify_snapshot(snapshot_id=snapshot_id).reasons) & {"pages_damaged", "not_a_store"}


def test_a_bomb_is_not_unpacked(memory: MemoryRuntime, path: Path) -> None:
    snapshot_id = made(memory)
    forge(memory, snapshot_id, lambda _: bytes(200 * 2**20), store_bytes=400_000)
    assert memory.verify_snapshot(snapshot_id=snapshot_id).reasons == ("too_large",)
    forge(memory, snapshot_id, lambda content: content, store_bytes=2**60)
    with pytest.raises(StorageFull):
        memory.verify_snapshot(snapshot_id=snapshot_id)
    assert beside(path) == set()


def test_what_is_no_file_of_ours_is_named_and_never_followed(memory: MemoryRuntime, tmp_path: Path) -> None:
    snapshot_id = made(memory)
    folder = file_of(memory, snapshot_id).parent
    ids = [f"s-{n:016x}" for n in range(4)]
    (folder / f"{ids[0]}.beetle-snapshot").symlink_to(file_of(memory, snapshot_id))
    os.mkfifo(folder / f"{ids[1]}.beetle-snapshot")
    (folder / f"{ids[2]}.beetle-snapshot").write_bytes(b"beetle-snapshot 3\n" + bytes(9000))
    shutil.copy(file_of(memory, snapshot_id), folder / f"{ids[3]}.beetle-snapshot")
    (folder / "notes.txt").write_text("mine")
    listed = memory.list_snapshots()
    assert [each.snapshot_id for each in listed.snapshots] == [snapshot_id]
    assert {each.snapshot_id: each.fault for each in listed.broken} == dict(
        zip(ids, ("unreadable", "unreadable", "other_version", "header_broken"), strict=True)
    )
    for each in ids:
        assert not memory.verify_snapshot(snapshot_id=each).valid
    assert set(memory.prune_snapshots(keep=1).removed) == set(ids)
    assert (folder / "notes.txt").exists() and file_of(memory, snapshot_id).exists()


def test_what_cannot_be_removed_is_named_and_all_else_goes(memory: MemoryRuntime) -> None:
    kept_id, gone = made(memory), [made(memory) for _ in range(2)]
    folder = file_of(memory, kept_id).parent
    first = folder / "s-0000000000000005.beetle-snapshot"
    last = folder / "s-ffffffffffffffff.beetle-snapshot"
    first.mkdir(0o700)
    last.write_bytes(b"no snapshot")
    with pytest.raises(SnapshotStays) as stays:
        memory.prune_snapshots(keep=1)
    assert stays.value.details["path"] == str(first) and str(first) in stays.value.hint
    assert len([each for each in folder.iterdir() if each != first]) == 1, "all but the newest one and what stays went"
    row = memory.read_event_log(topics=("lifecycle",), newest_first=True, limit=1).rows[0]
    assert (row.event, row.subject["removed"]) == ("snapshots_pruned", len(gone) + 1)
    first.rmdir()
    first.write_bytes(b"no snapshot")
    assert memory.prune_snapshots(keep=1).removed == ("s-0000000000000005",)


def test_a_snapshot_and_its_folder_are_their_owner_s_alone(memory: MemoryRuntime) -> None:
    file = file_of(memory, made(memory))
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


# Another store, another schema


def test_a_snapshot_of_another_store_is_refused_unless_that_is_allowed(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "b.db", tmp_path / "b" / "b.db"
    with open_runtime(first) as one:
        commit(one, turn("t1", "of the first"))
        snapshot_id = made(one)
        source = file_of(one, snapshot_id)
        with open_runtime(second) as other:
            commit(other, turn("t1", "of the second"))
            own = made(other)
            shutil.copy(source, file_of(other, snapshot_id))
            assert other.verify_snapshot(snapshot_id=snapshot_id).reasons == ("other_store", "other_device")
            with pytest.raises(Conflict) as refused:
                other.restore_snapshot(snapshot_id=snapshot_id)
            assert "other_store" in refused.value.hint
            report = other.restore_snapshot(snapshot_id=snapshot_id, other_store=True)
            assert (report.identity, report.snapshot.own) == ("wrong", False)
            identity = other.inspect().operator.identity
            assert texts(other) == ["of the first"] and identity is not None and identity.state == "wrong"
            listed = {each.snapshot_id: each.own for each in other.list_snapshots().snapshots}
            assert listed == {snapshot_id: True, own: False}, "own is judged by what is open"
            back = other.restore_snapshot(snapshot_id=own, other_store=True)
            assert back.identity == "usable" and texts(other) == ["of the second"]
            assert_clean(other)


def test_a_snapshot_of_an_older_schema_is_migrated_when_it_is_restored(memory: MemoryRuntime) -> None:
    fixture = Path(__file__).parents[1] / "data" / "schema_0001.db"
    snapshot_id = made(memory)
    facts = snapshot_file.examine(str(fixture))
    assert facts is not None and facts.schema == 1
    forge(
        memory, snapshot_id, lambda _: fixture.read_bytes(), schema=1, store_id=facts.store_id, counts=facts.counts,
        event_log_rows=facts.head.seq, event_log_head=facts.head.hash.hex(),
    )  # fmt: skip
    report = memory.restore_snapshot(snapshot_id=snapshot_id, other_store=True)
    assert report.migrations_applied == (
        "0002_governance",
        "0003_sdk",
        "0004_large_stores",
        "0005_log_head",
        "0006_event_places",
        "0007_removed_values",
        "0008_waiting",
        "0009_erasures",
        "0010_seals",
        "0011_skill_registry",
        "0012_chains",
        "0013_capture",
        "0014_toc",
        "0015_scheduler",
        "0016_chunks",
        "0017_event_places_in_order",
        "0018_former_identities",
        "0019_fewer_pages",
        "0020_index_tail",
        "0021_message_times",
        "0022_word_bitmaps",
        "0023_key_seals",
        "0024_first_reports",
    )
    assert memory.inspect().store.schema == 24
    assert_clean(memory)


def test_what_was_said_in_a_first_report_does_not_come_back_with_an_older_snapshot(
    memory: MemoryRuntime, tmp_path: Path
) -> None:
    chunk = {"content": "the quagga of Amsterdam", "conversation_id": "c"}
    memory.call("chunk.create", chunk, idempotency_key="key")
    snapshot_id = made(memory)
    memory.forget(query="quagga", token=memory.forget(query="quagga", dry_run=True).token)
    said = "UPDATE idempotency SET report = CAST(report || 'the quagga of Amsterdam' AS BLOB)"
    older = edited(tmp_path, said, "DELETE FROM schema_migration WHERE number = 24")
    forge(memory, snapshot_id, older, schema=23)
    report = memory.restore_snapshot(snapshot_id=snapshot_id)
    assert (report.migrations_applied, report.erased) == (("0024_first_reports",), {"chunks": 1})
    assert b"quagga" not in Path(memory._opened._opened.store.settings.path).read_bytes()
    assert memory.call("chunk.create", chunk, idempotency_key="key").chunk.content == chunk["content"]


# What stands in the way


def test_a_full_disk_leaves_nothing_behind(memory: MemoryRuntime, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(memory, turn("t1", "kept"))
    snapshot_id = made(memory)
    monkeypatch.setattr(store_snapshots, "free_bytes", lambda _: 1)
    for ask in (
        memory.create_snapshot,
        lambda: memory.verify_snapshot(snapshot_id=snapshot_id),
        lambda: memory.restore_snapshot(snapshot_id=snapshot_id),
    ):
        with pytest.raises(StorageFull):
            ask()
    assert beside(path) == set()
    assert [each.name for each in file_of(memory, snapshot_id).parent.iterdir()] == [f"{snapshot_id}.beetle-snapshot"]
    assert texts(memory) == ["kept"]


@pytest.mark.parametrize("backend", ["sqlite", "embedded"])
def test_a_reader_that_does_not_end_makes_a_restore_give_up_and_nothing_is_changed(
    path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beetle.store.engine.store.EXCHANGE_WAIT_S", 0.1)
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t1", "one"))
        snapshot_id = made(memory)
        commit(memory, turn("t2", "two"))
        with held_snapshot(memory), pytest.raises(Overloaded):
            memory.restore_snapshot(snapshot_id=snapshot_id)
        assert texts(memory) == ["one", "two"] and beside(path) == set()
        memory.restore_snapshot(snapshot_id=snapshot_id)
        assert texts(memory) == ["one"]


def test_a_store_that_cannot_be_opened_in_its_place_gives_the_old_one_back(memory: MemoryRuntime, path: Path) -> None:
    commit(memory, turn("t1", "kept"))
    store = store_of(memory)
    wrong = Path(str(path) + ".restore-s-0000000000000000")
    wrong.write_bytes(b"no database at all" * 400)
    with store.held(), pytest.raises(StoreCorrupt):
        store.exchange(str(wrong), str(path) + ".before-s-0000000000000000")
    assert (store.epoch, texts(memory)) == (0, ["kept"])
    commit(memory, turn("t2", "and written"))
    assert_clean(memory)
    assert beside(path) == set()


def test_one_long_task_runs_at_a_time(memory: MemoryRuntime) -> None:
    running = memory._opened.dispatcher.lifecycle
    snapshot_id = made(memory)
    with running.alone("snapshot.create"):
        assert memory.inspect().runtime.task == "snapshot.create"
        assert memory.inspect().runtime.mode == "maintenance"
        for ask in (
            memory.create_snapshot,
            memory.recover,
            lambda: memory.restore_snapshot(snapshot_id=snapshot_id),
            lambda: memory.prune_snapshots(keep=0),
        ):
            with pytest.raises(Overloaded) as refused:
                ask()
            assert "snapshot.create is running" in refused.value.message
        commit(memory, turn("t1", "writes go on"))
    counts = memory.create_snapshot().snapshot.counts
    assert counts is not None and counts["turns"] == 1


def test_a_principal_that_is_no_operator_may_look_and_change_nothing(memory: MemoryRuntime, path: Path) -> None:
    snapshot_id = made(memory)
    panel = as_panel(memory)
    for ask in (
        panel.create_snapshot,
        lambda: panel.restore_snapshot(snapshot_id=snapshot_id),
        lambda: panel.prune_snapshots(keep=0),
        panel.recover,
        panel.close_runtime,
    ):
        with pytest.raises(Forbidden):
            ask()
    (seen,) = panel.list_snapshots().snapshots
    assert (seen.snapshot_id, seen.counts, seen.store_id) == (snapshot_id, None, None)
    assert panel.list_snapshots().folder is None and panel.verify_snapshot(snapshot_id=snapshot_id).valid
    assert str(path) not in repr(panel.list_snapshots())


def as_panel(memory: MemoryRuntime) -> MemoryRuntime:
    """A principal on the same store that is no operator, with every grant that one may have."""
    caller = Caller("panel", "principal", OPERATOR_CAPABILITIES - {"admin"}, ("host_ui",), "in_process", "owner-a")
    return MemoryRuntime(Embedded(memory._opened._opened, caller, WireScope(owner_id="owner-a")))


def test_a_removed_snapshot_is_not_found(memory: MemoryRuntime) -> None:
    snapshot_id = made(memory)
    memory.prune_snapshots(keep=0)
    with pytest.raises(NotFound):
        memory.verify_snapshot(snapshot_id=snapshot_id)


def test_a_header_is_a_struct_that_refuses_what_it_does_not_know() -> None:
    assert Header.__struct_config__.forbid_unknown_fields and Header.__struct_config__.frozen


@pytest.mark.parametrize("left", range(8))
def test_what_lacks_a_descriptor_finds_no_snapshot_broken(memory: MemoryRuntime, left: int) -> None:
    """A snapshot that cannot be opened is broken, and what is broken is pruned."""
    commit(memory, turn("t1", "the kettle"))
    kept = made(memory)
    memory.verify_snapshot(snapshot_id=kept)
    memory.prune_snapshots(keep=1)
    memory.restore_snapshot(snapshot_id=kept, dry_run=True)
    found: list[Any] = []
    for work in (
        lambda: memory.verify_snapshot(snapshot_id=kept).valid,
        lambda: memory.prune_snapshots(keep=1).removed == (),
        lambda: not memory.restore_snapshot(snapshot_id=kept, dry_run=True).changed,
        lambda: memory.create_snapshot().snapshot.own,
    ):
        with descriptors_left(left):
            try:
                found.append(work())
            except NoDescriptor:
                found.append(None)
    assert set(found) <= {True, None} and (left or set(found) == {None})
    assert memory.verify_snapshot(snapshot_id=kept).valid
    assert_clean(memory)


def test_a_snapshot_for_which_no_descriptor_is_left_is_not_broken(memory: MemoryRuntime) -> None:
    kept = made(memory)
    with descriptors_left(0), pytest.raises(NoDescriptor):
        file_form.read_snapshot_file(str(file_of(memory, kept)), kept)
