"""A row that another program changed, added or removed is named by verify, whatever table it is in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import BeetleError
from beetle.runtime.areas.checks import BY_NAME
from beetle.store import common_words, word_bitmaps
from beetle.store.seals import UNSEALED
from tests.building import candidate, candidates, message, skill, turn, write
from tests.cases import PROPOSAL
from tests.governance.keeping import key_file
from tests.governance.material import OWNER
from tests.governance.material import Store as Material
from tests.sdk.answering import answering, opened, runtime
from tests.store.conftest import open_runtime

NAMES_NOTHING = {
    "host_ref.host_ref": "no row names a host ref without a label",
    "attr.attr": "no row names an attr",
    "conversation_speaker.conversation_speaker": "no row names an entry of the list of speakers",
    "idempotency.idempotency": "no row names a first report; its number says when it goes",
    "message.message": "only its content and its index row name a message, and an erased one has none",
}
"""Keys that say nothing when no other row has them: changing such a one changes nothing that anybody reads."""
GO_BY_THEMSELVES = "idempotency"
"""First reports are removed by the runtime all the time, the oldest first."""
ASKS_FOR_MORE = "toc_outbox"
"""A row that is added asks for a day of the table of contents to be made anew, which changes nothing."""
INDEX = "recall_index"
"""Its own tables are no rows of records: recovery makes them anew from what they index."""


class Store(NamedTuple):
    """A store that holds every kind of row, and each of its tables' columns."""

    path: Path
    columns: dict[str, list[str]]


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Few messages have bitmaps."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(word_bitmaps, "BLOCK_KEY_BITS", 3)
        patched.setattr(common_words, "COMMON", 1_000)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, small_blocks: None) -> Store:
    material = Material(tmp_path_factory.mktemp("rows"), "unmasked")
    conversation = {"conversation_id": "spoken"}
    said = message("s1", "I keep bees", actor={"speaker": "Ada"})
    material.ask("transcript.commit", {"conversation": conversation, "turns": [turn("s1", said)]})
    material.ask("memory.write", write(skill("cited", citations=["evidence:local/spoken/s1"])))
    material.ask("device.add", {"label": "a panel", "capabilities": ["recall"]}, "operator")
    material.door.opened.store.close()
    path = material.path
    with answering() as server:
        asking = opened(server.model(), str(path), "sqlite")
        runtime(asking, owner=OWNER).maintain(conversation=conversation)
        asking.store.close()
    with open_runtime(path, owner=OWNER) as memory:
        key_file(path).unlink()
        memory.renew_identity(token=memory.renew_identity(dry_run=True).token)
        private = candidate("own", "the gate sticks", target="private_garden", privacy="subject_private")
        memory.call("memory.write", candidates(private))
        memory.call("evolve.propose", {"proposals": [PROPOSAL]})
        written = {"chain_key": "c", "thought_type": "Plan", "agent_id": "ada", "agent_owner": "ops", "session_id": "s"}
        memory.call("chain.append", {**written, "content": "one", "tags": ["t"], "concepts": ["c"], "confidence": 0.5})
        related = [
            {"kind": "supports", "index": 0, "valid_at": "2026-01-01T00:00:00Z"},
            {"kind": "caused_by", "ref": "x"},
        ]
        memory.call(
            "chain.append", {**written, "content": "two", "refs": [0], "relations": related, "agent_name": "Byron"}
        )
        key = {"chain_key": "c", "agent_id": "ada", "key_id": "k", "algorithm": "ed25519"}
        memory.call("chain.add_agent_key", {**key, "public_key_bytes": [7] * 32})
        for action, index in (("mask", 0), ("erase", 1)):
            memory.call("chain.lifecycle", {"chain_key": "c", "action": action, "indexes": [index], "reason": "r"})
        memory.call("chain.append", {**written, "content": "three"})
        noted = {"conversation_id": "c", "tags": ["t"], "type": "note", "tokens": 7}

        def noting(more: dict[str, Any]) -> Any:
            return memory.call("chunk.create", {**noted, **more})

        first = noting({"content": "one"}).chunk.id
        second = noting({"content": "two", "links": {"supports": [first, "elsewhere"]}}).chunk.id
        noting({"content": "three", "conversation_id": "d"})
        memory.get_chunk(second)
        gone = noting({"content": "four"}).chunk.id
        memory.call("chunk.delete", {"id": first})
        memory.call("chunk.delete", {"id": gone, "permanent": True})
        captured = {"host_session_id": "s", "host_turn_index": 0, "role": "user", "content": "the kiln is hot"}
        memory.call("turn.capture", captured)
        enrolled = {"host_pubkey_b64": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "label": "laptop"}
        memory.call("host_key.enroll", enrolled)
        memory.call("transport.update", {"name": "unix_socket", "enabled": False})
        memory.call("scheduler.pause", {"job_name": "optimize"})
        memory.call("admin.rebuild_toc", {})
        left = {"conversation": conversation, "turn": turn("s2", message("s3", "They sting"))}
        memory.call("memory.finalize_turn", left, idempotency_key="k")
        memory.call("admin.compact", {})
        said = [turn("s4", message("s4", "the bees swarm"))]
        memory.call("transcript.commit", {"conversation": {"conversation_id": "swarm"}, "turns": said})
    connection = apsw.Connection(str(path))
    names = [name for (name,) in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB ?",
        (INDEX + "*",))]  # fmt: skip
    columns = {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}
    connection.close()
    return Store(path, columns)


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2
    if isinstance(value, bytes):
        return bytes((value[0] ^ 1,)) + value[1:] if value else b"x"
    return value + "x" if isinstance(value, str) else 7


