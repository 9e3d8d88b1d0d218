"""The recall index says nothing of whose a record is that a caller has to believe: with rows that another program put
under another owner's scope, a search, a list and an erasure keep to what is the caller's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.runtime.planes import table
from beetle.store.indexed import ADD_SQL
from tests.building import candidate, candidates
from tests.store.conftest import commit, open_runtime, store_of, turn, write_skill

INDEXED = {plane.name for plane in table.PLANES if plane.recall is not None and plane.recall.tables}


def fill(memory: MemoryRuntime, word: str) -> None:
    """A record of every plane that the index holds, each of which says a word; and a fact that said it once."""
    commit(memory, turn("t1", f"the {word} is by the lake", at="2024-05-06T12:00:00Z"))
    write_skill(memory, f"{word}-care", f"feed the {word}")
    own = {"authority": "operator", "topic": "animal"}
    memory.call("memory.write", candidates(candidate("f1", f"the old {word} sleeps", **own)))
    memory.call("memory.write", candidates(candidate("f2", f"the {word} swims", **own)))
    thought = {"chain_key": word, "thought_type": "Plan", "agent_id": "ada", "content": f"find the {word}"}
    memory.call("chain.append", thought)
    memory.call("chunk.create", {"conversation_id": "c", "type": "note", "tokens": 7, "content": f"a {word} eats fish"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two owners, whose index says of every row that it is the second one's and has "okapi"."""
    path = tmp_path / "b.db"
    with open_runtime(path, owner="owner-a") as memory:
        fill(memory, "otter")
        with store_of(memory).read() as tx:
            rows = [row for (row,) in tx.rows("SELECT id FROM recall_index_docsize ORDER BY id")]
    with open_runtime(path, owner="owner-b") as memory:
        fill(memory, "okapi")
        assert planes_found(memory) == INDEXED
    assert {row & 15 for row in rows} >= {0, 1, 2, 3, 4, 5}
    connection = apsw.Connection(str(path))
    for row in rows:
        forged = f"s2 p{row & 15} vshared" + (" c1 c2" if row & 15 == 0 else "")
        connection.execute(ADD_SQL, (row, "otter okapi", "", "", forged))
    connection.close()
    return path


def planes_found(memory: MemoryRuntime, **more: Any) -> set[str]:
    return {hit.plane for hit in memory.recall(query="okapi otter", limit=100, **more).hits}


def said(memory: MemoryRuntime, **more: Any) -> str:
    """All that a recall shows."""
    report = memory.recall(query="okapi otter", limit=100, **more)
    assert report.hits
    return "\n".join(f"{hit.ref} {hit.title} {hit.excerpt}" for hit in report.hits)


def test_a_search_shows_records_of_its_own_space_alone(path: Path) -> None:
    with open_runtime(path, owner="owner-b") as memory:
        assert "okapi" in said(memory) and "otter" not in said(memory)
        assert planes_found(memory) == INDEXED
        then = said(memory, as_of="2099-01-01T00:00:00Z", planes=["long_term"])
        assert "okapi" in then and "otter" not in then


def test_a_list_of_facts_shows_none_of_another_owner(path: Path) -> None:
    with open_runtime(path, owner="owner-b") as memory:
        for state in ("current", "all"):
            listed = memory.call("long_term.list", {"query": "okapi", "state": state})
            assert listed.records and not [each for each in listed.records if "otter" in (each.content or "")]


def test_a_query_is_not_dated_by_another_owners_message(path: Path) -> None:
    with open_runtime(path, owner="owner-b") as memory:
        for word, dated in (("okapi", True), ("otter", False)):
            report = memory.recall(query=f"What did we do the day after the {word}?", asked_at="2024-06-01T00:00:00Z")
            assert (report.working_recall.time_from is not None) is dated


def test_an_erasure_by_words_takes_nothing_of_another_owner(path: Path) -> None:
    with open_runtime(path, owner="owner-b") as memory:
        shown = memory.forget(query="otter", dry_run=True)
        assert not any(shown.counts.values())
        shown = memory.forget(query="okapi", dry_run=True)
        assert shown.counts["turns"] == 1
        memory.forget(query="okapi", token=shown.token)
    with open_runtime(path, owner="owner-a") as memory:
        memory.recover()
        assert "otter" in said(memory)
        assert planes_found(memory) == INDEXED
