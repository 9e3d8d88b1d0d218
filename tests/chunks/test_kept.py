"""What is kept of chunks on disk: accesses, archives, erasure to the byte, damage, snapshots."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.chunk_tree.archive import Limits, Member, members, packed
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError, NotFound, StorageFull
from beetle.open import Embedded
from beetle.store import chunks
from beetle.store.engine.write_transaction import WriteTransaction
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import DISK_BACKENDS, assert_clean, open_runtime, store_of
from tests.store.test_writer import Crowd

CANARY = "Xylographiekanarienvogel"
TABLES = ("chunk", "chunk_body", "chunk_link", "chunk_tag", "chunk_access", "removed_chunk")


class Kept(NamedTuple):
    """A store with chunks of every kind, by their names."""

    path: Path
    ids: dict[str, str]


def fill(memory: MemoryRuntime) -> dict[str, str]:
    ids: dict[str, str] = {}

    def create(name: str, conversation: str, **more: Any) -> None:
        made = memory.create_chunk(content=f"the {name} one", conversation_id=conversation, tags=["t", name], **more)
        ids[name] = made.chunk.id

    create("first", "c", confidence=0.25, source="import")
    create("second", "c", links={"supports": [ids["first"], "dangling"]})
    create("third", "d", type="pattern", tokens=77)
    create("archived", "d")
    create("gone", "e")
    memory.get_chunk(ids["first"])
    memory.delete_chunk(ids["archived"])
    memory.delete_chunk(ids["gone"], permanent=True)
    return ids


def got(memory: MemoryRuntime, chunk_id: str) -> Any:
    """The chunk of an id, which is there."""
    return memory.get_chunk(chunk_id).chunk


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    path = tmp_path_factory.mktemp("chunks") / "store.db"
    with open_runtime(path) as memory:
        ids = fill(memory)
    return Kept(path, ids)


@pytest.fixture
def path(kept: Kept, tmp_path: Path) -> Path:
    """A copy of it."""
    for each in kept.path.parent.glob("store.db*"):
        if each.is_file():
            shutil.copy(each, tmp_path / each.name)
    return tmp_path / "store.db"


def plain(memory: MemoryRuntime) -> list[Any]:
    """All chunks, without what a store gives them."""
    return [{**each, "revision": 0} for each in memory.list_chunks(state="all").to_dict()["chunks"]]


def test_a_store_is_opened_again_with_all_that_it_had(kept: Kept, path: Path) -> None:
    with open_runtime(path) as memory:
        assert_clean(memory)
        first = got(memory, kept.ids["first"])
        assert (first.metadata.access_count, first.metadata.confidence, first.metadata.source) == (2, 0.25, "import")
        before = plain(memory)
    with open_runtime(path) as memory:
        assert plain(memory) == before, "accesses are stored when the store is closed"


def test_accesses_are_counted_up_to_a_limit_and_fail_nobody_s_write(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        made = memory.create_chunk(content="Read by everybody", conversation_id="c").chunk
        store_of(memory).write(lambda tx: chunks.count_access(tx, chunks.by_keys(tx, [1])[0].identity, 2**53 - 2, 1))
        for _ in range(2):
            memory.get_chunk(id=made.id)
        assert got(memory, made.id).metadata.access_count == 2**53 - 1
        memory.create_chunk(content="Another one", conversation_id="c")
        # What an earlier build has taken from a file.
        store_of(memory).write(lambda tx: tx.run("UPDATE chunk_access SET count = ?", 2**63 - 1))
        memory.get_chunk(id=made.id)
        memory.create_chunk(content="Next", conversation_id="c")
        assert got(memory, made.id).metadata.access_count == 2**53 - 1
    with open_runtime(tmp_path / "b.db") as memory:
        assert got(memory, made.id).metadata.access_count == 2**53 - 1
        assert memory.verify_store().clean


def accesses(memory: MemoryRuntime, chunk_id: str) -> int:
    return memory.get_chunk(chunk_id, count_access=False).chunk.metadata.access_count


def read_five_times(memory: MemoryRuntime) -> str:
    """The id of a chunk that was."""
    made = memory.create_chunk(content="Read by everybody", conversation_id="c").chunk
    for _ in range(5):
        memory.get_chunk(id=made.id)
    return made.id


def test_a_refused_write_loses_no_access(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        read = read_five_times(memory)
        other = memory.create_chunk(content="Another one", conversation_id="c").chunk
        for _ in range(5):
            memory.get_chunk(id=other.id)
        for _ in range(2):
            with pytest.raises(NotFound):
                memory.link_chunk(id=read, kind="supports", target="nowhere")
            assert (accesses(memory, read), accesses(memory, other.id)) == (5, 5)
        got(memory, read)
        assert memory.update_chunk(id=read, content="Changed").chunk.metadata.access_count == 6
        assert (accesses(memory, read), accesses(memory, other.id)) == (6, 5)
    with open_runtime(tmp_path / "b.db") as memory:
        assert (accesses(memory, read), accesses(memory, other.id)) == (6, 5)


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[tuple[MemoryRuntime, MemoryRuntime]]:
    """Two owners of one store."""
    with open_runtime(tmp_path / "b.db", "in-memory") as memory:
        mine: Any = memory._opened
        yield memory, MemoryRuntime(Embedded(mine._opened, mine._caller, WireScope(owner_id="owner-b")))


def never_accessed(memory: MemoryRuntime) -> Any:
    made = memory.create_chunk(content="Read by nobody", conversation_id="c").chunk
    assert (made.metadata.access_count, made.metadata.last_accessed) == (0, None)
    return made


def test_accesses_of_chunks_that_an_import_replaced_count_for_no_other_chunk(
    theirs: tuple[MemoryRuntime, MemoryRuntime],
) -> None:
    memory, other = theirs
    empty = memory.export_space().archive
    read_five_times(memory)
    memory.import_space(archive=empty, mode="full_restore")
    made = never_accessed(other)
    memory.create_chunk(content="Another one", conversation_id="c")
    assert accesses(other, made.id) == 0


def test_an_import_that_replaces_a_space_brings_its_own_accesses(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db", "in-memory") as memory:
        kept = never_accessed(memory)
        before = memory.export_space().archive
        for _ in range(5):
            memory.get_chunk(id=kept.id)
        after = memory.export_space().archive
        for archive, expected in ((before, 0), (after, 5)):
            memory.import_space(archive=archive, mode="full_restore")
            assert accesses(memory, kept.id) == expected


@pytest.mark.parametrize("how", ["delete", "forget"])
def test_a_read_that_saw_a_chunk_before_it_was_erased_counts_for_no_other_chunk(
    theirs: tuple[MemoryRuntime, MemoryRuntime], how: str
) -> None:
    memory, other = theirs
    read = read_five_times(memory)
    store, noted = store_of(memory), memory._opened.dispatcher.shared.chunk_accesses
    with store.read() as tx:
        seen = chunks.by_keys(tx, [1])[0]
    if how == "delete":
        memory.delete_chunk(read, permanent=True)
    else:
        memory.forget(query="everybody", token=memory.forget(query="everybody", dry_run=True).token)
    with store.read() as tx:
        noted.note(seen, 1, tx)
    made = never_accessed(other)
    noted.close()
    with store.read() as tx:
        now = chunks.by_keys(tx, [1])[0]
        assert (now.chunk_id, now.accesses) == (made.id, 0), "its row is the one that was erased"


def test_accesses_stay_when_a_file_says_another_time_of_creation(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db", "in-memory") as memory:
        read = read_five_times(memory)
        exported = memory.export_chunk_tree().archive
        assert exported is not None
        for _ in range(2):
            memory.get_chunk(id=read)
        (path, data) = next(each for each in members(exported, Limits(2**20, 2**20, 9)) if isinstance(each, Member))
        file = json.loads(data)
        file["metadata"]["created"] = "2026-02-10T21:37:00Z"
        memory.import_chunk_tree(archive=packed([Member(path, json.dumps(file).encode())]))
        assert got(memory, read).metadata.created == "2026-02-10T21:37:00Z"
        assert accesses(memory, read) == 8


def test_a_group_of_writes_counts_each_access_once_whichever_of_them_fails(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        read = read_five_times(memory)
        noted = memory._opened.dispatcher.shared.chunk_accesses

        def write(tx: WriteTransaction) -> None:
            noted.write(tx, 1)

        def fail(tx: WriteTransaction) -> None:
            noted.write(tx, 1)
            raise NotFound(what="a chunk")

        crowd = Crowd(store_of(memory))
        for name, run in {"a": fail, "b": write, "c": fail, "d": write}.items():
            crowd.add(name, run)
        answers = crowd.release()
        assert [isinstance(answers[each], NotFound) for each in "abcd"] == [True, False, True, False]
        assert accesses(memory, read) == 5
    with open_runtime(tmp_path / "b.db") as memory:
        assert accesses(memory, read) == 5


def test_what_a_batch_reads_is_accessed_once_and_only_when_the_batch_is_done(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        read = read_five_times(memory)
        get = {"op": "chunk.get", "args": {"id": read}}
        more = {"op": "chunk.create", "args": {"content": "Another one", "conversation_id": "c"}}
        gone = {"op": "chunk.update", "args": {"id": "nowhere", "content": "Changed"}}
        crowd = Crowd(store_of(memory))
        crowd.ask("done", lambda: memory.batch(requests=[get, more, get]))
        crowd.add("fails", lambda tx: 1 / 0, by="another")
        first, _, last = crowd.release()["done"].reports
        counts = [each["chunk"]["metadata"]["access_count"] for each in (first, last)]
        assert (counts, accesses(memory, read)) == ([6, 7], 7)
        with pytest.raises(NotFound):
            memory.batch(requests=[get, gone])
        assert accesses(memory, read) == 7
    with open_runtime(tmp_path / "b.db") as memory:
        assert accesses(memory, read) == 7


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_disk_that_refuses_a_commit_loses_no_access(tmp_path: Path, backend: str) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(tmp_path / "b.db", backend, vfs=vfs.name) as memory:
            read = read_five_times(memory)
            vfs.arm("full@1+")
            for _ in range(2):
                with pytest.raises(StorageFull):
                    memory.create_chunk(content="Refused", conversation_id="c")
            vfs.heal()
            assert accesses(memory, read) == 5
            memory.create_chunk(content="Another one", conversation_id="c")
            assert accesses(memory, read) == 5
        with open_runtime(tmp_path / "b.db", backend) as memory:
            assert accesses(memory, read) == 5
    finally:
        vfs.close()


def test_a_commit_that_stands_although_it_answered_an_error_counts_each_access_once(tmp_path: Path) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(tmp_path / "b.db", "file", vfs=vfs.name) as memory:
            read = read_five_times(memory)
            vfs.only, vfs.deletions = str(tmp_path / "b.db-journal"), True
            vfs.arm("late@1")
            with pytest.raises(BeetleError):
                memory.create_chunk(content="It stands", conversation_id="c")
            vfs.heal()
            memory.create_chunk(content="Another one", conversation_id="c")
            assert (memory.chunk_stats().total_chunks, accesses(memory, read)) == (3, 5)
        with open_runtime(tmp_path / "b.db", "file") as memory:
            assert accesses(memory, read) == 5
    finally:
        vfs.close()


def test_a_space_is_taken_out_and_in_with_its_chunks(path: Path, tmp_path: Path) -> None:
    with open_runtime(path) as memory, open_runtime(tmp_path / "other.db") as other:
        archive = memory.export_space().archive
        report = other.import_space(archive=archive, mode="bootstrap_import")
        assert report.counts == {"chunks": 4}
        assert plain(other) == plain(memory)
        assert_clean(other)
        revision = other.chunk_stats().revision
        other.create_chunk(content="not in the archive", conversation_id="c")
        assert other.import_space(archive=archive, mode="full_restore", other_store=True).replaced == {"chunks": 5}
        assert plain(other) == plain(memory) and other.chunk_stats().revision > revision
        changed = other.list_chunks(changed_since=revision, state="all")
        assert len(changed.chunks) == 4 and len(changed.removed) == 1
        with pytest.raises(BeetleError) as found:
            other.import_space(archive=archive, mode="bootstrap_import")
        assert found.value.key == "conflict"
        assert_clean(other)


@pytest.mark.parametrize("how", ["delete", "forget"])
def test_a_deleted_chunk_leaves_no_byte(tmp_path: Path, how: str) -> None:
    path = tmp_path / "store.db"
    with open_runtime(path) as memory:
        for place in range(30):
            memory.create_chunk(content=f"note {place} of the harbour", conversation_id="c", tags=["harbour"])
        said = {"content": f"it is {CANARY}", "conversation_id": "c", "tags": [f"{CANARY}tag", "harbour"]}
        gone = memory.create_chunk(**said).chunk.id
        memory.create_chunk(content="a later one", conversation_id="c", tags=["harbour"])
        if how == "delete":
            assert memory.delete_chunk(gone, permanent=True).erasure == "done"
        else:
            token = memory.forget(query=CANARY, dry_run=True).token
            assert memory.forget(query=CANARY, token=token).erasure == "done"
        left = [each.name for each in tmp_path.glob("store.db*") if each.is_file() and _holds(each)]
        assert left == []
        assert memory.recall(CANARY).hits == ()
        assert_clean(memory)


def _holds(path: Path) -> bool:
    data = path.read_bytes().lower()
    return any(CANARY[start : start + 8].lower().encode() in data for start in range(len(CANARY) - 7))


def fields(path: Path) -> Iterator[tuple[str, str, str, Any]]:
    """(table, column, condition, value) of one row of each table."""
    connection = apsw.Connection(str(path))
    for table in TABLES:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()[:2]:
            values = dict(zip(columns, row, strict=True))
            where = " AND ".join(f"{key} = {values[key]}" for key in keys)
            yield from ((table, column, where, value) for column, value in values.items())
    connection.close()


def other(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes((value[0] ^ 1,)) + value[1:]
    if isinstance(value, str):
        return value.replace("e", "E", 1) if "e" in value else value + "x"
    return 7 if value is None else value + 1


def test_every_changed_field_is_named_by_verify(kept: Kept, path: Path) -> None:
    original = path.read_bytes()
    unnamed: list[str] = []
    for table, column, where, value in fields(kept.path):
        path.write_bytes(original)
        connection = apsw.Connection(str(path))
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (other(value),))
        except apsw.ConstraintError:
            continue  # the schema does not hold such a value
        finally:
            connection.close()
        with open_runtime(path) as memory:
            told = {each.check for each in memory.verify_store(pages=False).findings}
        if not told & {"chunks", "seals", "foreign_keys"}:
            unnamed.append(f"{table}.{column}: {told}")
    assert unnamed == []


def test_a_chunk_that_another_program_changed_says_nothing_and_can_be_deleted(kept: Kept, path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE chunk_body SET content = 'the forged one' WHERE content = 'the first one'")
    connection.close()
    chunk_id = kept.ids["first"]
    with open_runtime(path) as memory:
        assert memory.recall("forged first", planes=["chunks"]).hits == ()
        assert got(memory, chunk_id).content is None
        for op, args in (("chunk.update", {"confidence": 0.5}), ("chunk.delete", {})):
            with pytest.raises(BeetleError) as found:
                memory.call(op, {"id": chunk_id, **args})
            assert found.value.key == "integrity_violation"
        named = {(each.check, each.subject) for each in memory.verify_store().findings}
        assert ("chunks", f"chunks:{chunk_id}") in named
        memory.recover()
        assert memory.delete_chunk(chunk_id, permanent=True).outcome == "deleted"
        assert_clean(memory)


def test_a_restored_snapshot_erases_again_what_was_deleted_since(kept: Kept, path: Path) -> None:
    with open_runtime(path) as memory:
        snapshot = memory.create_snapshot().snapshot.snapshot_id
        memory.delete_chunk(kept.ids["second"], permanent=True)
        memory.update_chunk(id=kept.ids["first"], confidence=0.5)
        memory.restore_snapshot(snapshot_id=snapshot)
        assert memory.get_chunk(kept.ids["second"]).chunk is None
        assert got(memory, kept.ids["first"]).metadata.confidence == 0.25
        assert_clean(memory)


def test_an_older_store_gets_chunks_when_it_is_opened(tmp_path: Path) -> None:
    from beetle.store.engine import migrate

    path = tmp_path / "store.db"
    with open_runtime(path) as memory:
        memory.create_chunk(content="here", conversation_id="c")
        assert memory.inspect().store.schema == migrate.available()[-1].number
        assert "0016_chunks" in [each.name for each in migrate.available()]
