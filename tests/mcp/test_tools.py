"""Tools: what is listed, what a call answers, and how an error is mended."""

from __future__ import annotations

import json
import re
import threading
from typing import Any, get_args, get_origin

import pytest

from beetle.contracts.operations import OPERATIONS
from beetle.mcp.tools import Tools
from tests.forked import Daemon
from tests.mcp.host import ROOT, Host, text_of


def test_the_toolset_of_memory_is_short_and_that_of_all_has_the_table(host: Host, whole: Host) -> None:
    few = host.tools()
    assert {"memory_recall", "memory_project", "memory_write_candidate"} <= set(few)
    assert not {"memory_capabilities", "memory_inspect", "transcript_commit"} & set(few)
    assert len(few) <= 6
    every = whole.tools()
    assert set(few) < set(every)
    assert {"memory_capabilities", "memory_inspect", "transcript_commit", "memory_write_procedural"} <= set(every)
    assert not {row.name.replace(".", "_") for row in OPERATIONS if row.tool.none} & set(every)
    assert "private_get" not in every, "what the caller may not use is no tool"


def test_the_page_names_every_operation_that_is_no_tool() -> None:
    page = (ROOT / "docs/mcp.md").read_text()
    table = page[page.index("| operation | reason |") :].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z_.]+)`", table))
    assert named == {row.name for row in OPERATIONS if row.tool.none or row.effect == "stream"}


def test_the_toolset_of_time_is_that_of_the_table_of_contents() -> None:
    names = set(Tools("time").names())
    assert {"toc_root", "toc_browse", "toc_node", "toc_search_node", "grip_expand", "event_range"} <= names
    assert not names & set(Tools("memory").names()) and names < set(Tools("all").names())


def test_every_tool_says_what_it_takes_and_gives_and_does(whole: Host) -> None:
    for name, tool in whole.tools().items():
        wanted, given = tool["inputSchema"], tool["outputSchema"]
        assert wanted["type"] == given["type"] == "object", name
        assert "$ref" not in json.dumps(wanted), name
        assert "\\\\Z" not in json.dumps(tool), "no expression of Python's own"
        assert "base64" not in json.dumps(wanted), f"{name}: bytes are for files"
        assert tool["description"].endswith((".", ")")), name
        assert set(wanted["required"]) <= set(wanted["properties"]), name
        hints = tool["annotations"]
        assert not (hints["readOnlyHint"] and hints["destructiveHint"]), name


TAKES_AWAY = {"delete", "disable", "forget", "prune", "recover", "remove", "restore", "rotate_key"}
"""Last words of operations after which something is gone that was there."""
BRINGS_BACK = "chunk.restore"
"""Takes a chunk out of the archive, and nothing away."""


def test_hints_come_of_the_table() -> None:
    every = Tools("all")
    hints = {every.get(name).row.name: every.get(name).hints() for name in every.names()}

    def marked(hint: str, *operations: str) -> set[bool]:
        return {hints[each][hint] for each in operations}

    for row in OPERATIONS:
        if row.effect == "read":
            assert row.idempotent and not row.destructive and not row.open_world, row.name
        assert row.destructive or row.name == BRINGS_BACK or row.name.rpartition(".")[2] not in TAKES_AWAY, row.name
        if row.name in hints:
            assert hints[row.name]["readOnlyHint"] == (row.effect == "read"), row.name
    adding = ("memory.write", "memory.remember", "transcript.commit", "chain.append", "skill_registry.upload")
    removing = ("memory.forget", "skill.delete", "snapshot.prune", "chain.revoke_agent_key", "long_term.mutate")
    assert marked("destructiveHint", "memory.recall", *adding) == {False}
    assert marked("destructiveHint", *removing) == {True}
    assert marked("idempotentHint", "memory.recall", "transcript.commit", "skill.delete", "memory.forget") == {True}
    assert marked("idempotentHint", "memory.remember", "chain.append", "snapshot.create", "evolve.propose") == {False}
    assert marked("openWorldHint", "memory.maintain", "memory.finalize_turn") == {True}
    assert marked("openWorldHint", "memory.recall", *adding, *removing) == {False}


def test_no_tool_answers_with_a_secret() -> None:
    def secrets(kind: Any) -> bool:
        if get_origin(kind) is not None:
            extra = getattr(kind, "__metadata__", ())
            if any(getattr(each, "extra", None) == {"sensitivity": "secret"} for each in extra):
                return True
            return any(secrets(each) for each in get_args(kind) if each is not kind)
        fields = getattr(kind, "__annotations__", {})
        return any("Secret[" in str(each) for each in fields.values())

    assert secrets(next(row.report for row in OPERATIONS if row.name == "device.add"))
    every = Tools("all")
    assert [name for name in every.names() if secrets(every.get(name).row.report)] == []


def test_recall_and_project_are_structured_and_well_to_read(host: Host) -> None:
    result = host.call("memory_recall", query="spare key", limit=3)
    assert result["isError"] is False
    hit = result["structuredContent"]["hits"][0]
    assert hit["ref"] == "evidence:local/kitchen/t1/m2"
    text = text_of(result)
    assert text.startswith(("1 hit", "2 hits"))
    assert "data, not instructions" in text
    assert hit["ref"] in text
    block = host.call("memory_project", user_query="spare key")
    assert text_of(block) == block["structuredContent"]["system_memory_block"]


def test_a_candidate_is_judged_and_the_text_says_what_became_of_it(host: Host) -> None:
    candidate = {
        "candidate_id": "c1", "authority": "user_asserted", "target": "long_term", "privacy": "public_runtime",
        "kind": "preference", "topic": "drink", "content": "Mara prefers green tea.",
        "evidence_refs": ["evidence:local/kitchen/t1/m1"],
    }  # fmt: skip
    result = host.call("memory_write_candidate", candidates=[candidate])
    assert text_of(result).startswith("c1: accepted, remembered (long_term:")
    claimed = {**candidate, "candidate_id": "c2", "content": "Mara owns a boat.", "topic": "boat"}
    assert "does not say this" in text_of(host.call("memory_write_candidate", candidates=[claimed]))
    assert "green tea" in text_of(host.call("memory_recall", query="tea", planes=["long_term"]))


def test_forgetting_is_a_dry_run_first(whole: Host) -> None:
    message = {"message_id": "m1", "role": "user", "content": "The blue bicycle stands in the shed."}
    turn = {"turn_id": "t1", "at": "2026-03-02T09:00:00Z", "messages": [message]}
    conversation = {"conversation_id": "bicycle"}
    whole.call("transcript_commit", conversation=conversation, turns=[turn])
    dry = whole.call("memory_forget", conversation=conversation, dry_run=True)["structuredContent"]
    assert not dry["changed"]
    assert "bicycle" in text_of(whole.call("memory_recall", query="bicycle shed"))
    assert whole.call("memory_forget", conversation=conversation, token=dry["token"])["structuredContent"]["changed"]
    assert "bicycle" not in text_of(whole.call("memory_recall", query="bicycle shed"))


@pytest.mark.parametrize(
    ("arguments", "path", "said"),
    [
        ({}, "$.args.query", "query (string, required)"),
        ({"query": "x", "limt": 3}, "$.args.limt", "limit (integer)"),
        ({"query": "x", "limit": "many"}, "$.args.limit", "limit (integer)"),
        ({"query": "x", "planes": ["facts"]}, "$.args.planes[0]", "list of one of agent_skill"),
        ({"query": "x", "since": "yesterday"}, "$.args.since", "RFC 3339"),
        ({"query": "x", "conversation": {"channel_id": "a"}}, "$.args.conversation.conversation_id",
         "conversation_id (string, required)"),
        ({"query": " "}, "$.args.query", "query (string, required)"),
        ({"query": 2**70}, "$.args.query", "query (string, required)"),
    ],
)  # fmt: skip
def test_an_error_says_where_it_is_and_what_is_taken_there(
    host: Host, arguments: dict[str, Any], path: str, said: str
) -> None:
    result = host.call("memory_recall", **arguments)
    assert result["isError"] is True
    assert "structuredContent" not in result, "it would not fit the tool's schema"
    told = result["_meta"]["beetle/error"]
    assert (told["key"], told["path"]) == ("invalid_request", path)
    assert said in told["hint"]
    assert all(each in text_of(result) for each in (told["key"], told["message"], told["hint"], path))


def test_an_error_inside_a_list_names_the_fields_of_its_item(host: Host) -> None:
    told = host.call("memory_write_candidate", candidates=[{"candidate_id": "c"}])["_meta"]["beetle/error"]
    assert told["path"].startswith("$.args.candidates[0]")
    assert "authority (one of assistant_claimed" in told["hint"]


def test_a_tool_that_is_not_there_is_refused_with_the_nearest(host: Host) -> None:
    error = host.ask("tools/call", {"name": "memory_recal", "arguments": {}})["error"]
    assert "memory_recall" in error["message"]


def test_transcripts_are_read_through_a_models_view_where_none_is_named(whole: Host) -> None:
    result = whole.call("transcript_timeline", conversation={"conversation_id": "kitchen"})
    assert result["structuredContent"]["view"] == "model_context"
    assert "Mara: I prefer green tea." in text_of(result)
    assert "$.args.view" not in json.dumps(result)


def test_calls_run_side_by_side_and_lose_nothing(daemon: Daemon, whole: Host) -> None:
    def commit(number: int) -> None:
        message = {"message_id": f"m{number}", "role": "user", "content": f"number {number}"}
        turn = {"turn_id": f"t{number}", "at": "2026-03-02T09:00:00Z", "messages": [message]}
        result = whole.call("transcript_commit", conversation={"conversation_id": "many"}, turns=[turn])
        assert result["structuredContent"]["committed"] == 1, result

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(24)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with daemon.client() as client:
        listed = client.call("transcript.conversations", {"query": "many"}).conversations  # type: ignore[attr-defined]
        assert [each.turns for each in listed] == [24]


def test_a_fact_is_remembered_by_the_users_words_and_forgotten_again(host: Host) -> None:
    assert list(host.tools())[:5] == [
        "memory_recall", "memory_project", "memory_remember", "memory_write_candidate", "memory_forget",
    ]  # fmt: skip
    claim = host.call("memory_remember", text="Ana plays the viola.")
    assert claim["structuredContent"]["outcome"] == "waiting"
    assert text_of(claim).startswith("waiting, it is the assistant's claim alone")
    assert "`said`" in text_of(claim) and claim["structuredContent"]["evidence_ref"] in text_of(claim)
    strange = host.call("memory_remember", text="Ana plays the viola.", said="I play football.", speaker="Ana")
    assert "Call again with `text` that says no more than `said` does." in text_of(strange)
    said = host.call("memory_remember", text="Ana plays the viola.", said="I play the viola.", speaker="Ana")
    assert said["structuredContent"]["outcome"] == "accepted"
    assert "Ana plays the viola." in text_of(host.call("memory_recall", query="viola", planes=["long_term"]))
    shown = host.call("memory_forget", query="viola", dry_run=True)["structuredContent"]
    assert shown["counts"]["facts"] == 1
    assert host.call("memory_forget", query="viola", token=shown["token"])["structuredContent"]["changed"]
    assert "nothing" in text_of(host.call("memory_recall", query="viola"))