def tamper(connection: apsw.Connection, table: str, column: str, how: str, pick: int) -> str | None:
    """Change, add or remove one row; what was done, None when the table allows no such thing."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
    if not rows:
        return None
    row = list(rows[pick % len(rows)])
    where = " AND ".join(f"{name} IS ?" for name in columns)
    place = columns.index(column)
    try:
        if how == "remove":
            connection.execute(f"DELETE FROM {table} WHERE {where}", row)
        elif how == "change":
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed(row[place]), *row))
        else:
            keys = {each[1] for each in connection.execute(f"PRAGMA table_info({table})") if each[5]}
            unique = _unique(connection, table) | keys
            made = [changed(value) if name in unique else value for name, value in zip(columns, row, strict=True)]
            if not isinstance(made[0], str | bytes) and len(keys) == 1 and columns[0] in keys:
                made[0] = 1 + max(int(each[0] or 0) for each in rows)
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(made))})", made)
    except (apsw.ConstraintError, apsw.MismatchError):
        return None
    return f"{how} {table}.{column}" if connection.changes() else None


def _unique(connection: apsw.Connection, table: str) -> set[str]:
    found: set[str] = set()
    for index in connection.execute(f"PRAGMA index_list({table})").fetchall():
        if index[2]:
            found |= {row[2] for row in connection.execute(f"PRAGMA index_info({index[1]})")}
    return found


def looked_at(path: Path) -> list[tuple[str, str, str]]:
    with open_runtime(path) as memory:
        return [(each.check, each.subject, each.problem) for each in memory.verify_store(pages=False).findings]


def rows_of(path: Path, table: str) -> list[Any]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    # The sum of an empty table is made anew by each opening, which then has other sums of what it logs.
    columns = "of, rows" if table == "table_seal" else "*"
    found = sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
    connection.close()
    return found


def test_the_store_holds_every_kind_of_row_and_is_clean(store: Store, tmp_path: Path) -> None:
    assert looked_at(_copy(store, tmp_path)) == []
    connection = apsw.Connection(str(store.path))
    filled = {name for name in store.columns if connection.execute(f"SELECT count(*) FROM {name}").get}
    connection.close()
    assert set(store.columns) - filled <= RARE, "a new kind of row needs to be in the store of this test"
    assert set(UNSEALED) - set(store.columns) == {INDEX}


RARE = {"erasure", "erasure_left", "pending_erasure", "toc_title"}
"""Kinds of rows that this store does not hold. The first three are gone when an erasure ends; the last are a model's
words, and are sealed by the same code as all other tables."""


def _copy(store: Store, folder: Path) -> Path:
    """A copy of the store with its identity."""
    target = folder / "store.db"
    for end in ("", ".identity"):
        shutil.copy(f"{store.path}{end}", f"{target}{end}")
    return target


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), pick=st.integers(0, 1000), how=st.sampled_from(["change", "add", "remove"]))
def test_a_row_that_another_program_made_is_named(
    store: Store, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, pick: int, how: str
) -> None:
    table = data.draw(st.sampled_from(sorted(set(store.columns) - RARE)))
    column = data.draw(st.sampled_from(store.columns[table]))
    assume(not may_go_unseen(table, column, how))
    check(store, tmp_path_factory.mktemp("one"), table, column, how, pick)


def may_go_unseen(table: str, column: str, how: str) -> bool:
    """Whether verify need not name it: it says nothing, asks for more, or would go by itself."""
    if how == "remove":
        return table == GO_BY_THEMSELVES
    return (how == "change" and f"{table}.{column}" in NAMES_NOTHING) or table == ASKS_FOR_MORE


def check(store: Store, folder: Path, table: str, column: str, how: str, pick: int) -> None:
    path = _copy(store, folder)
    connection = apsw.Connection(str(path))
    done = tamper(connection, table, column, how, pick)
    connection.close()
    if done is None:
        return
    try:
        found = looked_at(path)
    except BeetleError as refused:
        # What cannot be opened any more says why.
        assert refused.key in ("schema_mismatch", "store_corrupt"), done
        return
    if not found:
        assert rows_of(path, table) == rows_of(store.path, table), f"{done}: neither named nor made good"
        return
    assert {name for name, _, _ in found} <= set(BY_NAME), found
    told = " ".join(subject for _, subject, _ in found)
    assert table.removesuffix("_body") in told or _told_by_another(table, found), (done, found)


def _told_by_another(table: str, found: list[tuple[str, str, str]]) -> bool:
    """Tables whose rows follow from others are told of by the check that compares the two."""
    by = {
        "event_log": {"event_log", "event_log_head", "event_places"},
        "event_place": {"event_places"},
        "message": {"evidence", "seals", "recall_index", "committed_turns"},
        "index_tail": {"recall_index"},
        "body": {"evidence"},
        "turn": {"evidence", "seals", "committed_turns"},
        "host_ref": {"seals"},
        "host_ref_label": {"seals"},
        "attr": {"seals"},
        "conversation": {"evidence", "seals", "committed_turns"},
        "conversation_speaker": {"evidence"},
        "row_seal": {"seals"},
        "table_seal": {"seals"},
        "fact_body": {"seals"},
        "log_head": {"event_log_head", "seals"},
        "thought": {"thoughts", "seals"},
        "thought_link": {"thoughts"},
        "chain_activity": {"thoughts"},
        "chunk": {"chunks", "seals"},
        "chunk_link": {"chunks"},
        "chunk_tag": {"chunks"},
        "toc_outbox": {"toc"},
        "toc_node": {"toc", "seals"},
        "grip": {"toc", "seals"},
    }
    return bool({name for name, _, _ in found} & by.get(table, {"seals"}))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["change", "add", "remove"])
def test_every_column_of_every_table(store: Store, tmp_path: Path, how: str) -> None:
    for table in sorted(set(store.columns) - RARE):
        for column in store.columns[table] if how == "change" else store.columns[table][:1]:
            if not may_go_unseen(table, column, how):
                for pick in range(3):
                    check(store, tmp_path, table, column, how, pick)
