"""Forgetting as a person means it: in every plane, shown first, in slices, and of what the caller may see alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.__main__ import main
from beetle.contracts.errors import STATUS, Conflict, DeadlineExceeded, Forbidden, InvalidRequest
from beetle.contracts.progress import ProgressStep
from beetle.runtime.pipeline.invocation import Call
from tests.building import candidate, candidates, message, skill, talk, turn, write
from tests.governance.keeping import keep
from tests.governance.sliced import COUNTS, OTHER, WHERE, called_off, killed_in_slice, small_slices, step_of
from tests.store.conftest import assert_clean, bytes_of, held_snapshot, open_runtime, wait_for_erasures
from tests.store.test_erasure import Words, assert_gone, remnants

__all__ = ["small_slices"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


def forget(memory: MemoryRuntime, **what: Any) -> Any:
    return memory.forget(**what, token=memory.forget(**what, dry_run=True).token)


class Planted:
    """One secret word in every plane of a space, all of it resting on the conversation `talk` alone."""

    def __init__(self, memory: MemoryRuntime, words: Words) -> None:
        self.word = words.canary()
        self.rest = [words.canary() for _ in range(12)]
        speaker, trigger, label, key, value, reply, masked, soul = self.rest[:8]
        actor = {"speaker": speaker, "trigger": trigger, "subject_id": "subject-7"}
        said = [
            {**message("m1", f"the {self.word} key"), "actor": actor},
            {**message("m2", f"so {reply}"), "role": "assistant", "actor": actor},
            {**message("m3", f"{self.word} {soul}"), "visibility": "soul", "actor": actor},
        ]
        refs = [{"kind": "task", "ref_id": "r", "label": f"of {label}"}]
        attrs = [{"key": f"7{key}7", "value": f"7{value}"}]
        first = {**turn("t1", ""), "messages": said, "host_refs": refs, "attrs": attrs}
        second = {**turn("t2", ""), "messages": [{**message("m4", f"{self.word} and {masked}"), "actor": actor}]}
        memory.commit_transcript(conversation=WHERE, turns=[first, second])
        memory.request_transcript_lifecycle(conversation=WHERE, action="mask", turn_ids=["t2"], reason="r")
        cites = {"evidence_refs": ["evidence:local/talk/t1/m1"], "authority": "user_asserted"}
        memory.write(kind="candidates", candidates=[
            candidate("c1", f"the {self.word} key", topic=self.word, **cites),
            candidate("c2", f"sealed {self.word}", target="private_garden", privacy="subject_private",
                      **{**cites, "authority": "operator"}),
            candidate("c3", f"perhaps {self.word}", **{**cites, "authority": "assistant_claimed"}),
        ])  # fmt: skip
        made = skill("secret", content=f"quote: {self.word}")
        memory.write(**write({**made, "citations": ["evidence:local/talk/t1"]}))
        used = {"tool_id": "t", "schema_fingerprint": "s", "outcome": "succeeded", "summary": f"saw {self.rest[8]}"}
        told = {"registry_ref": {"registry_id": "r1", "fingerprint": "f"}, "turn_id": "t1", "observations": [used]}
        memory.call("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": told})
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", "nothing of it")])

    @property
    def erased(self) -> list[str]:
        return [self.word, *self.rest[:9]]


SELECTIONS: dict[str, dict[str, Any]] = {
    "conversation": {"conversation": WHERE},
    "subject": {"subject": "subject-7"},
    "speaker": {},
    "query": {},
    "space": {"whole_space": True},
}


@pytest.mark.parametrize("how", SELECTIONS)
def test_what_is_forgotten_is_in_no_byte_of_any_file(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        planted = Planted(memory, Words(3))
        assert remnants(bytes_of(path), planted.erased)
        what = SELECTIONS[how] or {"query": planted.word} if how != "speaker" else {"subject": planted.rest[0]}
        shown = memory.forget(**what, dry_run=True)
        assert shown.counts["turns"] == 2 + (how == "space") and shown.counts["facts"] == 1
        assert {"skills", "candidates", "private_items", "tool_briefs"} <= set(shown.counts)
        done = memory.forget(**what, token=shown.token)
        assert (done.counts, done.erasure, done.changed) == (shown.counts, "done", True)
        assert_gone(path, planted.erased)
        assert_clean(memory)
        assert memory.verify_store(receipt=done.receipt).receipt.valid
        assert not memory.recall(query=planted.word).hits
        assert bool(memory.recall(query="nothing").hits) is (how != "space")
    assert_gone(path, planted.erased)


@pytest.mark.parametrize("how", ["forget", "delete_raw"])
def test_ids_roles_times_and_relations_stay(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        Planted(memory, Words(4))
        if how == "forget":
            forget(memory, conversation=WHERE)
        else:
            step: dict[str, Any] = {"action": "delete_raw", "turn_ids": ["t1", "t2"], "reason": "r"}
            memory.request_transcript_lifecycle(conversation=WHERE, **step)
        replayed = memory.replay_transcript(conversation=WHERE, view="raw_owner")
        first = replayed.turns[0]
        assert [(m.message_id, m.role) for m in first.messages] == [("m1", "user"), ("m2", "assistant"), ("m3", "user")]
        assert all(m.at for m in first.messages) and [ref.ref_id for ref in first.host_refs] == ["r"]
        assert {(m.actor.subject_id, m.actor.speaker, m.actor.trigger) for m in first.messages if m.actor} <= {
            ("subject-7", None, None)
        }


def test_raw_deletion_erases_who_spoke_and_what_set_it_off(path: str) -> None:
    with open_runtime(path) as memory:
        planted = Planted(memory, Words(5))
        memory.request_transcript_lifecycle(conversation=WHERE, action="delete_raw", turn_ids=["t1", "t2"], reason="r")
        assert_gone(path, planted.rest[:2])


def test_what_rests_on_other_evidence_or_a_stronger_word_stays_and_is_told(path: str) -> None:
    with open_runtime(path) as memory:
        memory.call(*["transcript.commit", talk(turn("t1", "the key is red"), turn("t2", "it is late"))])
        memory.call("transcript.commit", {**talk(turn("o1", "the key is red")), "conversation": OTHER})
        both = ["evidence:local/talk/t1", "evidence:local/other/o1"]
        cited = candidate("c1", "the key is red", authority="user_asserted", evidence_refs=both)
        memory.call("memory.write", candidates(cited))
        shown = memory.forget(conversation=WHERE, dry_run=True)
        assert [(each.plane, each.reason, each.count) for each in shown.stays] == [("facts", "cited_elsewhere", 1)]
        assert "facts" not in shown.counts
        memory.forget(conversation=WHERE, token=shown.token)
        assert memory.get_long_term(ref=shown.stays[0].refs[0]).record.state == "current"


@pytest.mark.parametrize("change", ["commit", "mask", "fact", "caller"])
def test_a_token_is_bound_to_what_was_shown(path: str, change: str) -> None:
    with open_runtime(path) as memory:
        memory.call("transcript.commit", talk(turn("t1", "the red key"), turn("t2", "late")))
        token = memory.forget(conversation=WHERE, dry_run=True).token
        if change == "commit":
            memory.call("transcript.commit", talk(turn("t3", "more")))
        elif change == "mask":
            memory.request_transcript_lifecycle(conversation=WHERE, action="mask", turn_ids=["t2"], reason="r")
        elif change == "fact":
            cited = candidate("c1", "the red key", authority="user_asserted", evidence_refs=["evidence:local/talk/t1"])
            memory.call("memory.write", candidates(cited))
        else:
            token = memory.forget(query="key", dry_run=True).token
        with pytest.raises(Conflict):
            memory.forget(conversation=WHERE, token=token)
        assert memory.recall(query="key").hits
        memory.call("transcript.commit", {**talk(turn("o1", "elsewhere")), "conversation": OTHER})
        assert forget(memory, conversation=WHERE).changed


def test_without_a_token_nothing_is_forgotten(path: str) -> None:
    with open_runtime(path) as memory, pytest.raises(InvalidRequest):
        memory.forget(query="key")


def many(memory: MemoryRuntime, count: int, words: Words) -> list[str]:
    found = [words.canary() for _ in range(count)]
    memory.call("transcript.commit", talk(*(turn(f"t{n}", f"it is {word}") for n, word in enumerate(found))))
    return found


def test_others_write_between_slices_and_progress_is_told(path: str) -> None:
    heard: list[ProgressStep] = []
    with open_runtime(path) as memory:
        gone = many(memory, 12, Words(6))

        def told(step: ProgressStep) -> None:
            heard.append(step)
            if step.name == "erase" and 0 < step.done < 12:
                memory.call("transcript.commit", {**talk(turn(f"o{step.done}", "beside")), "conversation": OTHER})

        token = memory.forget(conversation=WHERE, dry_run=True).token
        done = memory.call("memory.forget", {"conversation": WHERE, "token": token}, on_progress=told)
        assert done.counts == {"turns": 12, "messages": 12}
        shares = [(step.done, step.of) for step in heard if step.name == "erase"]
        assert shares == sorted(shares) and shares[-1] == (12, 12) and len(shares) > 3
        others = memory.replay_transcript(conversation=OTHER, view="host_ui").turns
        assert len(others) == len({done for done, _ in shares if 0 < done < 12})
        assert_gone(path, gone)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("how", ["forget", "delete_raw"])
def test_it_can_be_called_off_between_slices(path: str, how: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_runtime(path) as memory:
        words = many(memory, count, Words(7))
        if how == "forget":
            args: Any = {"conversation": WHERE, "token": memory.forget(conversation=WHERE, dry_run=True).token}
        else:
            args = step_of("delete_raw")
        operation = "memory.forget" if how == "forget" else "transcript.lifecycle"
        with called_off(monkeypatch, "erase") as hear, pytest.raises(DeadlineExceeded) as ended_early:
            memory.call(operation, args, on_progress=hear)
        assert "stay erased" in ended_early.value.message and "is there still" in ended_early.value.hint
        event = memory.read_event_log(newest_first=True, limit=1).rows[0]
        assert event.event == "erasure_called_off" and 0 < event.subject["turns"] < count
        wait_for_erasures(memory)
        seen = memory.replay_transcript(conversation=WHERE, view="host_ui", limit=count)
        left = [m.content for t in seen.turns for m in t.messages]
        kept = [text for text in left if isinstance(text, str)]
        assert 0 < len(kept) < count
        alive = [word for word in words if any(word in text for text in kept)]
        assert_gone(path, [word for word in words if word not in alive], alive)
        assert_clean(memory)
    with open_runtime(path) as memory:
        assert len([word for word in words if memory.recall(query=word).hits]) >= len(alive)
        assert forget(memory, conversation=WHERE).counts["turns"] == len(kept)


@pytest.mark.parametrize("how", ["forget", "delete_raw"])
@pytest.mark.parametrize(("count", "number"), [(COUNTS[0], 1), (COUNTS[0], 3), (COUNTS[1], 3), (COUNTS[1], 31)])
def test_it_goes_on_when_the_store_is_opened_after_a_kill(path: str, how: str, count: int, number: int) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        words = many(memory, count, Words(8))
        memory.call("transcript.commit", {**talk(turn("o1", "stays here")), "conversation": OTHER})
    if how == "forget":
        killed_in_slice(path, number, "memory.forget", {"conversation": WHERE})
    else:
        killed_in_slice(path, number, "transcript.lifecycle", step_of("delete_raw"))
    assert remnants(bytes_of(path), words)
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert any("finished now" in each for each in memory.open_report.findings)
        wait_for_erasures(memory)
        assert_gone(path, words)
        assert_clean(memory)
        assert memory.recall(query="stays").hits
        events = [each.event for each in memory.read_event_log(newest_first=True).rows]
        assert "erasure_finished" in events
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert not any("erasure" in each for each in memory.open_report.findings)


def test_an_erasure_is_pending_only_while_a_reader_holds_the_log(path: str) -> None:
    with open_runtime(path) as memory:
        words = many(memory, COUNTS[-1], Words(9))
        token = memory.forget(conversation=WHERE, dry_run=True).token
        with held_snapshot(memory):
            pending: Any = memory.call("memory.forget", {"conversation": WHERE, "token": token}, deadline_ms=1500)
            assert pending.erasure == "pending"
        wait_for_erasures(memory)
        assert_gone(path, words)


def test_the_horizon_names_the_copies_that_hold_it_still(path: str) -> None:
    with open_runtime(path) as memory:
        many(memory, 3, Words(10))
        made = memory.create_snapshot().snapshot
        assert forget(memory, conversation=WHERE).replica_horizon == made.created_at


def test_counts_are_exact_where_lists_end_at_their_budget(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("erasure.turns", "evidence.lifecycle"):
        monkeypatch.setattr(f"beetle.runtime.areas.{module}.IDS_SHOWN", 5)
    with open_runtime(path) as memory:
        many(memory, 12, Words(11))
        args = step_of("delete_raw")
        dry: Any = memory.call("transcript.lifecycle", {**args, "dry_run": True})
        done: Any = memory.call("transcript.lifecycle", args)
        for report in (dry, done):
            assert (report.affected_turns, report.affected_messages, len(report.message_ids)) == (12, 12, 5)
            assert report.profile_budget_applied


def test_words_in_an_attr_or_a_tool_call_select_the_turn(path: str) -> None:
    """Adapters keep a framework's own form of a message in an attr of its turn."""
    form = {"additional_kwargs": {"note": "the Saffron order", "count": 7431}, "type": "human"}
    call = {"tool": "shop", "call_id": "1", "arguments": {"colour": "vermilion"}}
    shown_to_all = ["host_ui", "model_context", "export"]
    attr = {"key": "host.message", "value": json.dumps(form), "visibility": shown_to_all}
    with open_runtime(path) as memory:
        memory.commit_transcript(conversation=WHERE, turns=[
            turn("t1", "nothing of it", attrs=[attr]),
            turn("t2", {**message("m2", "", role="assistant"), "tool_calls": [call]}),
            turn("t3", "a draft", attrs=[{**attr, "visibility": ["operator_audit"], "value": "kept: ochre"}]),
            turn("t4", message("m4", "to the soul", visibility="soul"), "aloud", attrs=[{**attr, "value": "umber"}]),
        ])  # fmt: skip

        def counted(call: Callable[..., Any], query: str) -> int:
            return int(call("memory.forget", {"query": query, "dry_run": True}).counts.get("turns", 0))

        assert [counted(memory.call, each) for each in ("saffron order", "7431", "vermilion", "ochre", "umber")] == [
            1, 1, 1, 1, 1,
        ]  # fmt: skip
        assert counted(memory.call, "additional_kwargs") == 0, "the form's own names are nobody's words"
        host = as_caller(memory, "principal", ("host_ui", "model_context"))
        assert [counted(host, each) for each in ("saffron order", "ochre", "umber")] == [1, 0, 0]
        forget(memory, query="saffron order")
        assert not memory.replay_transcript(conversation=WHERE, view="raw_owner").turns[0].attrs
    assert b"saffron" not in bytes_of(path).lower()


