"""A row that names another owner's record by its number, as damage or another program may leave it: no answer shows
that record, no erasure takes it, and none ends with a defect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, IntegrityViolation, NotFound
from tests.adversary.test_foreign_rows import fill
from tests.conformance.doors import plain
from tests.store.conftest import CONVERSATION, commit, open_runtime, turn, write_skill

A, B = "otter", "okapi"
"""A word of each owner's records."""
DAY = "toc:day:2024-05-06"
HELD_SQL = """
WITH own AS (SELECT message, state FROM message JOIN conversation USING (conversation) WHERE space = 1)
SELECT json_array(
  (SELECT json_group_array(json_array(message, state)) FROM own),
  (SELECT json_group_array(message) FROM own JOIN body USING (message)),
  (SELECT json_group_array(thought) FROM thought_body JOIN thought USING (thought) JOIN chain USING (chain)
    WHERE space = 1),
  (SELECT json_group_array(tool_observation) FROM tool_brief JOIN tool_observation USING (tool_observation)
    WHERE space = 1),
  (SELECT count(*) FROM derived_ref WHERE space = 1))
"""
"""What the first owner's records hold."""
CHAT_OF_A = "(SELECT min(conversation) FROM conversation WHERE space = 1)"
TEXT_OF_A = "(SELECT max(fact_body) FROM fact_body JOIN fact USING (fact) WHERE space = 1)"
CHAIN_OF_A = "(SELECT chain FROM chain WHERE space = 1 AND parent IS NULL)"
DERIVED_OF_A = f"(SELECT min(derived_ref) FROM derived_ref WHERE space = 1 AND derived GLOB '*{A}*')"
EVERY_TIME = {"from_timestamp_ms": 0, "to_timestamp_ms": 4_000_000_000_000}


def message_of(space: int) -> str:
    return f"(SELECT min(message) FROM message JOIN conversation USING (conversation) WHERE space = {space})"


def turn_of(space: int) -> str:
    return f"(SELECT turn FROM message WHERE message = {message_of(space)})"


def fact_of(space: int) -> str:
    return f"(SELECT fact FROM fact WHERE space = {space} AND state = 'current')"


def skill_of(space: int) -> str:
    return f"(SELECT skill FROM skill WHERE space = {space} AND name LIKE '%cited')"


def chunk_of(space: int) -> str:
    return f"(SELECT chunk FROM chunk WHERE space = {space})"


def change(table: str, what: str, where: str) -> str:
    return f"UPDATE {table} SET {what} WHERE {where}"


Ask = Callable[[MemoryRuntime, apsw.Connection], Any]


class Case(NamedTuple):
    """What another program did, and what the second owner asks."""

    changes: tuple[str, ...]
    ask: Ask
    refused: tuple[type[BeetleError], ...] = ()
    """How it is refused, where its own record is damaged."""


def call(operation: str, **args: Any) -> Ask:
    return lambda memory, _: memory.call(operation, args)


def named(operation: str, field: str, sql: str, prefix: str = "") -> Ask:
    """An operation on a record whose name is in the store."""
    return lambda memory, store: memory.call(operation, {field: prefix + store.execute(sql).get})


def forget(**args: Any) -> Ask:
    def both(memory: MemoryRuntime, _: apsw.Connection) -> Any:
        shown = memory.forget(**args, dry_run=True)
        return memory.forget(**args, token=shown.token)

    return both


def restore(memory: MemoryRuntime, _: apsw.Connection) -> Any:
    archive = memory.export_space(include_private=True, passphrase="a long passphrase").archive
    how = {"mode": "full_restore", "passphrase": "a long passphrase", "discard_withheld": True}
    return memory.import_space(archive=archive, **how)


