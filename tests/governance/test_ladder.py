"""Every action on a fact is judged by the ladder of authority, and what was removed comes back by that ladder alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import Conflict, Forbidden
from beetle.runtime.planes import removed
from tests.governance.learned import another, forget, invocation_of, learn, listed, mutate, recalled
from tests.store.conftest import assert_clean, open_runtime, store_of

ACTIONS: dict[str, dict[str, Any]] = {
    "correct": {"content": "The spare key is lost."},
    "supersede": {"content": "The spare key is lost."},
    "delete": {},
    "mark_stale": {},
    "change_scope": {"privacy": "public_runtime"},
}
PROPOSABLE = {
    "correct": "fact_correct",
    "supersede": "fact_correct",
    "delete": "fact_forget",
    "mark_stale": "fact_stale",
}
KEY = "The spare key is under the pot."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "beetle.db") as opened:
        yield opened
        assert_clean(opened)


def refused(caller: MemoryRuntime, action: str, ref: str | None = None, **more: Any) -> Forbidden:
    with pytest.raises(Forbidden) as caught:
        mutate(caller, action, ref, **more)
    return caught.value


@pytest.mark.parametrize("kind", ["principal", "device"])
@pytest.mark.parametrize("action", ACTIONS)
def test_no_action_of_a_weaker_caller_touches_a_stronger_fact(memory: MemoryRuntime, kind: str, action: str) -> None:
    worker = another(memory, kind=kind)
    ref = learn(memory, authority="operator")
    head = store_of(memory).head
    for dry_run in (True, False):
        error = refused(worker, action, ref, dry_run=dry_run, **ACTIONS[action])
        assert (error.details["reason"], error.details["authority"]) == ("weaker_authority", "operator")
        assert "pot" not in str(error) + error.hint
        assert ("evolve propose" in error.hint and PROPOSABLE[action] in error.hint) == (action in PROPOSABLE)
    assert recalled(memory, "spare key") == {ref: KEY}
    # The refusals themselves are the only events.
    with store_of(memory).read() as tx:
        assert tx.value("SELECT count(*) FROM event_log WHERE seq > ? AND topic = 'memory'", head[0]) == 0


@pytest.mark.parametrize("action", ACTIONS)
def test_an_equal_or_stronger_caller_does_as_before(memory: MemoryRuntime, action: str) -> None:
    worker = another(memory)
    wanted = {"correct": "corrected", "supersede": "superseded", "delete": "deleted", "mark_stale": "stale"}
    for authority in ("user_asserted", "host", "assistant_claimed"):
        more = {"privacy": "subject_private"} if action == "change_scope" else ACTIONS[action]
        ref = learn(memory, f"Thing of {authority} is here.", topic=authority, authority=authority)
        assert mutate(worker, action, ref, **more).outcome == wanted.get(action, "scope_changed")
        assert mutate(memory, "delete", ref, view="raw_owner").outcome in ("deleted", "unchanged")


def test_what_is_refused_may_be_proposed_and_an_operator_carries_it_out(memory: MemoryRuntime) -> None:
    worker = another(memory)
    ref = learn(memory, authority="operator")
    refused(worker, "delete", ref)
    proposal = {"kind": "fact_forget", "target": ref, "rationale": "it was moved"}
    (made,) = worker.propose(proposals=[proposal]).proposals
    verdict = worker.preview_proposal(proposal_id=made.proposal_id).verdict
    assert (verdict.outcome, verdict.reason) == ("refused", "forbidden")
    memory.submit_proposals(proposal_ids=[made.proposal_id])
    assert recalled(memory, "spare key") == {}


def test_forgetting_by_a_query_is_refused_whole_where_a_stronger_fact_is_found(memory: MemoryRuntime) -> None:
    worker = another(memory)
    mine = learn(memory, "The pump hums by day.", topic="pump")
    strong = learn(memory, "The pump hums by night.", topic="night", authority="operator")
    for more in ({"dry_run": True}, {"confirm": "x"}):
        error = refused(worker, "forget_by_query", query="pump", **more)
        assert (error.details["reason"], error.details["facts"]) == ("weaker_authority", 1)
    assert listed(memory) == [strong, mine]
    assert forget(worker, "pump day").refs == (mine,)
    assert forget(memory, "pump").refs == (strong,)


def test_a_stronger_word_that_waits_is_not_forgotten_by_a_weaker_caller(memory: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    said = {"candidate_id": "c", "target": "long_term", "privacy": "public_runtime", "content": "The pump hums."}
    memory.write(kind="candidates", candidates=[{**said, "authority": "operator"}])
    error = refused(another(memory), "forget_by_query", query="pump", dry_run=True)
    assert error.details["waiting"] == 1
    assert forget(memory, "pump").waiting == 1


def test_a_state_that_takes_no_action_is_told_before_the_authority(memory: MemoryRuntime) -> None:
    worker = another(memory)
    ref = learn(memory, authority="operator")
    mutate(memory, "delete", ref)
    assert mutate(worker, "delete", ref).outcome == "unchanged"
    with pytest.raises(Conflict):
        mutate(worker, "mark_stale", ref)


def said(memory: MemoryRuntime, authority: str, content: str, topic: str = "spare key", **more: Any) -> tuple[str, str]:
    """Outcome and reason of a candidate."""
    given = {"candidate_id": "c", "target": "long_term", "privacy": "public_runtime", **more}
    (found,) = memory.write(
        kind="candidates", candidates=[{**given, "authority": authority, "content": content, "topic": topic}]
    ).outcomes
    return found.outcome, found.reason


GONE = ("deferred", "weaker_authority")


def remove(caller: MemoryRuntime, how: str, ref: str) -> None:
    """Have what a fact says be said no more; nothing of its topic stands there afterwards."""
    if how == "forget_by_query":
        assert forget(caller, "spare key").affected == 1
    elif how == "delete":
        mutate(caller, "delete", ref)
    else:
        after = mutate(caller, how, ref, content="It is lost.").ref
        mutate(caller, "delete", after)


@pytest.mark.parametrize("how", ["delete", "forget_by_query", "correct", "supersede"])
def test_a_removed_value_comes_back_by_the_authority_of_who_removed_it(memory: MemoryRuntime, how: str) -> None:
    remove(memory, how, learn(memory))
    for authority in ("user_asserted", "tool_observed", "host"):
        assert said(memory, authority, "the SPARE key  is under the pot.", "Spare  KEY") == GONE
        assert said(memory, authority, KEY, topic="") == GONE
        assert said(memory, authority, KEY, kind="preference") == GONE
    assert listed(memory) == []
    assert said(memory, "host", "The spare key is with Bo.") == ("accepted", "created")
    assert said(memory, "operator", KEY) == ("accepted", "superseded")
    assert said(memory, "host", KEY) == ("accepted", "unchanged")


@pytest.mark.parametrize("how", ["delete", "correct"])
def test_what_a_principal_removed_is_the_user_s_to_say_again_and_no_tool_s(memory: MemoryRuntime, how: str) -> None:
    remove(another(memory), how, learn(memory, authority="tool_observed"))
    assert said(memory, "tool_observed", KEY) == GONE
    assert said(memory, "user_asserted", KEY) == ("accepted", "created")


def test_a_waiting_version_of_a_deleted_value_stays_in_the_queue(memory: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    assert said(memory, "host", KEY) == ("deferred", "policy_paused")
    assert said(memory, "host", "The pump hums.", "pump") == ("deferred", "policy_paused")
    ref = learn(memory)
    mutate(memory, "delete", ref)
    assert memory.long_term_policy(action="resume").rejudged == 1
    assert list(recalled(memory, "pump").values()) == ["The pump hums."] and recalled(memory, "spare key") == {}
    assert memory.inspect().counts.waiting_candidates == 1
    # Nor does the deletion of what stands in its place let it in.
    other = learn(memory, "The spare key is with Bo.", authority="operator")
    mutate(memory, "delete", other)
    assert recalled(memory, "spare key") == {} and memory.inspect().counts.waiting_candidates == 1


def test_what_was_superseded_by_a_stronger_word_does_not_come_back_when_that_goes(memory: MemoryRuntime) -> None:
    assert said(memory, "host", KEY) == ("accepted", "created")
    assert said(memory, "operator", "The spare key is with Bo.") == ("accepted", "superseded")
    assert said(memory, "host", KEY) == GONE
    (bo,) = listed(memory)
    mutate(memory, "delete", bo)
    assert listed(memory) == []


def test_a_deleted_skill_does_not_come_back_from_the_queue(memory: MemoryRuntime) -> None:
    skill = {"target": "procedural", "topic": "pump"}
    assert said(memory, "operator", "Stop the pump.", **skill) == ("accepted", "created")
    assert said(memory, "host", "Start the pump.", **skill) == GONE
    memory.delete_runtime_skill(name="pump")
    assert memory.get_runtime_skill(name="pump").procedure == "Start the pump."
    memory.delete_runtime_skill(name="pump")
    assert said(memory, "user_asserted", "start the PUMP.", **skill) == GONE


def test_who_may_not_see_a_removed_private_fact_is_judged_as_if_it_had_never_been(memory: MemoryRuntime) -> None:
    mutate(memory, "delete", learn(memory, visibility="private"), view="raw_owner")
    assert said(memory, "host", KEY, privacy="subject_private") == GONE
    assert said(another(memory), "host", KEY) == ("accepted", "created")


def test_what_expired_is_let_in_by_no_deletion(tmp_path: Path) -> None:
    days = 0
    start = 1_750_000_000_000_000
    with open_runtime(tmp_path / "beetle.db", now=lambda: start + days * 86_400_000_000) as memory:
        strong = learn(memory, authority="operator")
        assert said(memory, "host", "The spare key is with Bo.") == GONE
        days = 400
        mutate(memory, "delete", strong)
        assert listed(memory) == []


def test_a_removed_value_is_kept_as_a_digest_that_the_file_alone_does_not_explain(memory: MemoryRuntime) -> None:
    mutate(memory, "delete", learn(memory))
    store = store_of(memory)
    with store.read() as tx:
        rows = list(tx.rows("SELECT digest, visibility, authority FROM removed_value"))
    assert [row[1:] for row in rows] == [("shared", "operator")] * 2
    own = removed._keys(invocation_of(memory))
    assert len(own) == 2 and own[1] == invocation_of(memory).key
    by_file_alone = {removed._digest(invocation_of(memory), own[1], topic, KEY) for topic in ("spare key", "")}
    assert not by_file_alone & {row[0] for row in rows}


def test_without_an_identity_what_is_removed_stays_removed(tmp_path: Path) -> None:
    path = tmp_path / "beetle.db"
    with open_runtime(path) as memory:
        (tmp_path / "beetle.db.identity").rename(tmp_path / "away")
        mutate(memory, "delete", learn(memory))
        assert said(memory, "host", KEY) == GONE
        (tmp_path / "away").rename(tmp_path / "beetle.db.identity")
        assert said(memory, "host", KEY) == GONE


def turn(memory: MemoryRuntime, turn_id: str, role: str, content: str = KEY) -> str:
    """Ref of a message that was said."""
    message = {"message_id": f"m-{turn_id}", "role": role, "content": content}
    given = {"turn_id": turn_id, "at": "2026-03-02T08:12:00Z", "messages": [message]}
    memory.commit_transcript(conversation={"channel_id": "local", "conversation_id": "talk"}, turns=[given])
    return f"evidence:local/talk/{turn_id}/m-{turn_id}"


UNSAID = ("deferred", "needs_assertion")


@pytest.mark.parametrize("target", ["long_term", "shared_fact", "procedural"])
def test_a_user_s_word_from_another_cites_a_message_of_the_user(memory: MemoryRuntime, target: str) -> None:
    worker = another(memory)
    refs = {role: turn(memory, role, role) for role in ("user", "assistant", "tool")}
    for cited in ([], [refs["assistant"]], [refs["tool"]], [refs["tool"], refs["assistant"]]):
        assert said(worker, "user_asserted", KEY, target=target, evidence_refs=cited) == UNSAID
    assert listed(memory) == []
    assert said(worker, "user_asserted", KEY, target=target, evidence_refs=[refs["user"]]) == ("accepted", "created")


def test_an_operator_and_a_host_answer_for_what_they_write(memory: MemoryRuntime) -> None:
    assert said(memory, "user_asserted", KEY) == ("accepted", "created")
    assert said(another(memory), "host", "The pump hums.", "pump") == ("accepted", "created")


def test_what_another_left_uncited_is_not_let_in_by_an_operator_who_lifts_a_policy(memory: MemoryRuntime) -> None:
    worker = another(memory)
    memory.long_term_policy(action="pause")
    assert said(worker, "user_asserted", KEY) == ("deferred", "policy_paused")
    assert said(memory, "user_asserted", "The pump hums.", "pump") == ("deferred", "policy_paused")
    assert memory.long_term_policy(action="resume").rejudged == 1
    assert list(recalled(memory, "pump spare key").values()) == ["The pump hums."]


def test_nothing_that_an_assistant_claims_is_believed_for_what_it_cites(memory: MemoryRuntime) -> None:
    refs = [turn(memory, role, role) for role in ("user", "tool", "assistant")]
    other = turn(memory, "other", "user", "I hum.")
    assert said(memory, "assistant_claimed", KEY, evidence_refs=[other]) == ("deferred", "evidence_does_not_bear")
    for caller in (memory, another(memory)):
        for cited in ([], *([each] for each in refs), refs):
            assert said(caller, "assistant_claimed", KEY, evidence_refs=cited) == UNSAID
    assert listed(memory) == []
    assert said(memory, "tool_observed", KEY, evidence_refs=refs[1:2]) == ("accepted", "created")
    # What waited for that is decided by it; what its evidence does not bear waits on.
    assert memory.inspect().counts.waiting_candidates == 1