REASONED = "zanzibar7431"


def test_words_in_reasons_citations_and_proposals_are_forgotten(path: str) -> None:
    with open_runtime(path) as memory:
        given = memory.write(**candidates(
            candidate("c1", "the key is red", topic="key", authority="operator"),
            candidate("c2", "the lamp is on", topic="lamp", authority="assistant_claimed"),
            candidate("c3", "the door is shut", topic="door", authority="operator"),
        )).outcomes  # fmt: skip
        memory.mutate_long_term(
            action="correct", ref=given[0].ref, content="the key is blue", reason=f"{REASONED} said"
        )
        memory.decide_waiting(ids=[given[1].waiting_id], decision="accept", reason=f"so says {REASONED}")
        memory.write(**write(skill("way"), skill("other"), skill("third", citations=[f"from {REASONED}"])))
        memory.edit_runtime_skill(name="way", title="New", edit_reason=f"{REASONED} asked")
        new = {"title": "T", "topic": "T", "summary": "s", "procedure": "p"}
        memory.propose(proposals=[
            {"proposal_id": "p1", "kind": "skill_create", "target": REASONED, "change": new, "rationale": "r"},
            {"proposal_id": "p2", "kind": "skill_disable", "target": "other", "rationale": "r",
             "evidence_refs": [f"free {REASONED}"]},
            {"proposal_id": "p3", "kind": "skill_enable", "target": "other", "rationale": "r"},
        ])  # fmt: skip
        tried = memory.mutate_long_term(action="forget_by_query", query=f"{REASONED} so", dry_run=True)
        assert (tried.affected, tried.proposals) == (1, 0)
        tried = memory.mutate_long_term(action="forget_by_query", query=REASONED, dry_run=True)
        assert (tried.affected, tried.proposals) == (2, 2)
        assert forget(memory, query=REASONED).counts == {"facts": 2, "skills": 2, "proposals": 2}
        assert [each.content for each in memory.list_long_term().records] == ["the door is shut"]
        assert [each.proposal_id for each in memory.list_proposals().proposals] == ["p3"]
        assert_clean(memory)
    assert REASONED.encode() not in bytes_of(path)