FACT = named("long_term.detail", "ref", f"SELECT record_id FROM fact WHERE fact = {fact_of(2)}", "long_term:")
SKILL = named("skill.detail", "name", f"SELECT name FROM skill WHERE skill = {skill_of(2)}")
CHUNK = named("chunk.get", "id", "SELECT chunk_id FROM chunk WHERE space = 2")
GRIP = named("grip.expand", "grip_id", "SELECT grip_id FROM grip WHERE space = 2 ORDER BY grip LIMIT 1")
BROWSE = call("toc.browse", parent_id=DAY)
ERASE = call("chain.lifecycle", chain_key=f"{B}-branch", action="erase", indexes=[0], reason="r")
BODY = change("fact_revision", f"body = {TEXT_OF_A}", f"fact = {fact_of(2)}")
PARENT = change("chain", f"parent = {CHAIN_OF_A}", "space = 2 AND parent IS NOT NULL")
REVISION = change("skill_revision", f"skill = {skill_of(1)}, revision = 9", f"skill = {skill_of(2)}")
NAME_OF_CHUNK = change("chunk", f"chunk_id = 'chunk-2026-01-01-0000abcd-{A}'", "space = 1")
LINK = "INSERT INTO chunk_link SELECT {0}, 90, 'supports', {1}, NULL, 1.0"
TITLE = f"INSERT INTO toc_title SELECT min(toc_node), 'the {A}' FROM toc_node WHERE space = 1 AND level = 5"
STEP = f"""
INSERT INTO transcript_lifecycle (conversation, action, reason, principal, at, turns, messages)
VALUES ({CHAT_OF_A}, 'delete_raw', 'r', '{A}', 1, 1, 1)
"""
DELETED = "state = 'deleted', lifecycle = (SELECT max(lifecycle) FROM transcript_lifecycle)"

