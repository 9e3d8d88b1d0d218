"""Chains on disk: restarts, erasure, tampering, forgetting, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from tests.store.conftest import assert_clean, files_of, open_runtime

KEY = "kept"
CANARY = "xylocarp-quagmire"


def fill(memory: MemoryRuntime, count: int = 4) -> list[Any]:
    return [
        memory.append_thought(
            chain_key=KEY, thought_type="Plan", content=f"{CANARY} number {number}", agent_id="ada", agent_name="Ada",
            tags=[f"tag{number}"], refs=[0] if number else [],
        ).thought
        for number in range(count)
    ]  # fmt: skip


def edit(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for each in statements:
        connection.execute(each).fetchall()
    connection.close()


def test_a_restart_changes_no_hash_and_no_count(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        fill(memory)
        before = memory.list_chain_agent_registry(chain_key=KEY).agents
        head = memory.chain_head(chain_key=KEY).head_hash
    for _ in range(2):
        with open_runtime(path) as memory:
            assert memory.list_chain_agent_registry(chain_key=KEY).agents == before
            found = memory.chain_head(chain_key=KEY)
            assert (found.head_hash, found.integrity_ok, found.thought_count) == (head, True, 4)
            assert_clean(memory)


def test_an_erased_thought_leaves_no_byte_and_a_chain_that_verifies(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        fill(memory, 3)
        tried = memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[0, 1, 2], reason="r", dry_run=True)
        assert (tried.changed, tried.indexes) == (False, (0, 1, 2))
        done = memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[0, 1, 2], reason="asked for")
        assert (done.changed, done.erasure, done.indexes) == (True, "done", (0, 1, 2))
        assert done.receipt is not None
        again = memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[1], reason="asked for")
        assert not again.changed
        gone = memory.get_thought(chain_key=KEY, thought_index=1).thought
        assert (gone.content, gone.tags, gone.state, gone.refs) == (None, None, "erased", (0,))
        assert memory.chain_head(chain_key=KEY).integrity_ok
        assert memory.recall(query=CANARY).hits == ()
        assert_clean(memory)
        assert all(CANARY.encode() not in each.read_bytes() for each in files_of(path))


def test_a_masked_thought_is_the_owner_s_alone_until_it_is_unmasked(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        fill(memory, 2)
        memory.thought_lifecycle(chain_key=KEY, action="mask", indexes=[1], reason="r")
        shown = memory.get_thought(chain_key=KEY, thought_index=1).thought
        assert (shown.content, shown.state) == (None, "masked")
        assert len(memory.search_thoughts(chain_key=KEY, text=CANARY).thoughts) == 1
        assert len(memory.recall(query=CANARY, planes=["thoughts"]).hits) == 1
        assert "(masked)" in memory.recent_context(chain_key=KEY).prompt
        assert memory.chain_head(chain_key=KEY).integrity_ok
        assert_clean(memory)
        memory.thought_lifecycle(chain_key=KEY, action="unmask", indexes=[0, 1], reason="r")
        assert len(memory.recall(query=CANARY, planes=["thoughts"]).hits) == 2


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE thought_body SET content = content || 'x' WHERE thought = 2", "thoughts:kept/1"),
        ("UPDATE thought_body SET tags = '[]' WHERE thought = 2", "thoughts:kept/1"),
        ("DELETE FROM thought_body WHERE thought = 2", "thoughts:kept/1"),
        ("UPDATE thought SET importance = 0.9 WHERE thought = 3", "thoughts:kept/2"),
        ("UPDATE thought_link SET position = 1 WHERE thought = 3", "thoughts:kept/2"),
        ("INSERT INTO thought_mark VALUES (2, 'erased', 0)", "thoughts:kept/1"),
        ("UPDATE chain_activity SET thoughts = 9", "agent ada of chain kept"),
        ("UPDATE chain_agent SET status = 'revoked'", "chain_agent row 1"),
    ],
)
def test_verify_names_what_another_program_changed(tmp_path: Path, statement: str, named: str) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        fill(memory)
    edit(path, statement)
    with open_runtime(path) as memory:
        found = memory.verify_store()
        assert not found.clean
        assert named in {each.subject for each in found.findings}, found.findings


def test_a_cut_tail_shows_in_the_head_and_in_verify(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        last = fill(memory)[2]
    cut = (
        "DELETE FROM thought_body WHERE thought = 4", "DELETE FROM thought_link WHERE thought = 4",
        "DELETE FROM thought WHERE thought = 4",
    )  # fmt: skip
    edit(path, *cut)
    with open_runtime(path) as memory:
        assert not memory.chain_head(chain_key=KEY).integrity_ok
    # Also where the chain's own row is made to agree.
    edit(path, f"UPDATE chain SET length = 3, pinned = pinned - 1, head = unhex('{last.hash}')")
    with open_runtime(path) as memory:
        assert not memory.chain_head(chain_key=KEY).integrity_ok
        assert "chain kept" in {each.subject for each in memory.verify_store().findings}


def test_forgetting_by_words_by_writer_and_with_the_space(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        fill(memory, 3)
        memory.append_thought(chain_key=KEY, thought_type="Idea", content="something else", agent_id="bob")

        def forget(**what: Any) -> Any:
            tried = memory.forget(dry_run=True, **what)
            return memory.forget(token=tried.token, **what)

        assert forget(query=f"{CANARY} 1").counts == {"thoughts": 1}
        assert forget(subject="ada").counts == {"thoughts": 2}
        left = [each.content for each in memory.search_thoughts(chain_key=KEY).thoughts]
        assert left == [None, None, None, "something else"]
        memory.upsert_chain_agent(chain_key=KEY, agent_id="bob", display_name="Bob the Builder")
        assert forget(whole_space=True).counts["thoughts"] == 1
        assert memory.get_chain_agent(chain_key=KEY, agent_id="bob").agent.display_name == "bob"
        assert memory.chain_head(chain_key=KEY).integrity_ok
        assert_clean(memory)


def test_a_restored_snapshot_erases_again_and_has_the_head_of_its_time(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        fill(memory, 2)
        taken = memory.create_snapshot(label="s").snapshot.snapshot_id
        fill(memory, 1)
        memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[0], reason="r")
        memory.restore_snapshot(snapshot_id=taken)
        head = memory.chain_head(chain_key=KEY)
        assert (head.thought_count, head.integrity_ok) == (2, True)
        assert memory.get_thought(chain_key=KEY, thought_index=0).thought.content is None
        assert_clean(memory)
        fill(memory, 1)
        assert_clean(memory)