def test_the_reason_of_what_is_private_is_searched_for_nobody_else(path: str) -> None:
    with open_runtime(path) as memory:
        private = candidate("c1", "the key is red", topic="key", authority="operator", privacy="subject_private")
        fact: Any = memory.write(**candidates(private)).outcomes[0].ref
        change: dict[str, Any] = {"ref": fact, "reason": f"{REASONED} said", "view": "raw_owner"}
        memory.mutate_long_term(action="correct", content="the key is blue", **change)
        host = as_caller(memory, "principal", ("host_ui", "model_context"))
        asked = {"query": REASONED, "dry_run": True}
        assert host("memory.forget", asked).counts == {}
        memory.mutate_long_term(action="change_scope", ref=fact, privacy="public_runtime", reason="r", view="raw_owner")
        assert host("memory.forget", asked).counts == {}, "it was given while the fact was private"
        assert memory.forget(query=REASONED, dry_run=True).counts == {"facts": 1}


def as_caller(memory: MemoryRuntime, kind: str, views: tuple[str, ...]) -> Callable[..., Any]:
    """Calls as another caller of the same store: no owner."""
    opened = memory._opened
    caller = opened._caller._replace(
        name=f"{kind}:test", kind=kind, views=views, agent_id=None,
        capabilities=opened._caller.capabilities - {"private.read", "transcript.raw"},
    )  # fmt: skip

    def call(operation: str, arguments: Any, on_progress: Any = None) -> Any:
        asked = Call(operation, arguments, caller, opened._scope, on_progress=on_progress)
        return opened.dispatcher.dispatch(asked).report

    return call