CASES = {
    "an event": Case(
        (change("event", f"message = {message_of(1)}", f"space = 2 AND message = {message_of(2)}"),),
        call("event.range", **EVERY_TIME)),
    "a grip": Case(
        (change("grip", f"message = {message_of(1)}, last_message = {message_of(1)}",
                "grip = (SELECT min(grip) FROM grip WHERE space = 2)"),), GRIP),
    "a message's conversation": Case(
        (change("message", f"conversation = {CHAT_OF_A}, ordinal = 90, message_id = 'x'",
                f"message = {message_of(2)}"),), GRIP),
    "a remembered conversation": Case(
        (change("remembered_conversation", f"conversation = {CHAT_OF_A}", "space = 2"),),
        call("memory.project", user_query=B)),
    "a fact's text, in detail": Case((BODY,), FACT, (IntegrityViolation,)),
    "a fact's text, in a list": Case((BODY,), call("long_term.list")),
    "a fact's text, recalled": Case((BODY,), call("memory.recall", query=B, as_of="2099-01-01T00:00:00Z")),
    "a fact's text, exported": Case((BODY,), call("memory.export_space"), (IntegrityViolation,)),
    "a chain's parent, walked": Case((PARENT,), call("chain.traverse", chain_key=f"{B}-branch")),
    "a chain's parent, listed": Case((PARENT,), call("chain.list")),
    "a chain's parent, erased": Case((PARENT,), ERASE, (NotFound,)),
    "a message's turn": Case(
        (change("message", f"turn = {turn_of(1)}", f"message = {message_of(2)}"),), forget(query=f"{B} lake")),
    "a node's parent": Case(
        (TITLE, change("toc_node", f"parent = (SELECT toc_node FROM toc_node WHERE space = 2 AND node_id = '{DAY}')",
                       "toc_node = (SELECT min(toc_node) FROM toc_title)")), BROWSE),
    "a node's conversation": Case(
        (change("conversation", f"conversation_id = '{A}-chat'", "space = 1"),
         change("toc_node", f"conversation = {CHAT_OF_A}", "space = 2 AND level = 5")), BROWSE),
    "a segment's conversation": Case(
        (change("toc_node", "conversation = (SELECT max(conversation) FROM conversation WHERE space = 2)",
                "space = 1 AND level = 5"),), call("admin.rebuild_toc")),
    "a node that is its own parent": Case(
        (change("toc_node", "parent = toc_node", f"space = 2 AND node_id = '{DAY}'"),),
        call("memory.recall", query=B, path="toc")),
    "what a fact rests on": Case(
        (change("derived_ref", f"fact = {fact_of(2)}", f"derived_ref = {DERIVED_OF_A}"),), FACT),
    "what a skill rests on": Case(
        (change("derived_ref", f"skill = {skill_of(2)}", f"derived_ref = {DERIVED_OF_A}"),), SKILL),
    "a tool's brief": Case(
        (change("tool_observation", f"turn = {turn_of(2)}", "space = 1"),), forget(conversation=CONVERSATION)),
    "a link from a chunk": Case((NAME_OF_CHUNK, LINK.format(chunk_of(1), chunk_of(2))), CHUNK),
    "a link to a chunk": Case((NAME_OF_CHUNK, LINK.format(chunk_of(2), chunk_of(1))), call("chunk.list")),
    "a link from a chunk, exported": Case(
        (NAME_OF_CHUNK, LINK.format(chunk_of(1), chunk_of(2))), call("chunk.export_tree")),
    "a link to a chunk, exported": Case(
        (NAME_OF_CHUNK, LINK.format(chunk_of(2), chunk_of(1))), call("chunk.export_tree")),
    "a link to a chunk, related": Case(
        (NAME_OF_CHUNK, LINK.replace("supports", "related_to").format(chunk_of(2), chunk_of(1))), CHUNK),
    "a tool's brief, restored": Case(
        (change("tool_observation", f"turn = {turn_of(2)}", "space = 1"),), restore),
    "what a deleted skill rests on": Case(
        (change("derived_ref", f"skill = {skill_of(2)}", f"derived_ref = {DERIVED_OF_A}"),),
        named("skill.delete", "name", f"SELECT name FROM skill WHERE skill = {skill_of(2)}")),
    "a message's own turn": Case(
        (change("message", "turn = turn + 1", f"message = {message_of(2)}"),), call("event.range", **EVERY_TIME)),
    "a skill's ref without its revision": Case(
        (change("derived_ref", "derived = 'x'", f"skill = {skill_of(2)}"),),
        call("memory.export_space")),
    "a message's step": Case(
        (STEP, change("message", DELETED, f"message = {message_of(2)}")),
        call("transcript.replay", conversation=CONVERSATION, view="operator_audit")),
    "an attr's message": Case(
        (change("attr", f"message = {message_of(1)}", "attr = (SELECT max(attr) FROM attr)"),),
        forget(query=f"attr {B}")),
    "a turn's conversation": Case(
        (change("turn", "conversation = 987654321", f"turn = {turn_of(2)}"),), forget(query=f"{B} lake")),
    "a skill's revision, recalled": Case((REVISION,), call("memory.recall", query=f"cited {B}")),
    "a skill's revision, in detail": Case((REVISION,), SKILL, (IntegrityViolation,)),
}  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two owners, with a record of every kind of each."""
    path = tmp_path_factory.mktemp("both") / "b.db"
    for owner, word in (("owner-a", A), ("owner-b", B)):
        with open_runtime(path, owner=owner) as memory:
            fill(memory, word)
            fill_more(memory, word)
    return path


def fill_more(memory: MemoryRuntime, word: str) -> None:
    commit(
        memory,
        turn("t2", f"again the {word}", at="2024-05-07T12:00:00Z", attrs=[{"key": "k", "value": f"attr {word}"}]),
    )
    memory.call("chain.branch", {"chain_key": word, "new_chain_key": f"{word}-branch"})
    third = turn("t3", f"third {word}", at="2024-05-08T12:00:00Z")
    memory.call("memory.finalize_turn", {"conversation": CONVERSATION, "turn": third})
    memory.call("admin.rebuild_toc", {})
    write_skill(memory, f"{word}-cited", f"cited {word}", citations=["evidence:local/c1/t1"])
    tool = {"tool_id": "x", "title": "T", "summary": "s", "schema_fingerprint": "s1"}
    memory.call("tool_registry.upsert", {"registry_id": "r", "fingerprint": "f", "tools": [tool]})
    seen = {"tool_id": "x", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": f"brief {word}"}
    feedback = {"registry_ref": {"registry_id": "r", "fingerprint": "f"}, "turn_id": "t1", "observations": [seen]}
    memory.write(kind="agent_tool_usage_feedback", feedback=feedback)


@pytest.fixture
def path(both: Path, tmp_path: Path) -> Path:
    shutil.copytree(both.parent, tmp_path / "copy")
    return tmp_path / "copy" / both.name


@pytest.fixture
def store(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    connection.pragma("foreign_keys", False)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", CASES)
def test_no_answer_reaches_over(name: str, path: Path, store: apsw.Connection) -> None:
    case = CASES[name]
    for sql in case.changes:
        store.execute(sql)
        assert store.changes(), "this changes nothing"
    before = store.execute(HELD_SQL).get
    with open_runtime(path, owner="owner-b") as memory:
        if case.refused:
            with pytest.raises(case.refused) as refused:
                case.ask(memory, store)
            shown = str(refused.value)
        else:
            shown = json.dumps(plain(case.ask(memory, store)))
    assert A not in shown
    assert store.execute(HELD_SQL).get == before
