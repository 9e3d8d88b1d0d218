"""What somebody who has never seen this types first, in Python."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import InvalidRequest, StoreReadOnly

TURN = {
    "turn_id": "t1",
    "at": "2026-05-17T09:30:00Z",
    "messages": [{"message_id": "m1", "role": "user", "content": "the spare key is under the mat"}],
}


def test_memory_in_colons_is_the_backend_without_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with MemoryRuntime.open(":memory:") as memory:
        assert memory.inspect().store.backend == "in-memory"
    assert os.listdir(tmp_path) == []
    with pytest.raises(InvalidRequest, match="not a file for the backend"):
        MemoryRuntime.open(":memory:", backend="sqlite")


def test_the_first_field_needs_no_name() -> None:
    with MemoryRuntime.open(":memory:") as memory:
        memory.commit_transcript({"conversation_id": "c"}, turns=[TURN])
        assert [each.turn_id for each in memory.recall("key").hits] == ["t1"]
        assert [each.turn_id for each in memory.recall("key", planes=["evidence"]).hits] == ["t1"]
        assert memory.recall({"query": "key"}).hits
        assert len(memory.replay_transcript({"conversation_id": "c"}, view="host_ui").turns) == 1
        with pytest.raises(TypeError, match="query is given twice"):
            memory.recall("key", query="mat")  # pyright: ignore
        with pytest.raises(InvalidRequest):
            memory.recall(5)  # type: ignore[call-overload]


def test_a_report_is_a_dictionary_when_asked() -> None:
    with MemoryRuntime.open(":memory:") as memory:
        memory.commit_transcript({"conversation_id": "c"}, turns=[TURN])
        told = memory.recall("key").to_dict()
        assert json.loads(json.dumps(told))["hits"][0]["ref"] == "evidence:local/c/t1/m1"


def test_an_error_can_be_pickled_as_it_stands() -> None:
    with MemoryRuntime.open(":memory:") as memory, pytest.raises(InvalidRequest) as caught:
        memory.call("memory.recall", {"query": 5})
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is InvalidRequest
    assert (str(again), again.hint, again.details) == (str(caught.value), caught.value.hint, caught.value.details)


def test_a_call_after_close_says_closed(tmp_path: Path) -> None:
    memory = MemoryRuntime.open(str(tmp_path / "b.db"))
    memory.close()
    for operation, arguments in (
        ("memory.recall", {"query": "key"}),
        ("memory.inspect", {}),
        ("transcript.commit", {"conversation": {"conversation_id": "c"}, "turns": [TURN]}),
    ):
        with pytest.raises(StoreReadOnly, match="closed") as caught:
            memory.call(operation, arguments)
        assert caught.value.hint == "open it again"