def test_an_operator_is_refused_what_it_may_not_see_with_the_number(path: str) -> None:
    with open_runtime(path) as memory:
        planted = Planted(memory, Words(13))
        call = as_caller(memory, "operator", ("host_ui", "model_context", "operator_audit", "export"))
        for what in ({"conversation": WHERE}, {"whole_space": True}):
            shown = call("memory.forget", {**what, "dry_run": True})
            assert shown.hidden >= 2 and shown.token is None
            with pytest.raises(Forbidden) as refused:
                call("memory.forget", {**what, "token": "t"})
            assert refused.value.details["hidden"] == shown.hidden
        assert memory.recall(query=planted.word).hits


def test_another_caller_forgets_what_it_sees_and_hears_of_nothing_else(path: str) -> None:
    with open_runtime(path) as memory:
        planted = Planted(memory, Words(14))
        call = as_caller(memory, "principal", ("host_ui", "model_context"))
        with pytest.raises(Forbidden):
            call("memory.forget", {"whole_space": True, "dry_run": True})
        shown = call("memory.forget", {"conversation": WHERE, "dry_run": True})
        assert (shown.hidden, "private_items" in shown.counts, shown.counts["messages"]) == (0, False, 3)
        done = call("memory.forget", {"conversation": WHERE, "token": shown.token})
        assert done.counts == shown.counts and done.erasure == "done"
        left = [m for t in memory.replay_transcript(conversation=WHERE, view="raw_owner").turns for m in t.messages]
        assert [m.message_id for m in left if isinstance(m.content, str)] == ["m3"], "the soul's own stays"
        assert memory.list_private().items and planted.word


