"""What happens between two slices of an erasure: it is called off, killed, or others write what it is about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.chunk_tree.archive import Member, packed
from beetle.contracts.common import WireScope
from beetle.contracts.errors import Conflict, DeadlineExceeded, Forbidden
from beetle.contracts.forgetting import MemoryForgetRequest
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import ProgressStep
from beetle.runtime.areas.erasure import kinds
from beetle.runtime.host.caller import resolve_scope
from beetle.runtime.pipeline.crowd import Work
from beetle.runtime.pipeline.invocation import Call, Invocation
from beetle.store.engine.progress import Progress
from tests.building import candidate, candidates, skill, turn, write
from tests.governance.material import UPLOAD
from tests.governance.sliced import OTHER, WHERE, called_off, killed_in_slice, small_slices, step_of
from tests.governance.test_forget import Planted, as_caller
from tests.store.conftest import assert_clean, bytes_of, open_runtime, store_of, wait_for_erasures
from tests.store.test_erasure import Words, assert_gone

__all__ = ["small_slices"]

COUNT = 12
STRANGER = WireScope(owner_id="owner-b")
STEPS = ("forget", "delete_raw", "mask")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


def say(memory: MemoryRuntime, count: int = COUNT, number: int = 1) -> list[str]:
    """So many turns of one conversation, with a word of its own in each."""
    words = Words(number)
    said = [words.canary() for _ in range(count)]
    turns = [turn(f"t{place}", f"it is {word}") for place, word in enumerate(said)]
    memory.commit_transcript(conversation=WHERE, turns=turns)
    return said


def asked(memory: MemoryRuntime, how: str) -> tuple[str, dict[str, Any], str]:
    """An operation over all of the conversation, its request, and its step of progress."""
    if how == "forget":
        token = memory.forget(conversation=WHERE, dry_run=True).token
        return "memory.forget", {"conversation": WHERE, "token": token}, "erase"
    return "transcript.lifecycle", step_of(how), "change" if how == "mask" else "erase"


def told_of(report: Any, how: str) -> tuple[int, int]:
    """How many turns and messages a report says that it was."""
    if how == "forget":
        return report.counts["turns"], report.counts["messages"]
    return report.affected_turns, report.affected_messages


def once(act: Callable[[], Any], at: int = 1, step: str = "erase") -> Callable[[ProgressStep], None]:
    """Does something in the middle of a call, when that has done so many of its turns."""
    done: list[bool] = []

    def hear(heard: ProgressStep) -> None:
        if heard.name == step and heard.done >= at and not done:
            done.append(True)
            act()

    return hear


# Called off, and killed.


@pytest.mark.parametrize("how", STEPS[:2])
def test_what_was_called_off_goes_on_under_its_key(path: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        operation, args, step = asked(memory, how)
        for _ in range(2):
            with called_off(monkeypatch, step) as hear, pytest.raises(DeadlineExceeded):
                memory.call(operation, args, idempotency_key="k", on_progress=hear)
            wait_for_erasures(memory)
            assert memory.recall(query=words[-1]).hits
        memory.commit_transcript(conversation=WHERE, turns=[turn("late", "it is not meant")])
        report: Any = memory.call(operation, args, idempotency_key="k")
        assert (told_of(report, how), report.changed) == ((COUNT, COUNT), True)
        assert (report.erasure, report.profile_budget_applied) == ("done", False)
        assert memory.verify_store(receipt=report.receipt).receipt.valid
        assert not any(memory.recall(query=word).hits for word in words) and memory.recall(query="meant").hits
        assert_gone(path, words)
        assert memory.call(operation, args, idempotency_key="k").receipt == report.receipt
        assert_clean(memory)


def call_off(memory: MemoryRuntime, how: str, key: str = "k", **named: Any) -> tuple[str, dict[str, Any]]:
    """Call off a step over all of a conversation under a key."""
    operation, args, step = asked(memory, how)
    with pytest.MonkeyPatch.context() as patched, called_off(patched, step) as hear, pytest.raises(DeadlineExceeded):
        memory.call(operation, {**args, **named}, idempotency_key=key, on_progress=hear)
    wait_for_erasures(memory)
    return operation, {**args, **named}


def fail() -> None:
    raise Forbidden(reason="the listener fails")


@pytest.mark.parametrize("failed", [False, True])
def test_a_mask_that_is_asked_for_again_does_all_of_it(path: str, failed: bool) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        words = say(memory)
        operation, args, _ = asked(memory, "mask")
        if failed:
            with pytest.raises(Forbidden):
                memory.call(operation, args, idempotency_key="k", on_progress=once(fail, 4, "change"))
        else:
            call_off(memory, "mask")
        memory.call("transcript.lifecycle", step_of("unmask"))
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert all(memory.recall(query=word).hits for word in words), "what failed is not done at the next opening"
        report: Any = memory.call(operation, args, idempotency_key="k")
        assert (told_of(report, "mask"), report.changed) == ((COUNT, COUNT), True)
        assert (len(report.turn_ids), report.profile_budget_applied) == (COUNT, False)
        assert not any(memory.recall(query=word).hits for word in words)
        assert_clean(memory)


def test_what_failed_in_the_middle_goes_on_under_its_key(path: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        operation, args, _ = asked(memory, "forget")
        with pytest.raises(Forbidden):
            memory.call(operation, args, idempotency_key="k", on_progress=once(fail, 4))
        report: Any = memory.call(operation, args, idempotency_key="k")
        assert (told_of(report, "forget"), report.erasure) == ((COUNT, COUNT), "done")
        assert_gone(path, words)


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_what_was_killed_is_answered_under_its_key_as_it_was_done(path: str, how: str, number: int) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        words = say(memory)
        operation, args, _ = asked(memory, how)
    killed_in_slice(path, number, operation, {"conversation": WHERE} if how == "forget" else dict(args))
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        wait_for_erasures(memory)
        report: Any = memory.call(operation, args, idempotency_key="k")
        assert (told_of(report, how), report.changed) == ((COUNT, COUNT), True)
        assert memory.verify_store(receipt=report.receipt).receipt.valid
        opened = memory._opened
        fewer = opened._caller._replace(capabilities=opened._caller.capabilities - {"private.read"})
        with pytest.raises(Conflict, match="more rights"):
            opened.dispatcher.dispatch(Call(operation, args, fewer, opened._scope, idempotency_key="k"))
        assert not any(memory.recall(query=word).hits for word in words)
        assert_clean(memory)
    if how != "mask":
        assert_gone(path, words)


# A restore meanwhile.


def restoring(memory: MemoryRuntime, conversation: dict[str, str]) -> Callable[[], Any]:
    """Restores a chat as it is now."""
    chat = conversation["conversation_id"]
    scope = WireScope(owner_id="owner-a", agent_id="agent-a", channel="local", chat_id=chat, conversation_id=chat)
    snapshot = memory.call("memory.export", {"chat_id": chat}, scope=scope).snapshot
    asked = {"snapshot": snapshot, "target_chat_id": chat, "mode": "full_restore"}
    return lambda: memory.call("memory.import", asked, scope=scope)


def test_a_restore_of_another_chat_ends_no_erasure(path: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory, 90)
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", "stays here")])
        restore = restoring(memory, OTHER)
        operation, args, _ = asked(memory, "forget")
        report: Any = memory.call(operation, args, on_progress=once(restore, 4))
        assert (report.counts, report.erasure) == ({"turns": 90, "messages": 90}, "done")
        wait_for_erasures(memory)
        assert_gone(path, words)
        assert memory.recall(query="stays").hits


@pytest.mark.parametrize("how", STEPS[:2])
def test_what_a_restore_has_replaced_is_not_said_to_be_done(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory, 90)
        restore = restoring(memory, WHERE)
        operation, args, _ = asked(memory, how)
        with pytest.raises(Conflict) as refused:
            memory.call(operation, args, idempotency_key="k", on_progress=once(restore, 4))
        assert "restore" in refused.value.message and refused.value.hint
        wait_for_erasures(memory)
        assert memory.recall(query=words[0]).hits and memory.recall(query=words[-1]).hits
        is_refused_until_it_has_another_key(memory, how, operation, args, 90)
        assert_gone(path, words)
        assert_clean(memory)


def is_refused_until_it_has_another_key(
    memory: MemoryRuntime, how: str, operation: str, args: dict[str, Any], turns: int
) -> None:
    """Of an erasure whose rest was struck off: its key does nothing any more, a new one all that is there."""
    for _ in range(2):
        with pytest.raises(Conflict, match="struck off") as refused:
            memory.call(operation, args, idempotency_key="k")
        assert "another key" in refused.value.hint
        assert memory.forget(conversation=WHERE, dry_run=True).counts["turns"] == turns
    other, anew, _ = asked(memory, how)
    report: Any = memory.call(other, anew, idempotency_key="k2")
    assert (told_of(report, how)[0], report.erasure) == (turns, "done")


@pytest.mark.parametrize("how", STEPS[:2])
def test_what_a_restore_has_struck_off_of_a_call_that_was_called_off_is_refused(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        restore = restoring(memory, WHERE)
        operation, args = call_off(memory, how)
        restore()
        is_refused_until_it_has_another_key(memory, how, operation, args, COUNT)
        assert_gone(path, words)
        assert_clean(memory)


def test_what_a_snapshot_had_left_to_erase_is_refused_when_it_is_back(path: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        operation, args = call_off(memory, "delete_raw")
        left = memory.forget(conversation=WHERE, dry_run=True).counts["turns"]
        saved = memory.create_snapshot().snapshot.snapshot_id
        memory.call(operation, args, idempotency_key="k")
        memory.restore_snapshot(snapshot_id=saved, keep_erased=True)
        assert memory.recall(query=words[-1]).hits
        is_refused_until_it_has_another_key(memory, "forget", operation, args, left)


# Others write meanwhile.


def fact(name: str, turns: list[str], **more: Any) -> dict[str, Any]:
    refs = [f"evidence:local/{each}" for each in turns]
    return {"authority": "user_asserted", "evidence_refs": refs, "topic": name, **more}


def test_what_is_made_of_turns_while_they_go_goes_with_them(path: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", f"it is {words[-1]}")])

        def derive() -> None:
            said = f"it is {words[-1]}"
            made = memory.write(**candidates(
                candidate("c1", said, **fact("one", ["talk/t11"])),
                candidate("c2", said, **fact("both", ["talk/t11", "other/o1"])),
                candidate("c3", f"sealed {words[-1]}", target="private_garden", privacy="subject_private",
                          **{**fact("sealed", ["talk/t11"]), "authority": "operator"}),
            ))  # fmt: skip
            assert [each.outcome for each in made.outcomes] == ["accepted"] * 3
            way = {**skill("way", content=f"say {words[-1]}"), "citations": ["evidence:local/talk/t11"]}
            memory.write(**write(way))

        operation, args, _ = asked(memory, "forget")
        report: Any = memory.call(operation, args, on_progress=once(derive))
        assert report.counts == {"turns": COUNT, "messages": COUNT, "facts": 1, "skills": 1, "private_items": 1}
        assert [(each.plane, each.reason, each.count) for each in report.stays] == [("facts", "cited_elsewhere", 1)]
        assert [each.topic for each in memory.list_long_term().records] == ["both"]
        assert not memory.list_private().items
        assert_gone(path, words[:-1])


def test_what_changes_hands_meanwhile_stays_and_is_told(path: str) -> None:
    with open_runtime(path) as memory:
        memory.write(**candidates(*(
            candidate(f"c{number}", f"the sensor {number} reads", topic=f"sensor {number}", authority="tool_observed")
            for number in range(COUNT)
        )))  # fmt: skip
        user = as_caller(memory, "principal", ("host_ui", "model_context"))
        shown = user("memory.forget", {"query": "sensor", "dry_run": True})
        assert shown.counts == {"facts": COUNT}
        *_, again, private, corrected = sorted(shown.refs)

        def change() -> None:
            step = memory.mutate_long_term
            step(action="correct", ref=corrected, content="off in June", reason="r")
            step(action="change_scope", ref=private, privacy="subject_private", reason="r", view="raw_owner")
            user("long_term.mutate", {"action": "correct", "ref": again, "content": "on in May", "reason": "r"})

        call = {"query": "sensor", "token": shown.token}
        report = user("memory.forget", call, on_progress=once(change))
        assert report.counts == {"facts": COUNT - 3}
        assert [(each.reason, each.refs) for each in report.stays] == [
            ("changed", (again,)), ("weaker_authority", (corrected,)),
        ]  # fmt: skip
        left = {each.content for each in memory.list_long_term(view="raw_owner").records}
        assert left >= {"off in June", "on in May"}
        assert memory.get_long_term(ref=private, view="raw_owner").record.state == "current"
        assert memory.recall(query="June").hits


NOTE: Any = {
    "tokens": 1, "type": "note", "content": "plain", "tags": [],
    "metadata": {"created": "2026-02-10T10:00:00Z", "conversation_id": "c"},
}  # fmt: skip


def test_an_agent_and_a_chunk_s_link_that_say_something_else_meanwhile_stay(path: str) -> None:
    agent = {"chain_key": "k", "agent_id": "scribe"}
    with open_runtime(path) as memory:
        for number in range(COUNT):
            memory.create_chunk(content=f"Ana {number}", conversation_id="k")
        memory.append_thought(**agent, thought_type="Plan", content="stays")
        memory.upsert_chain_agent(**agent, description="Writes for Ana")
        chunk = "chunk-2026-02-10-a1b2c3d4"
        note = {**NOTE, "id": chunk, "links": {"supports": ["Ana"]}}
        memory.import_chunk_tree(archive=packed([Member(f"chunks/2026-02/{chunk}.json", json.dumps(note).encode())]))

        def change() -> None:
            memory.upsert_chain_agent(**agent, description="Keeps the minutes")
            memory.call("chunk.link", {"id": chunk, "kind": "supports", "target": "Ana", "remove": True})

        shown = memory.forget(query="Ana", dry_run=True)
        assert shown.counts == {"chain_agents": 1, "chunks": COUNT + 1}
        call = {"query": "Ana", "token": shown.token}
        report: Any = memory.call("memory.forget", call, on_progress=once(change))
        assert report.counts == {"chunks": COUNT, "chain_agents": 0}
        assert [(each.plane, each.reason, each.count) for each in report.stays] == [
            ("chain_agents", "changed", 1), ("chunks", "changed", 1),
        ]  # fmt: skip
        (kept,) = memory.list_chain_agent_registry(chain_key="k").agents
        assert kept.description == "Keeps the minutes"
        assert memory.get_chunk(id=chunk).chunk is not None


def test_a_new_record_does_not_stand_in_for_one_that_is_gone(path: str) -> None:
    with open_runtime(path) as memory:
        said = [memory.create_chunk(content=f"Ana {number}", conversation_id="k").chunk.id for number in range(COUNT)]
        new: list[str] = []

        def change() -> None:
            memory.delete_chunk(id=said[-1], permanent=True)
            args = {"content": "The boiler is new", "conversation_id": "boiler"}
            new.append(memory.call("chunk.create", args, scope=STRANGER).chunk.id)

        token = memory.forget(query="Ana", dry_run=True).token
        call = {"query": "Ana", "token": token}
        report: Any = memory.call("memory.forget", call, on_progress=once(change))
        assert report.counts == {"chunks": COUNT - 1}
        assert memory.call("chunk.get", {"id": new[0]}, scope=STRANGER).chunk is not None


# Every kind.


def invocation_of(memory: MemoryRuntime) -> Invocation:
    opened = memory._opened
    dispatcher = opened.dispatcher
    return Invocation(
        caller=opened._caller, scope=resolve_scope(opened._caller, opened._scope),
        operation=BY_NAME["memory.forget"], view="raw_owner",
        now=dispatcher.shared.dependencies.clock(), deadline=None, shared=dispatcher.shared, progress=Progress(),
        work=Work(dispatcher.crowd, opened._caller.name),
    )  # fmt: skip


ERASED_AGAIN_ALONE = {"label", "attr", "policy"}
"""Kinds that no request selects."""


def test_a_record_of_any_kind_goes_only_as_what_was_selected(path: str) -> None:
    with open_runtime(path) as memory:
        Planted(memory, Words(3))
        memory.create_chunk(content="a note", conversation_id="k")
        memory.call("chain.bootstrap", {"chain_key": "kk", "content": "a thought", "agent_id": "ag"})
        tool = {"tool_id": "t", "title": "t", "summary": "s", "schema_fingerprint": "s"}
        memory.upsert_agent_tool_registry(registry_id="r1", fingerprint="f", tools=[tool])
        memory.propose(proposals=[{"proposal_id": "p1", "kind": "skill_enable", "target": "secret", "rationale": "r"}])
        memory.call("skill_registry.upload", UPLOAD)
        invocation, store = invocation_of(memory), store_of(memory)
        request = MemoryForgetRequest(whole_space=True, dry_run=True)
        with store.read() as tx:
            found = kinds.select(invocation, tx, request)
        assert set(found.keys) == set(kinds.by_name()) - ERASED_AGAIN_ALONE, "plant what a new kind is about here"
        for name, records in found.keys.items():
            for key, known in records.items():

                def erase(space: int, mark: int, name: str = name, key: int = key) -> kinds.Step:
                    return store.write(lambda tx: kinds.erase(invocation, tx, space, name, key, mark, "operator"))

                assert erase(found.space + 1, known.mark).digests is None, name
                assert erase(found.space, known._replace(name=("another",)).mark).digests is None, name
                changed = erase(found.space, known._replace(version="another").mark)
                assert (changed.digests, changed.stays) == (None, "changed"), name
                with store.read() as tx:
                    assert kinds.by_name()[name].known(invocation, tx, found.space, key) == known, name
        for name in kinds.by_name():
            for key, known in found.keys.get(name, {}).items():
                done = store.write(
                    lambda tx, name=name, key=key, known=known: kinds.erase(
                        invocation, tx, found.space, name, key, known.mark, "operator"
                    )
                )
                assert done.digests is not None or name == "brief", name
    assert b"a thought" not in bytes_of(path)
