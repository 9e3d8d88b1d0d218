"""What waits is listed as far as a caller may see it, and decided under the caller's own authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
)
from beetle.runtime.areas.facts import facts
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import jobs
from beetle.store.engine.write_transaction import WriteTransaction
from tests.building import turn
from tests.governance.learned import DRAFT, another, listed, recalled, within
from tests.governance.queued import CANARY, OWNER, WHY, decide, dropped, refused, said, waiting
from tests.store.conftest import assert_clean, bytes_of, open_runtime, store_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened
        assert_clean(opened)


# Listing.


def test_what_waits_is_told_with_what_it_says_what_it_cites_and_why(memory: MemoryRuntime) -> None:
    message = {"message_id": "m1", "role": "assistant", "content": "I believe Mara likes rain."}
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", message)])
    refs = ["evidence:local/c/t1/m1"]
    outcome = said(memory, "Mara likes rain.", topic="rain", evidence_refs=refs, candidate_id="mine")
    (row,) = waiting(memory)
    assert row.waiting_id == outcome.waiting_id
    assert (row.candidate_id, row.topic, row.content, row.reason) == (
        "mine", "rain", "Mara likes rain.", "needs_assertion",
    )  # fmt: skip
    assert (row.authority, row.level, row.evidence_refs) == ("assistant_claimed", "shared", tuple(refs))
    (cited,) = row.messages
    assert (cited.ref, cited.role, cited.excerpt) == (refs[0], "assistant", message["content"])
    assert row.since < row.expires_at and row.by == "embedded:test"
    memory.request_transcript_lifecycle(
        conversation={"conversation_id": "c"}, action="mask", turn_ids=["t1"], reason="a test asks"
    )
    assert waiting(memory)[0].messages[0].excerpt is None
    audited = waiting(memory, view="operator_audit")[0]
    assert (audited.topic, audited.content, audited.messages[0].excerpt) == (None, None, None)


def test_private_candidates_are_told_to_who_may_see_them_and_sealed_ones_to_their_owner_alone(
    memory: MemoryRuntime,
) -> None:
    said(memory, "Mara likes rain.")
    said(memory, "Mara fears rain.", privacy="subject_private")
    said(memory, "Mara dreams of rain.", target="private_garden", privacy="subject_private")
    worker = another(memory)
    agent = another(memory, name="agent", agent="agent-a")
    for caller in (worker, memory):
        assert [each.content for each in waiting(caller)] == ["Mara likes rain."]
    own = waiting(agent, view="model_context")
    assert [each.level for each in own] == ["shared", "private"]
    every = waiting(memory, **OWNER)
    assert [each.content for each in every] == ["Mara likes rain.", "Mara fears rain.", "Mara dreams of rain."]
    assert [each.level for each in every] == ["shared", "private", "sealed"]
    assert (
        memory.list_waiting(what="candidates", **OWNER).total == 3 and worker.list_waiting(what="candidates").total == 1
    )
    for hidden in every[1:]:
        error = refused(NotFound, worker, "accept", hidden.waiting_id)
        assert str(error) == str(refused(NotFound, worker, "accept", "w-none")).replace("w-none", hidden.waiting_id)


def test_nobody_sees_or_decides_what_waits_for_another_owner(memory: MemoryRuntime) -> None:
    outcome = said(memory, "Mara likes rain.")
    stranger = another(memory, name="stranger", owner="bob")
    assert stranger.list_waiting().total == 0
    refused(NotFound, stranger, "reject", outcome.waiting_id)
    assert len(waiting(memory)) == 1


def test_the_list_is_paged_through_candidates_and_jobs(memory: MemoryRuntime) -> None:
    for number in range(5):
        said(memory, f"Mara likes rain {number}.", topic=f"rain {number}")
    for number in range(3):
        leave(memory, f"talk-{number}")
    seen: list[str] = []
    cursor = None
    while True:
        report = memory.list_waiting(limit=2, cursor=cursor)
        assert report.total == 8
        seen += [each.content or "" for each in report.candidates]
        seen += [each.conversation.conversation_id for each in report.jobs if each.conversation is not None]
        cursor = report.next_cursor
        if not report.has_more:
            break
    assert seen == [*(f"Mara likes rain {number}." for number in range(5)), *(f"talk-{number}" for number in range(3))]
    assert memory.list_waiting(reason="weaker_authority").total == 0
    assert memory.list_waiting(what="jobs").candidates == ()


# Deciding.


def test_accepting_makes_the_fact_the_word_of_who_accepts(memory: MemoryRuntime) -> None:
    outcome = said(memory, "Mara likes rain.", topic="rain")
    (foreseen,) = decide(memory, "accept", outcome.waiting_id, dry_run=True)
    assert (foreseen.outcome, foreseen.reason) == ("accepted", "created") and len(waiting(memory)) == 1
    report = memory.decide_waiting(ids=[outcome.waiting_id], decision="accept", reason=WHY)
    (made,) = report.outcomes
    assert (made.outcome, made.reason, report.decided, report.erasure) == ("accepted", "created", 1, "done")
    detail = memory.get_long_term(ref=made.ref)
    assert detail.record.authority == "operator"
    assert [(each.by, each.reason) for each in detail.revisions] == [("embedded:test", WHY)]
    assert waiting(memory) == () and set(recalled(memory, "rain")) == {made.ref}
    assert memory.verify_store(receipt=report.receipt).receipt.valid
    refused(NotFound, memory, "accept", outcome.waiting_id)


def test_who_is_no_operator_accepts_by_the_rules_for_a_user_s_word(memory: MemoryRuntime) -> None:
    outcome = said(memory, "Mara likes rain.", topic="rain")
    worker = another(memory)
    (still,) = decide(worker, "accept", outcome.waiting_id)
    assert (still.outcome, still.reason) == ("deferred", "needs_assertion")
    assert [each.reason for each in waiting(memory)] == ["needs_assertion"] and listed(memory) == []
    message = {"message_id": "m1", "role": "user", "content": "Mara likes rain."}
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", message)])
    borne = said(memory, "Mara likes rain.", topic="rain", evidence_refs=["evidence:local/c/t1/m1"])
    assert borne.reason == "needs_assertion", "an assistant's claim becomes no fact by citing anything"
    made, alike = decide(worker, "accept", borne.waiting_id)
    assert (alike.id, alike.outcome, alike.reason) == (outcome.waiting_id, "accepted", "unchanged")
    assert (made.outcome, worker.get_long_term(ref=made.ref).record.authority) == ("accepted", "user_asserted")


def test_a_stronger_word_that_waits_is_not_decided_by_a_weaker_caller(memory: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    outcome = said(memory, "Mara likes rain.", "operator")
    weak = said(memory, "Mara likes snow.")
    for decision in ("accept", "reject"):
        error = refused(Forbidden, another(memory), decision, weak.waiting_id, outcome.waiting_id)
        assert (error.details["reason"], error.details["index"]) == ("weaker_authority", 1)
    assert len(waiting(memory)) == 2, "an error decides nothing"
    (still,) = decide(memory, "accept", outcome.waiting_id)
    assert (still.outcome, still.reason) == ("deferred", "policy_paused")
    memory.long_term_policy(action="resume")
    assert len(listed(memory)) == 1


def test_a_rejected_value_does_not_come_back_by_a_weaker_word(memory: MemoryRuntime, path: str) -> None:
    outcome = said(memory, f"Mara likes {CANARY}.", topic="rain")
    report = memory.decide_waiting(ids=[outcome.waiting_id], decision="reject", reason=f"about {CANARY}: a joke")
    assert (report.outcomes[0].outcome, report.outcomes[0].reason) == ("rejected", "declined")
    assert report.erasure == "done" and waiting(memory) == ()
    assert CANARY.encode() not in bytes_of(path)
    assert memory.verify_store(receipt=report.receipt).receipt.valid
    again = said(memory, f"Mara likes {CANARY}.", "tool_observed", topic="rain")
    assert (again.outcome, again.reason) == ("deferred", "weaker_authority")
    assert said(memory, f"Mara likes {CANARY}.", "operator", topic="rain").reason == "created"


def test_several_are_decided_at_once_or_none(memory: MemoryRuntime) -> None:
    ids = [said(memory, f"Mara likes rain {number}.", topic=f"rain {number}").waiting_id for number in range(3)]
    error = refused(NotFound, memory, "accept", *ids, "w-none")
    assert (error.details["index"], error.details["path"]) == (3, "$.args.ids[3]") and len(waiting(memory)) == 3
    assert [each.outcome for each in decide(memory, "accept", *ids)] == ["accepted"] * 3
    for wrong in ({"ids": [ids[0], ids[0]], "decision": "accept"}, {"ids": ids, "decision": "reject"}):
        with pytest.raises(InvalidRequest):
            memory.decide_waiting(**wrong)


def test_a_dry_run_foresees_what_the_same_request_comes_to(memory: MemoryRuntime) -> None:
    old = said(memory, "Zed cooks rice.", topic="cook").waiting_id
    same = said(memory, "Zed cooks rice.", topic="cook", candidate_id="same").waiting_id
    new = said(memory, "Zed cooks pasta.", topic="cook").waiting_id
    message = {"message_id": "m1", "role": "user", "content": "The pot is on the stove."}
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", message)])
    for ids in ([old], [new, old], [old, new, same]):
        before = (store_of(memory).head, waiting(memory))
        foreseen = memory.decide_waiting(ids=ids, decision="accept", dry_run=True)
        assert (store_of(memory).head, waiting(memory)) == before and listed(memory) == []
        assert [each.id for each in foreseen.outcomes[: len(ids)]] == ids
        assert not any(each.ref or each.revision for each in foreseen.outcomes)
        assert (foreseen.receipt, foreseen.erasure) == (None, None)
    done = memory.decide_waiting(ids=ids, decision="accept")
    told = {each.id: (each.outcome, each.reason) for each in done.outcomes}
    assert told == {each.id: (each.outcome, each.reason) for each in foreseen.outcomes}
    assert (told[old], told[new]) == (("accepted", "created"), ("rejected", "superseded"))
    assert told[same] == ("accepted", "unchanged")
    assert done.decided == foreseen.decided == 3 and waiting(memory) == ()


def test_a_rehearsal_undoes_its_own_writes_and_no_other_of_its_transaction(memory: MemoryRuntime) -> None:
    def run(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
        facts.learn(invocation, tx, space, DRAFT._replace(topic="before", content="A heron stands there."))
        logged = len(tx.logged)
        with pytest.raises(NotFound), tx.rehearsal():
            facts.learn(invocation, tx, space, DRAFT._replace(topic="within", content="A stork stands there."))
            raise NotFound(kind="bird", name="stork", listing="")
        assert len(tx.logged) == logged
        facts.learn(invocation, tx, space, DRAFT._replace(topic="behind", content="A crane stands there."))

    within(memory, run)
    assert set(recalled(memory, "stands").values()) == {"A heron stands there.", "A crane stands there."}


def test_what_is_decided_besides_is_told_as_far_as_the_view_shows_it(memory: MemoryRuntime) -> None:
    for view in ({}, OWNER):
        shared, gone, hidden = (
            said(memory, f"Mara {each}.", topic=f"sport {view}", privacy=privacy).waiting_id
            for each, privacy in (("rows", "public_runtime"), ("runs", "public_runtime"), ("rides", "subject_private"))
        )
        report = memory.decide_waiting(ids=[shared], decision="accept", **view)
        besides = [gone, hidden] if view else [gone]
        assert [each.id for each in report.outcomes] == [shared, *besides] and report.decided == 1 + len(besides)
        assert {(each.outcome, each.reason) for each in report.outcomes[1:]} == {("rejected", "superseded")}
        assert {each["waiting_id"] for each in dropped(memory)} >= {gone, hidden}


def test_what_is_sealed_is_accepted_by_its_owner(memory: MemoryRuntime) -> None:
    outcome = said(memory, "Mara dreams of rain.", target="private_garden", privacy="subject_private")
    assert memory.list_private().items[0].state == "waiting"
    (made,) = decide(memory, "accept", outcome.waiting_id, **OWNER)
    assert (made.outcome, made.record_id) == ("accepted", outcome.record_id)
    assert memory.list_private().items[0].state == "kept"


# Jobs.


def leave(memory: MemoryRuntime, conversation: str = "talk") -> str:
    message = {"message_id": "m1", "role": "user", "content": "I live in Porto."}
    report = memory.finalize_turn_and_maintain(conversation={"conversation_id": conversation}, turn=turn("t1", message))
    assert report.deferred_job_id is not None
    return report.deferred_job_id


def fail(memory: MemoryRuntime, job_id: str) -> None:
    """Have all attempts of a job come to nothing."""

    def end(tx: Any) -> None:
        job = jobs.find(tx, job_id)
        assert job is not None
        jobs.put_off(tx, job, tx.now, reason="model_timeout", attempts=8, not_before=tx.now)
        jobs.end(tx, job, tx.now, "failed", "model_timeout")

    store_of(memory).write(end)


def test_a_failed_job_is_told_with_its_conversation_and_error_and_can_be_retried(memory: MemoryRuntime) -> None:
    job_id = leave(memory)
    fail(memory, job_id)
    (row,) = memory.list_waiting(what="jobs").jobs
    assert (row.job_id, row.state, row.error, row.attempts, row.due_at) == (job_id, "failed", "model_timeout", 8, None)
    assert row.conversation is not None and row.conversation.conversation_id == "talk"
    assert decide(memory, "retry", job_id, dry_run=True)[0].outcome == "retried"
    assert memory.list_waiting(what="jobs").jobs[0].state == "failed"
    assert decide(memory, "retry", job_id)[0].outcome == "retried"
    (row,) = memory.list_waiting(what="jobs").jobs
    assert (row.state, row.attempts) == ("waiting", 0) and row.due_at is not None
    refused(NotFound, memory, "retry", "j-none")
    refused(NotFound, another(memory, name="bob", owner="bob"), "retry", job_id)
    refused(Forbidden, another(memory), "retry", job_id)


def test_a_job_whose_work_is_left_already_is_not_retried(memory: MemoryRuntime) -> None:
    first = leave(memory)
    fail(memory, first)
    message = {"message_id": "m2", "role": "user", "content": "I live in Faro."}
    later = memory.finalize_turn_and_maintain(conversation={"conversation_id": "talk"}, turn=turn("t2", message))
    error = refused(Conflict, memory, "retry", first)
    assert error.details["job_id"] == later.deferred_job_id
