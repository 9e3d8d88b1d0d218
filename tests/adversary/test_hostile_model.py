"""A model that rewrites what was said is believed in nothing: what its messages do not bear waits for a person."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle import MemoryRuntime
from tests.adversary.test_guesses import DEVICE
from tests.sdk.answering import CONVERSATION, OWNER, ModelServer, Plain, item, noted, opened, runtime, says, turn

SAID = (
    "I'm Rita. I love fish, and I am allergic to nuts.\nTom pays Rita 30 euros on 3 May.\nI don't like coffee.\n"
    "Ich mag keinen Käse.\n我不喜欢奶酪。"
)
TRUE = (
    "The user is called Rita.", "The user loves fish.", "The user is allergic to nuts.",
    "Tom pays Rita 30 euros on 3 May.", "The user dislikes coffee.", "Der Nutzer mag keinen Käse.", "用户不喜欢奶酪。",
)  # fmt: skip
REWRITTEN = (
    "The user hates fish.", "The user can eat nuts.", "The user is not allergic to nuts.", "The user is called Tom.",
    "Rita pays Tom 30 euros on 3 May.", "Tom pays Rita 300 euros on 3 May.", "Tom pays Rita 30 euros on 4 May.",
    "Tom owes Rita 30 euros on 3 May.", "The user likes coffee.", "Der Nutzer mag Käse.", "用户喜欢奶酪。",
    "Tom is allergic to nuts.", "The user loves fish and Tom.", "The user loves nuts.",
)  # fmt: skip
WAITS = ("deferred", "evidence_does_not_bear")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


@pytest.fixture
def memory(server: ModelServer) -> Iterator[MemoryRuntime]:
    store = opened(server.model())
    running = runtime(store)
    running.commit_transcript(
        conversation=CONVERSATION, turns=[turn("t1", SAID, says("assistant", "You hate fish. Tom likes coffee."))]
    )
    yield running
    store.store.close()


def facts(memory: MemoryRuntime) -> set[str | None]:
    return {each.content for each in memory.list_long_term().records}


def test_what_was_said_is_believed_and_every_rewriting_of_it_waits(memory: MemoryRuntime, server: ModelServer) -> None:
    server.answer = noted(*(item(each, "t1.0") for each in (*TRUE, *REWRITTEN)))
    report = memory.maintain(conversation=CONVERSATION)
    told = [(each.outcome, each.reason) for each in report.outcomes]
    assert told == [("accepted", "created")] * len(TRUE) + [WAITS] * len(REWRITTEN)
    assert facts(memory) == set(TRUE)
    assert {fact.authority for fact in memory.list_long_term().records} == {"user_asserted"}
    (waiting,) = memory.governance_report().deferred.waiting
    assert (waiting.reason, waiting.count) == ("evidence_does_not_bear", len(REWRITTEN))


def test_an_assistant_s_words_cited_beside_the_user_s_make_no_assertion(
    memory: MemoryRuntime, server: ModelServer
) -> None:
    server.answer = noted(item("The user hates fish.", "t1.0", "t1.1"), item("Tom likes coffee.", "t1.1"))
    outcomes = memory.maintain(conversation=CONVERSATION).outcomes
    assert [each.reason for each in outcomes] == ["needs_assertion", "needs_assertion"]
    assert facts(memory) == set()


def candidate(content: str, authority: str, message_id: str, **more: str) -> Plain:
    return {
        "candidate_id": content[:20], "authority": authority, "target": "long_term", "privacy": "shared_with_subject",
        "content": content, "evidence_refs": [f"evidence:local/c1/t1/{message_id}"], **more,
    }  # fmt: skip


@pytest.mark.parametrize("authority", ["user_asserted", "assistant_claimed", "tool_observed", "host"])
def test_a_candidate_is_held_to_the_same_rule(memory: MemoryRuntime, authority: str) -> None:
    given = [candidate(each, authority, "t1.0") for each in (*TRUE, *REWRITTEN)]
    told = [(each.outcome, each.reason) for each in memory.write(kind="candidates", candidates=given).outcomes]
    borne = ("deferred", "needs_assertion") if authority == "assistant_claimed" else ("accepted", "created")
    assert told == [borne] * len(TRUE) + [WAITS] * len(REWRITTEN)


def test_what_a_user_asserted_is_said_by_a_user(memory: MemoryRuntime) -> None:
    given = candidate("Tom likes coffee.", "user_asserted", "t1.1")
    (outcome,) = memory.write(kind="candidates", candidates=[given]).outcomes
    assert (outcome.outcome, outcome.reason) == WAITS


def test_an_operator_answers_for_what_it_says(memory: MemoryRuntime) -> None:
    given = candidate("The user hates fish.", "operator", "t1.0")
    assert memory.write(kind="candidates", candidates=[given]).accepted == 1


def test_an_extraction_is_held_to_the_same_rule(memory: MemoryRuntime) -> None:
    items = [
        {"kind": "fact", "topic": "", "content": each, "confidence": 1, "evidence_refs": ["evidence:local/c1/t1"]}
        for each in (*TRUE, *REWRITTEN)
    ]
    report = memory.write(kind="long_term_extraction", extraction={"items": items, "extractor": "x"})
    found = {(each.outcome, each.reason) for each in report.outcomes[: len(TRUE)]}
    assert found == {("accepted", "created")}
    rewritten = report.outcomes[len(TRUE) :]
    # "The user hates fish" and "Tom likes coffee" are the assistant's words in that turn, and assert nothing.
    assert {each.outcome for each in rewritten} == {"deferred"}
    assert facts(memory) == set(TRUE)


def test_a_waiting_item_stays_out_of_recall_and_projection(memory: MemoryRuntime, server: ModelServer) -> None:
    server.answer = noted(item("The user sells heliotropes.", "t1.0"))
    memory.maintain(conversation=CONVERSATION)
    assert memory.recall(query="heliotropes").hits == ()
    assert "heliotropes" not in str(memory.project(user_query="heliotropes").system_memory_block)


def test_whether_a_guess_is_right_is_not_told_of_a_message_that_may_not_be_seen(memory: MemoryRuntime) -> None:
    secret = says("user", "I am afraid of water.", visibility="private")
    memory.commit_transcript(conversation=CONVERSATION, turns=[turn("t2", secret)])
    blind = runtime(
        memory._opened._opened, DEVICE._replace(owner_id="ana", capabilities=OWNER.capabilities - {"private.read"})
    )
    guesses = ("The user is afraid of water.", "The user is afraid of dogs.")
    told = [
        blind.write(kind="candidates", candidates=[
            {**candidate(each, "user_asserted", "x"), "privacy": "subject_private", "topic": each,
             "evidence_refs": ["evidence:local/c1/t2/t2.0"]}
        ]).outcomes[0]
        for each in guesses
    ]  # fmt: skip
    assert {(each.outcome, each.reason) for each in told} == {WAITS}


def test_who_sees_nothing_private_settles_nothing_private(memory: MemoryRuntime) -> None:
    waiting = {**candidate("sings", "assistant_claimed", "t1.1"), "privacy": "subject_private", "topic": "song"}
    private = {**waiting, "evidence_refs": []}
    memory.write(kind="candidates", candidates=[private])
    blind = runtime(memory._opened._opened, DEVICE._replace(owner_id="ana", capabilities=OWNER.capabilities))
    for content in ("hums", "sings"):
        claim = {**private, "content": content, "authority": "tool_observed", "privacy": "shared_with_subject"}
        assert blind.write(kind="candidates", candidates=[claim]).accepted == 1
        assert [each.count for each in memory.governance_report().deferred.waiting] == [1]
    assert "sings" not in {each.content for each in memory.list_long_term(view="raw_owner").records if each.evidence}
