"""Any changed byte of a stored field of a thought, its chain and agents, or a skill version: its row is named."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beetle.contracts.common import WireScope
from beetle.runtime.pipeline.invocation import Call
from tests.registry.conftest import BACKUP
from tests.store.conftest import open_runtime

TABLES = (
    "chain", "thought", "thought_body", "thought_link", "thought_mark", "chain_agent", "chain_alias", "chain_agent_key",
    "chain_activity", "registry_skill", "registry_skill_text", "registry_version", "registry_version_body",
)  # fmt: skip


class Field(NamedTuple):
    """A stored value and its row: by primary key, and as findings name it."""

    table: str
    column: str
    kind: str
    where: str
    key: tuple[Any, ...]
    value: Any
    named: frozenset[str]


class Store(NamedTuple):
    path: Path
    fields: tuple[Field, ...]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("chains") / "store.db"
    with open_runtime(path) as memory:
        said = {"thought_type": "Plan", "agent_id": "ada", "agent_owner": "ops", "session_id": "s", "confidence": 0.75}
        write = memory.append_thought
        write(chain_key="kept", content="one", agent_name="Ada", tags=["a", "b"], concepts=["c \u001f e", "d"], **said)
        write(chain_key="kept", content="two", agent_name="Byron", refs=[0, 0],
              relations=[{"kind": "caused_by", "index": 0, "valid_at": "2026-01-01T00:00:00Z"}], **said)  # fmt: skip
        write(chain_key="kept", content="three", **said)
        memory.branch_chain(chain_key="kept", new_chain_key="other", anchor_index=1)
        write(chain_key="other", content="four", refs=[1], **said)
        memory.append_thought(chain_key="third", content="a chain of its own", thought_type="Idea")
        memory.append_thought(chain_key="third", content="its second", thought_type="Idea")
        public = [7] * 32
        memory.add_chain_agent_key(
            chain_key="kept", agent_id="ada", key_id="k", algorithm="ed25519", public_key_bytes=public
        )
        for action, index in (("mask", 0), ("erase", 2)):
            memory.thought_lifecycle(chain_key="kept", action=action, indexes=[index], reason="r")
        for each in (BACKUP, BACKUP + "more\n"):
            memory.upload_skill(agent_id="ann", content=each)
    connection = apsw.Connection(str(path))
    found = tuple(each for table in TABLES for each in fields_of(connection, table))
    connection.close()
    assert {each.table for each in found} == set(TABLES)
    return Store(path, found)


def fields_of(connection: apsw.Connection, table: str) -> list[Field]:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [each[1] for each in columns if each[5]]
    where = " AND ".join(f"{each} = ?" for each in keys)
    places = dict(connection.execute(
        "SELECT t.thought, c.chain_key || '/' || t.position FROM thought t JOIN chain c USING (chain)"
    ).fetchall())  # fmt: skip
    agents = dict(connection.execute(
        "SELECT a.chain_agent, 'agent ' || a.agent_id || ' of chain ' || c.chain_key "
        "FROM chain_agent a JOIN chain c USING (chain)"
    ).fetchall())  # fmt: skip
    found: list[Field] = []
    for row in connection.execute(f"SELECT * FROM {table}").fetchall():
        values = {each[1]: value for each, value in zip(columns, row, strict=True)}
        named = {f"{table} row {values[keys[0]]}"}
        if "thought" in values:
            named.add(f"thoughts:{places[values['thought']]}")
        if table == "chain_activity":
            named.add(agents[values["chain_agent"]])
        key = tuple(values[each] for each in keys)
        found += [
            Field(table, each[1], each[2], where, key, values[each[1]], frozenset(named))
            for each in columns
            if values[each[1]] not in ("", b"")
        ]
    return found


def flipped(value: Any, kind: str, bit: int) -> Any:
    """The value with one bit of its stored bytes changed; one where there was none."""
    if value is None:
        return {"INTEGER": 1, "REAL": 0.5, "TEXT": "x", "BLOB": b"x"}[kind]
    if kind == "INTEGER":
        changed = (value % 2**64) ^ (1 << bit % 64)
        return changed - 2**64 if changed >= 2**63 else changed
    if kind == "REAL":
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return struct.unpack("<d", struct.pack("<Q", bits ^ (1 << bit % 64)))[0]
    data = bytearray(value.encode() if isinstance(value, str) else value)
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(data)


def check(store: Store, folder: Path, field: Field, value: Any) -> None:
    path = folder / "store.db"
    for end in ("", ".identity"):
        shutil.copy(f"{store.path}{end}", f"{path}{end}")
    connection = apsw.Connection(str(path))
    new = "CAST(? AS TEXT)" if field.kind == "TEXT" else "?"
    try:
        connection.execute(
            f"UPDATE {field.table} SET {field.column} = {new} WHERE {field.where}", (value, *field.key)
        ).fetchall()
    except apsw.ConstraintError:
        return
    finally:
        connection.close()
    what = f"{field.table}.{field.column} of {field.key}: {field.value!r} is {value!r}"
    with open_runtime(path) as memory:
        told = {each.subject for each in memory.verify_store(pages=False).findings}
    # The row by another name: what was changed is what it is named by.
    moved = {f"{field.table} row {value}", *(f"thoughts:{key}/{value}" for key in ("kept", "other", "third"))}
    assert told & (field.named | moved) or field.column in NAMES_THE_ROW, (what, told)
    assert told, what


NAMES_THE_ROW = {"thought", "chain", "chain_agent", "place", "registry_skill", "registry_version", "position"}
"""Keys: a row whose own key was changed is another row, and the one that it was is missing where it is looked for."""


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), table=st.sampled_from(TABLES), bit=st.integers(0, 2**20))
def test_a_changed_byte_is_found(
    store: Store, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, table: str, bit: int
) -> None:
    field = data.draw(st.sampled_from([each for each in store.fields if each.table == table]))
    value = flipped(field.value, field.kind, bit)
    check(store, tmp_path_factory.mktemp("one"), field, value)


@pytest.mark.slow
@pytest.mark.parametrize("bit", [0, 5, 13, 52, 62, 63])
def test_a_byte_of_every_field_of_every_row(store: Store, tmp_path: Path, bit: int) -> None:
    for field in store.fields:
        check(store, tmp_path, field, flipped(field.value, field.kind, bit))


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        # The label texts mean the same, and are not the bytes that were written.
        ("UPDATE thought_body SET tags = replace(tags, ', ', ',' || char(9)) WHERE thought = 1", "thoughts:kept/0"),
        ("UPDATE thought_body SET concepts = replace(concepts, '1f', '1F') WHERE thought = 1", "thoughts:kept/0"),
        # To a thought of the same place in a chain that shares nothing.
        ("UPDATE thought_link SET target = (SELECT thought FROM thought t JOIN chain c USING (chain) "
         "WHERE chain_key = 'third' AND position = 0) WHERE thought = 2 AND place = 0", "thoughts:kept/1"),
        # A number that JSON cannot hold, so that no hash was ever over it.
        ("UPDATE thought_link SET position = 1 << 62 WHERE thought = 2 AND place = 0", "thoughts:kept/1"),
        ("UPDATE thought_link SET valid_at = 7 WHERE thought = 2 AND place = 0", "thoughts:kept/1"),
        ("UPDATE thought_link SET place = 9 WHERE thought = 2 AND place = 2", "thoughts:kept/1"),
        # Who may see it is what another program wants to change.
        ("DELETE FROM thought_mark WHERE state = 'masked'", "seals"),
        ("INSERT INTO thought_mark VALUES (2, 'masked', 0)", "thought 1 of chain kept"),
        ("UPDATE thought_mark SET state = 'erased' WHERE thought = 1", "thought 0 of chain kept"),
        ("UPDATE chain SET adapter = 'jsonl' WHERE chain_key = 'kept'", "chain kept"),
        ("UPDATE chain_agent SET owner = 'me' WHERE agent_id = 'ada'", "agent ada of chain kept"),
        ("UPDATE chain_alias SET alias = 'x'", "agent ada of chain kept"),
        ("UPDATE chain_agent_key SET revoked_at = 1", "agent ada of chain kept"),
    ],
)  # fmt: skip
def test_both_who_runs_the_store_and_who_owns_the_chain_learn_of_it(
    store: Store, tmp_path: Path, statement: str, named: str
) -> None:
    path = tmp_path / "store.db"
    for end in ("", ".identity"):
        shutil.copy(f"{store.path}{end}", f"{path}{end}")
    connection = apsw.Connection(str(path))
    connection.execute(statement).fetchall()
    assert connection.changes()
    connection.close()
    with open_runtime(path) as memory:
        assert not memory.verify_store().clean
        if named != "seals":
            inner = memory._opened
            caller = inner._caller._replace(kind="principal", name="someone")
            scope = WireScope(owner_id="owner-a", channel="local", chat_id="chat")
            own = inner.dispatcher.dispatch(Call("store.verify", {}, caller, scope=scope)).report.findings
            assert named in {each.subject for each in own}, own
