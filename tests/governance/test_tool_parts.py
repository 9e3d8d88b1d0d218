"""Tool calls and results in messages: kept as given, covered by digests, found, withheld and erased with content."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.__main__ import main
from beetle.contracts.errors import Conflict, InvalidRequest, PayloadTooLarge
from tests.building import message, turn
from tests.store.conftest import assert_clean, bytes_of, open_runtime
from tests.store.test_erasure import Words

WHERE = {"conversation_id": "c1"}
CALLS = [
    {"tool": "weather", "call_id": "call-1", "arguments": {"city": "Tromsø", "days": [1, 2.5, None], "exact": True}},
    {"tool": "weather", "brief": "once more"},
    {"tool": "weather", "brief": "once more"},
]
RESULT = {
    "call_id": "call-1",
    "tool": "weather",
    "failed": True,
    "output": {"code": 503, "detail": {"host": "pelican"}},
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened


def asked(**more: Any) -> dict[str, Any]:
    """A turn in which a model calls a tool, says nothing besides, and the tool answers."""
    return turn(
        "t1",
        message("m1", "", role="assistant", tool_calls=CALLS, **more),
        message("m2", "It cannot\nbe reached.", role="tool", tool_result=RESULT, **more),
        message("m3", "Nobody knows."),
    )


def commit(memory: MemoryRuntime, *turns: dict[str, Any]) -> Any:
    return memory.commit_transcript(conversation=WHERE, turns=turns)


def shown(memory: MemoryRuntime, view: Any = "host_ui") -> list[dict[str, Any]]:
    page = memory.replay_transcript(conversation=WHERE, view=view)
    return [each for one in plain(page)["turns"] for each in one["messages"]]


def plain(report: Any) -> dict[str, Any]:
    """As JSON has it: lists for tuples."""
    return json.loads(json.dumps(report.to_dict()))


def plain_call(call: dict[str, Any]) -> dict[str, Any]:
    return {"call_id": None, "arguments": None, "brief": None, **call}


def test_calls_and_results_are_read_back_in_order_with_duplicates_and_leave_plain_messages_as_they_are(
    memory: MemoryRuntime,
) -> None:
    commit(memory, asked())
    first, second, third = shown(memory)
    assert (first["content"], first["length"]) == ("", 0)
    assert first["tool_calls"] == [plain_call(each) for each in CALLS] and "tool_result" not in first
    assert (second["content"], second["tool_result"]) == ("It cannot\nbe reached.", RESULT)
    assert "tool_calls" not in second
    assert not {"tool_calls", "tool_result"} & set(third)
    timeline = plain(memory.transcript_timeline(conversation=WHERE, view="host_ui"))["turns"][0]["messages"]
    exported = plain(memory.export_transcript(conversation=WHERE))["turns"][0]["messages"]
    assert timeline == exported == [first, second, third]
    assert memory.verify_store().clean and not memory.repair_transcript().issues


@pytest.mark.parametrize(
    "change",
    [
        lambda calls, result: calls.pop(),
        lambda calls, result: calls[0]["arguments"].update(city="Oslo"),
        lambda calls, result: calls[1].update(call_id="x"),
        lambda calls, result: result.update(failed=False),
        lambda calls, result: result["output"].update(code=504),
    ],
    ids=["count", "argument", "id", "failed", "output"],
)
def test_the_digest_of_a_turn_covers_them(memory: MemoryRuntime, change: Any) -> None:
    commit(memory, asked())
    again = json.loads(json.dumps(asked()))
    again["messages"][0]["tool_calls"][0]["arguments"] = dict(reversed(CALLS[0]["arguments"].items()))  # type: ignore[attr-defined]
    assert commit(memory, again).unchanged == 1, "the order of names means nothing"
    change(again["messages"][0]["tool_calls"], again["messages"][1]["tool_result"])
    with pytest.raises(Conflict):
        commit(memory, again)


def test_a_content_that_looks_like_a_call_is_content(memory: MemoryRuntime) -> None:
    said = 'see\n{"tool_call":{"tool":"weather"}}'
    commit(memory, turn("t1", message("m1", said)), turn("t2", message("m2", "see", tool_calls=[{"tool": "weather"}])))
    first, second = shown(memory)
    assert first["content"] == said and "tool_calls" not in first
    assert second["content"] == "see" and second["tool_calls"][0]["tool"] == "weather"
    with pytest.raises(Conflict):
        commit(memory, turn("t1", message("m1", "see", tool_calls=[{"tool": "weather"}])))


@pytest.mark.parametrize(
    ("part", "at"),
    [
        ({"role": "user", "tool_result": {"failed": True}}, "messages[0]"),
        ({"role": "tool", "tool_result": {"output": {"a": [{"b": b"x"}]}}}, "messages[0].tool_result.output.a[0].b"),
        ({"tool_calls": [{"tool": "x", "arguments": {"n": b"x"}}]}, "messages[0].tool_calls[0].arguments.n"),
        ({"tool_calls": [{"tool": ""}]}, "messages[0].tool_calls[0].tool"),
        ({"tool_calls": [{"tool": "x", "brief": "y" * 201}]}, "messages[0].tool_calls[0].brief"),
        ({"tool_calls": [{"tool": "x", "args": {}}]}, "messages[0].tool_calls[0].args"),
    ],
    ids=["role", "binary-output", "binary-argument", "no-name", "brief", "unknown"],
)
def test_what_is_no_call_or_result_is_refused_with_its_path(memory: MemoryRuntime, part: Any, at: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        commit(memory, turn("t1", message("m1", "x", **part)))
    assert caught.value.details["path"] == f"$.args.turns[0].{at}"


def test_they_count_against_the_bytes_of_a_content(memory: MemoryRuntime) -> None:
    half = "x" * 600_000
    with pytest.raises(PayloadTooLarge) as caught:
        commit(memory, turn("t1", message("m1", half, tool_calls=[{"tool": "x", "arguments": {"text": half}}])))
    assert caught.value.details["limit"] == "message_content_bytes"


def test_recall_and_search_find_their_words(memory: MemoryRuntime) -> None:
    commit(memory, asked())
    for query, found in (("Tromsø", "m1"), ("pelican", "m2")):
        assert memory.search_transcript(query=query, view="host_ui").hits[0].message_id == found
        assert memory.recall(query).hits[0].message_id == found


@pytest.mark.parametrize("visibility", ["private", "soul", "backend", "operator"])
def test_they_are_withheld_with_their_content(memory: MemoryRuntime, visibility: str) -> None:
    commit(memory, asked(visibility=visibility))
    for view in ("host_ui", "export", "operator_audit"):
        for each in shown(memory, view):
            if "redacted" in each:
                assert not {"content", "tool_calls", "tool_result"} & set(each)
    assert "pelican" not in json.dumps(shown(memory)) and "Troms" not in json.dumps(shown(memory))
    assert "pelican" in json.dumps(shown(memory, "raw_owner"))


def test_masking_hides_them_and_unmasking_shows_them_again(memory: MemoryRuntime) -> None:
    commit(memory, asked())
    before = shown(memory)
    step = {"conversation": WHERE, "turn_ids": ["t1"], "reason": "a case"}
    memory.request_transcript_lifecycle(action="mask", **step)
    assert "Troms" not in json.dumps(shown(memory)) and not memory.recall("pelican").hits
    memory.request_transcript_lifecycle(action="unmask", **step)
    assert shown(memory) == before and memory.recall("pelican").hits
    assert memory.verify_store().clean


@pytest.mark.parametrize("way", ["delete_raw", "forget"])
def test_erasure_leaves_nothing_of_them(path: str, way: str) -> None:
    words = Words(7)
    name, value, output = (words.canary() for _ in range(3))
    calls = [{"tool": name, "arguments": {"key": value}}]
    secret = turn(
        "t1",
        message("m1", "look it up", role="assistant", tool_calls=calls),
        message("m2", "done", role="tool", tool_result={"output": {"found": output}}),
    )
    with open_runtime(path) as memory:
        commit(memory, secret, turn("t2", message("m3", "something else")))
        if way == "forget":
            for word in (value, output):
                memory.forget(query=word, token=memory.forget(query=word, dry_run=True).token)
        else:
            memory.request_transcript_lifecycle(conversation=WHERE, action="delete_raw", turn_ids=["t1"], reason="r")
        assert not memory.recall(output).hits
        assert_clean(memory)
    data = bytes_of(path)
    assert [each for each in (name, value, output) if each.encode() in data] == []


def test_snapshots_and_archives_of_a_chat_carry_them(memory: MemoryRuntime, tmp_path: Path) -> None:
    memory.commit_transcript(conversation={"conversation_id": "chat-1"}, turns=[asked()])
    carried = memory.export_snapshot(chat_id="chat-1")
    with open_runtime(os.fspath(tmp_path / "other.db"), owner="other") as other:
        taken = other.import_snapshot(snapshot=carried.snapshot, target_chat_id="chat-1", mode="bootstrap_import")
        assert taken.counts["messages"] == 3
        where = other.list_conversations().conversations[0].conversation_id
        page = other.replay_transcript(conversation={"conversation_id": where}, view="host_ui").to_dict()
        told = page["turns"][0]["messages"]
        assert told[0]["tool_calls"][0]["arguments"] == CALLS[0]["arguments"]
        assert told[1]["tool_result"] == RESULT
        assert other.commit_transcript(conversation={"conversation_id": where}, turns=[asked()]).unchanged == 1
        assert other.verify_store().clean and not other.repair_transcript().issues


def test_the_command_line_shows_them(path: str) -> None:
    with open_runtime(path, owner="owner-default") as memory:
        commit(memory, asked())
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["--store", path, "transcript", "replay", "--conversation", "c1", "--view", "host_ui"]) == 0
    text = out.getvalue()
    assert 'calls weather [call-1] {"city":"Tromsø","days":[1,2.5,null],"exact":true}' in text
    assert 'failure of weather [call-1] {"code":503,"detail":{"host":"pelican"}}' in text
    assert "calls weather once more" in text
