"""memory.remember: its words become evidence in any case, and the fact is judged like any candidate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError, Conflict, InvalidRequest, PrivacyDenied
from beetle.contracts.governance import Reason
from beetle.contracts.remembering import REASONS, MemoryRememberReport
from beetle.runtime.pipeline.invocation import Call
from tests.building import CONVERSATION, turn
from tests.governance.judging import DAY_US, START_US, JudgedStore, caller
from tests.store.conftest import store_of


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(":memory:", profile="dev-full") as opened:
        yield opened


def excerpts(memory: MemoryRuntime, query: str, plane: Any) -> list[str | None]:
    return [hit.excerpt for hit in memory.recall(query, planes=[plane]).hits]


def remember(memory: MemoryRuntime, text: str, **more: Any) -> MemoryRememberReport:
    return memory.remember(text, **more)


def test_the_users_words_make_a_fact_that_cites_them(memory: MemoryRuntime) -> None:
    report = remember(
        memory, "Mara prefers tea.", said="I prefer tea.", speaker="Mara", topic="drink", kind="preference"
    )
    assert (report.outcome, report.reason, report.authority) == ("accepted", "created", "user_asserted")
    assert report.ref is not None and report.waiting_id is None
    detail = memory.get_long_term(ref=report.ref)
    fact = detail.record
    assert (fact.content, fact.topic, fact.kind) == ("Mara prefers tea.", "drink", "preference")
    assert [each.evidence for each in detail.derived_refs] == [report.evidence_ref]
    assert excerpts(memory, "tea", "evidence") == ["I prefer tea."]
    assert excerpts(memory, "tea", "long_term") == ["Mara prefers tea."]


def test_a_claim_of_the_assistant_waits_and_its_words_are_recalled(memory: MemoryRuntime) -> None:
    report = remember(memory, "Mara prefers tea.")
    assert (report.outcome, report.reason, report.authority) == ("waiting", "needs_assertion", "assistant_claimed")
    assert [each.waiting_id for each in memory.list_waiting(what="candidates").candidates] == [report.waiting_id]
    assert excerpts(memory, "tea", "evidence") == ["Mara prefers tea."]
    assert excerpts(memory, "tea", "long_term") == []
    # The user says so: what waited for it is decided with it, and the revision that is told can be changed.
    kept = remember(memory, "Mara prefers tea.", said="Mara prefers tea.")
    assert (kept.outcome, kept.reason) == ("accepted", "created")
    detail = memory.get_long_term(ref=kept.ref)
    assert len(detail.derived_refs) == 2
    assert kept.revision == detail.record.revision == 2


@pytest.mark.parametrize(
    ("policy", "said", "outcome", "reason"),
    [
        ({}, "I hate fish.", "waiting", "evidence_does_not_bear"),
        ({"action": "suppress", "topic": "fish"}, "I love fish.", "refused", "policy_suppressed"),
        ({"action": "pause"}, "I love fish.", "waiting", "policy_paused"),
    ],
)
def test_no_rule_of_governance_is_passed_by(
    memory: MemoryRuntime, policy: dict[str, Any], said: str, outcome: str, reason: str
) -> None:
    if policy:
        memory.long_term_policy(**policy)
    report = remember(memory, "The user loves fish.", said=said, topic="fish")
    assert (report.outcome, report.reason, report.ref) == (outcome, reason, None)
    assert (report.waiting_id is not None) == (outcome == "waiting")
    assert excerpts(memory, "fish", "evidence") == [said], "the words are evidence in any case"
    assert excerpts(memory, "fish", "long_term") == []


def test_a_later_word_on_a_topic_replaces_the_earlier_and_the_same_is_known(memory: MemoryRuntime) -> None:
    first = remember(memory, "I like tea.", said="I like tea.", topic="drink")
    again = remember(memory, "I like tea.", said="I like tea.", topic="drink")
    assert (again.outcome, again.reason, again.ref) == ("accepted", "unchanged", first.ref)
    assert again.evidence_ref != first.evidence_ref, "what was said twice is there twice"
    later = remember(memory, "I like coffee.", said="I like coffee.", topic="drink")
    assert (later.reason, later.superseded_ref) == ("superseded", first.ref)


def test_the_word_of_an_operator_stands_above_it() -> None:
    place = JudgedStore()
    claim = {"candidate_id": "c", "authority": "operator", "target": "long_term", "privacy": "public_runtime",
             "topic": "line", "content": "The pump is on line 2."}  # fmt: skip
    place.judge(claim)
    worker = {"kind": "principal", "name": "worker"}
    asked = {"text": "The pump is on line 3.", "said": "The pump is on line 3.", "topic": "line"}
    report = place.call("memory.remember", asked, **worker)
    assert (report["outcome"], report["reason"]) == ("waiting", "weaker_authority")
    assert [each["content"] for each in place.facts()] == ["The pump is on line 2."]


def test_each_caller_has_a_conversation_for_the_day_which_no_chat_stands_for() -> None:
    place = JudgedStore()
    talk = {"conversation": CONVERSATION, "turns": [turn("t1", "Hello.")]}
    place.call("transcript.commit", talk)
    asked = {"text": "Mara prefers tea."}
    names = [place.call("memory.remember", asked, name=name)["conversation"]["conversation_id"] for name in ("a", "b")]
    place.now = START_US + DAY_US
    names.append(place.call("memory.remember", asked, name="a")["conversation"]["conversation_id"])
    assert names == ["remembered-a-2025-06-15", "remembered-b-2025-06-15", "remembered-a-2025-06-16"]
    current = place.call("memory.project", {"user_query": "tea"})
    assert "Hello." in current["system_memory_block"], "the talk that goes on is still the current one"
    long_named = place.call("memory.remember", asked, name="x" * 300)
    assert len(long_named["conversation"]["conversation_id"]) <= 256


def test_a_conversation_that_is_named_gets_the_words(memory: MemoryRuntime) -> None:
    named = remember(memory, "Mara prefers tea.", conversation=CONVERSATION)
    assert named.evidence_ref.startswith("evidence:local/talk/")
    scoped = memory.call(
        "memory.remember", {"text": "Mara has a boat."}, scope=WireScope(channel="chat", conversation_id="42")
    )
    assert isinstance(scoped, MemoryRememberReport)
    assert (scoped.conversation.channel_id, scoped.conversation.conversation_id) == ("chat", "42")
    (said,) = memory.replay_transcript(conversation=CONVERSATION, view="host_ui").turns
    assert [(each.role, each.content) for each in said.messages] == [("assistant", "Mara prefers tea.")]
    assert said.messages[0].actor is not None and said.messages[0].actor.agent_id == "agent-main"


def test_a_key_makes_it_happen_once(memory: MemoryRuntime) -> None:
    asked = {"text": "I like tea.", "said": "I like tea."}
    first = memory.call("memory.remember", asked, idempotency_key="k")
    head = store_of(memory).head
    assert memory.call("memory.remember", asked, idempotency_key="k") == first
    assert store_of(memory).head == head
    assert len(excerpts(memory, "tea", "evidence")) == 1
    with pytest.raises(Conflict):
        memory.call("memory.remember", {**asked, "topic": "drink"}, idempotency_key="k")


def test_it_is_one_write_all_or_nothing(memory: MemoryRuntime) -> None:
    requests = [
        {"op": "memory.remember", "args": {"text": "I like tea.", "said": "I like tea."}},
        {"op": "skill.edit", "args": {"name": "none", "edit_reason": "r", "title": "t"}},
    ]
    with pytest.raises(BeetleError):
        memory.batch(requests=requests)
    assert excerpts(memory, "tea", "evidence") == excerpts(memory, "tea", "long_term") == []


@pytest.mark.parametrize("field", ["text", "said", "topic"])
def test_a_secret_is_refused_and_nothing_is_written(memory: MemoryRuntime, field: str) -> None:
    asked = {"text": "I like tea.", "said": "I like tea.", field: "My password is hunter2-horse-battery."}
    with pytest.raises(PrivacyDenied) as caught:
        memory.remember(**asked)
    assert caught.value.details["path"] == f"$.args.{field}"
    assert memory.list_conversations().conversations == ()


def test_a_speaker_without_words_is_refused(memory: MemoryRuntime) -> None:
    with pytest.raises(InvalidRequest):
        memory.remember("Mara prefers tea.", speaker="Mara")


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(Reason.__args__)  # type: ignore[attr-defined]


def test_a_note_is_one_turn_and_no_fact(memory: MemoryRuntime) -> None:
    (committed,) = memory.note("The pump is loud.", conversation="workshop", speaker="Mara").turns
    (there,) = memory.replay_transcript(conversation={"conversation_id": "workshop"}, view="host_ui").turns
    (message,) = there.messages
    assert (there.turn_id, message.role, message.content) == (committed.turn_id, "user", "The pump is loud.")
    assert message.actor is not None and message.actor.speaker == "Mara"
    memory.note("Clean the strainer.", conversation=CONVERSATION, role="assistant")
    memory.note("It rains.")
    names = {each.conversation_id for each in memory.list_conversations().conversations}
    assert {"workshop", "talk"} < names
    assert [each.startswith("notes-20") for each in names - {"workshop", "talk"}] == [True]
    assert memory.list_long_term().records == ()


def test_the_short_words_take_their_first_field_without_its_name(memory: MemoryRuntime) -> None:
    memory.remember("The spare key hangs by the door.", said="The spare key hangs by the door.")
    assert len(memory.recall("spare key", limit=1).hits) == 1
    assert "spare key" in memory.project("spare key", system_max_len=600).system_memory_block
    shown = memory.forget("spare key", dry_run=True)
    assert (shown.counts["turns"], shown.counts["facts"]) == (1, 1)
    assert memory.forget("spare key", token=shown.token).changed
    assert memory.recall("spare key").hits == ()


def test_a_principal_needs_the_capability_to_write() -> None:
    place = JudgedStore()
    reader = caller("owner", kind="principal", name="reader")
    assert "write" in reader.capabilities
    call = Call("memory.remember", {"text": "x"}, reader._replace(capabilities=frozenset({"recall"})), WireScope())
    with pytest.raises(BeetleError) as caught:
        place.opened.dispatcher.dispatch(call)
    assert caught.value.key == "forbidden"