def test_the_short_word_shows_and_asks_and_forgets(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        memory.call("transcript.commit", talk(turn("t1", "the red key"), conversation=WHERE))
    store = ["--store", path, "--profile", "dev-full"]
    assert main([*store, "forget", "red key"]) == 1
    told = capsys.readouterr()
    assert "WOULD GO" in told.out and "--token" in told.out and "give --yes" in told.err
    assert main([*store, "memory", "forget", "red key", "--yes"]) == 0
    assert "Erased: no byte of it" in capsys.readouterr().out
    assert main([*store, "forget", "--query", "red key", "--yes"]) == 0
    assert "Nothing found." in capsys.readouterr().out
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        keep(memory, "what an operator may not see")
    assert main([*store, "forget", "--whole-space", "--yes"]) == STATUS["forbidden"].exit_code
    assert "may not see would go too" in capsys.readouterr().err


def test_forgetting_a_subject_says_that_the_words_of_others_stay(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        memory.call("transcript.commit", talk(turn("t1", "the red key"), conversation=WHERE))
    for words in (["--subject", "Ana", "--dry-run"], ["--subject", "Ana"], ["key", "--dry-run"]):
        assert main(["--store", path, "--profile", "dev-full", "forget", *words]) == 0
        told = "What others said about Ana stays" in capsys.readouterr().out
        assert told is ("--subject" in words)
