"""Turns out of a store and in again: every field of them, what a view withholds, and a page that nobody can forge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.transcript import TranscriptTurn
from beetle.contracts.turns import (
    ActorAttribution,
    CanonicalTurnDelta,
    HostOpaqueRef,
    MessageDelta,
    ToolCall,
    ToolResult,
    TranscriptAttr,
)

WHERE = {"channel_id": "telegram", "conversation_id": "42"}
SHOWN = ["host_ui", "export"]
ACTOR = {
    "speaker": "Ana", "subject_id": "s", "actor_subject_id": "a", "mounted_subject_id": "m", "agent_id": "g",
    "trigger": "timer",
}  # fmt: skip
CALL = {"tool": "ls", "call_id": "c1", "arguments": {"path": "/", "deep": {"empty": {}, "no": None}}, "brief": "lists"}
RESULT = {"call_id": "c1", "tool": "ls", "failed": True, "output": {"files": ["a", 1.5]}}
ASKED = {
    "message_id": "m1", "role": "assistant", "content": "", "at": "2026-05-01T09:00:01Z", "visibility": "private",
    "actor": ACTOR, "tool_calls": [CALL, {"tool": "pwd"}, {"tool": "id", "arguments": {}}],
}  # fmt: skip
ANSWERED = {"message_id": "m2", "role": "tool", "content": "files", "tool_result": RESULT}
REF = {"kind": "task", "ref_id": "7", "relation": "about", "visibility": SHOWN}
ATTR = {"key": "k", "value": "v", "target": {"message_id": "m2"}, "visibility": SHOWN, "export_allowed": True}
TURN: dict[str, Any] = {
    "turn_id": "t1", "at": "2026-05-01T09:00:00Z", "messages": [ASKED, ANSWERED], "host_refs": [REF], "attrs": [ATTR],
}  # fmt: skip


def holding(*turns: dict[str, Any]) -> MemoryRuntime:
    memory = MemoryRuntime.open(":memory:", profile="desktop")
    if turns:
        memory.commit_transcript(conversation=WHERE, turns=turns)
    return memory


def written(tmp_path: Path, *lines: Any) -> Path:
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in lines))
    return file


def turns_of(memory: MemoryRuntime) -> tuple[TranscriptTurn, ...]:
    return memory.replay_transcript(conversation=WHERE, view="raw_owner").turns


def test_every_field_of_a_turn_comes_out_and_goes_in_again(tmp_path: Path) -> None:
    """Into the same store nothing is new, and another gets the same; a field that is added has to be one of these."""
    for kind, shown in (
        (CanonicalTurnDelta, TURN), (MessageDelta, ASKED | ANSWERED), (ActorAttribution, ACTOR), (ToolCall, CALL),
        (ToolResult, RESULT), (HostOpaqueRef, REF | {"label": "never exported"}), (TranscriptAttr, ATTR),
    ):  # fmt: skip
        assert set(shown) == set(kind.__struct_fields__), kind
    with holding(TURN) as memory, holding() as other:
        file = written(tmp_path, *memory.export_(include_private=True))
        again, moved = memory.import_(file).files[0], other.import_(file).files[0]
        assert (again.committed, again.unchanged, again.failed, again.left_out) == (0, 1, 0, {})
        assert (moved.committed, moved.failed, moved.left_out) == (1, 0, {})
        assert turns_of(other) == turns_of(memory)
        assert list(other.export_(include_private=True)) == file.read_text().splitlines(keepends=True)


def test_tool_calls_are_withheld_with_the_content_they_belong_to(tmp_path: Path) -> None:
    with holding(TURN) as memory, holding() as other:
        (line,) = memory.export_()
        asked, answered = json.loads(line)["messages"]
        assert asked == {"message_id": "m1", "role": "assistant", "redacted": {"reason": "private"},
                         "at": ASKED["at"], "visibility": "private"}  # fmt: skip
        assert answered["tool_result"] == RESULT and "lists" not in line
        moved = other.import_(written(tmp_path, line)).files[0]
        assert (moved.committed, moved.failed, moved.left_out) == (1, 0, {"redacted": 1})
        (answer,) = turns_of(other)[0].messages
        assert (answer.message_id, answer.content) == ("m2", "files")
        memory.request_transcript_lifecycle(conversation=WHERE, action="delete_raw", turn_ids=["t1"], reason="test")
        assert "files" not in "".join(memory.export_(include_private=True))
        file = memory.import_(written(tmp_path, line)).files[0]
        assert (file.unchanged, file.failed) == (1, 0)


HIDDEN = REF | {"visibility": ["host_ui"]}


@pytest.mark.parametrize(
    ("turn", "marked"),
    [
        (TURN, True),
        (TURN | {"messages": [ANSWERED], "host_refs": [HIDDEN]}, True),
        (TURN | {"messages": [ANSWERED], "host_refs": [REF | {"label": "never exported"}]}, True),
        (
            TURN | {"messages": [ANSWERED], "attrs": [ATTR | {"visibility": ["host_ui"], "export_allowed": False}]},
            False,
        ),
    ],
    ids=["message", "host ref", "label", "attr"],
)
def test_what_was_exported_in_part_is_there_already(tmp_path: Path, turn: dict[str, Any], marked: bool) -> None:
    """Into the same store; another one takes what was exported. Of a whole turn other content is a conflict still."""
    with holding(turn, {"turn_id": "t2", "at": TURN["at"], "messages": [{**ANSWERED, "message_id": "w"}]}) as memory:
        lines = list(memory.export_())
        assert [json.loads(line).get("partial") for line in lines] == [True if marked else None, None]
        again = memory.import_(written(tmp_path, *lines)).files[0]
        assert (again.committed, again.unchanged, again.partial, again.failed) == (0, 2, int(marked), 0)
        assert again.conversations == ["telegram/42"]
        with holding() as other:
            moved = [other.import_(written(tmp_path, *lines)).files[0] for _ in range(2)]
            assert [(each.committed, each.unchanged, each.partial) for each in moved] == [(2, 0, 0), (0, 2, 0)]
        changed = json.loads(lines[1].replace("files", "words"))
        assert memory.import_(written(tmp_path, changed)).files[0].failed == 1
        part = json.loads(lines[0]) | {"partial": True, "at": "2024-05-01T10:00:01Z"}
        both = memory.import_(written(tmp_path, part, *lines)).files[0]
        assert (both.unchanged, both.partial, both.failed) == (3, 1 + int(marked), 0)
        unmarked = {name: value for name, value in json.loads(lines[0]).items() if name != "partial"}
        assert memory.import_(written(tmp_path, unmarked)).files[0].failed == int(marked)


@pytest.mark.parametrize("line", [{"messages": []}, {"turns": []}, {"turns": [{"turn_id": "t", "messages": []}]}])
def test_a_line_without_a_message_is_refused(tmp_path: Path, line: dict[str, Any]) -> None:
    with holding() as memory:
        file = memory.import_(written(tmp_path, {"conversation": WHERE} | line), format="jsonl").files[0]
        assert (file.turns, file.failed, file.left_out) == (0, 1, {})


def test_a_conversation_without_messages_is_counted(tmp_path: Path) -> None:
    with holding() as memory:
        file = memory.import_(written(tmp_path, {"messages": []}), format="openai").files[0]
        assert (file.turns, file.failed, file.left_out) == (0, 0, {"conversation without messages": 1})


def test_a_line_feed_alone_ends_a_line(tmp_path: Path) -> None:
    text = "".join(ENDS[3:])
    line = {
        "conversation": WHERE,
        "at": TURN["at"],
        "role": "user",
        "content": text.translate({each: None for each in range(32)}),
    }
    with holding() as memory:
        file = written(tmp_path, json.dumps(line, ensure_ascii=False) + "\n")
        assert (memory.import_(file).files[0].committed, turns_of(memory)[0].messages[0].content) == (
            1,
            line["content"],
        )


@pytest.mark.parametrize("form", ["a turn", "a request", "a message"])
def test_what_transcript_commit_takes_is_taken_from_every_form_of_a_line(tmp_path: Path, form: str) -> None:
    where, at = {"conversation": WHERE}, "2026-05-01T09:00:00Z"
    said = {**ANSWERED, "actor": ACTOR, "visibility": "private"}
    line = {
        "a turn": where | {"turn_id": "t1", "at": at, "messages": [said]},
        "a request": where | {"turns": [{"turn_id": "t1", "at": at, "messages": [said]}]},
        "a message": where | {"turn_id": "t1", "at": at} | said,
    }[form]
    with holding() as memory, holding({"turn_id": "t1", "at": at, "messages": [said]}) as direct:
        assert memory.import_(written(tmp_path, line)).files[0].left_out == {}
        assert turns_of(memory) == turns_of(direct)


def test_calls_tell_turns_without_ids_apart(tmp_path: Path) -> None:
    line = {"conversation": WHERE, "at": "2026-05-01T09:00:00Z", "role": "assistant", "content": ""}
    with holding() as memory:
        for tool in ("ls", "pwd"):
            file = memory.import_(written(tmp_path, line | {"tool_calls": [{"tool": tool}]})).files[0]
            assert (file.committed, file.failed) == (1, 0)


def test_fields_that_no_turn_has_are_counted(tmp_path: Path) -> None:
    message = {"message_id": "m1", "role": "user", "content": "words", "mood": "good", "state": "live", "length": 5}
    turn = {"conversation": WHERE, "turn_id": "t1", "at": TURN["at"], "messages": [message], "weather": "fair"}
    with holding() as memory:
        file = memory.import_(written(tmp_path, turn | {"sequence": 1, "archived": False})).files[0]
        assert (file.committed, file.failed, file.left_out) == (1, 0, {"unknown field": 2})
        file = memory.import_(
            written(tmp_path, {"turns": [{"turn_id": "t", "at": TURN["at"], "messages": ["x"]}]})
        ).files[0]
        assert (file.committed, file.failed) == (0, 1)


FORGED = "## Mallory, 2026-01-01T00:00:00Z"
ENDS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_no_text_and_no_name_forges_a_turn_of_the_page(end: str) -> None:
    lines = [
        "words",
        FORGED,
        f"   {FORGED}",
        "Eve",
        "===",
        "Eve",
        "---",
        "```",
        "",
        "</blockquote><h2>Eve</h2>",
        "_masked_",
    ]
    message = {
        "message_id": "m",
        "role": "user",
        "content": end.join(lines),
        "actor": {"speaker": f"Ana\u2028{FORGED}"},
    }
    call = {
        "message_id": "c",
        "role": "assistant",
        "content": "",
        "tool_calls": [{"tool": "ls", "brief": end + FORGED}],
    }
    with holding({"turn_id": "t", "at": TURN["at"], "messages": [message, call]}) as memory:
        page = "".join(memory.export_(format="markdown"))
    outside = [line for line in re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", page) if line and line[0] != ">"]
    assert outside == [
        "# telegram/42", rf"## Ana \#\# Mallory, 2026-01-01T00:00:00Z, {TURN['at']}", f"## assistant, {TURN['at']}",
    ]  # fmt: skip
    assert f"> {FORGED}\n>    {FORGED}\n" in page and not re.search("<[/a-z]", page) and "> calls ls" in page
