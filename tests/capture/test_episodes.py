"""Episodes, agents and the intent of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from tests.building import message, talk, turn
from tests.toc.conftest import Plain, ask, event, open_memory

DAY_MS = 86_400_000
MONDAY = 1_706_486_400_000  # 2024-01-29
CANARY = "zanzibarquartz"


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryRuntime]:
    with open_memory() as running:
        yield running


def refused(memory: MemoryRuntime, op: str, args: Plain, **scope: Any) -> str:
    with pytest.raises(BeetleError) as caught:
        ask(memory, op, args, **scope)
    assert caught.value.hint
    return caught.value.key


def begun(memory: MemoryRuntime, task: str, **more: Any) -> str:
    return ask(memory, "episode.start", {"task": task, **more})["episode_id"]


def similar(memory: MemoryRuntime, query: str, **more: Any) -> tuple[Plain, ...]:
    return ask(memory, "episode.similar", {"query": query, **more})["episodes"]


def test_an_episode_is_begun_recorded_completed_and_found(memory: MemoryRuntime) -> None:
    name = begun(
        memory, "Move the blog to the new server", plan=["copy the files", "change the name"], agent_id="mover"
    )
    action = {
        "action_type": "rsync",
        "input": "blog/ new:/srv",
        "result_status": "failure",
        "result_detail": "no route",
    }
    assert ask(memory, "episode.record", {"episode_id": name, "action": action})["action_count"] == 1
    assert ask(memory, "episode.record", {"episode_id": name, "action": {"action_type": "wait"}})["action_count"] == 2
    (going,) = similar(memory, "move a blog")
    assert (going["status"], going["outcome_score"], going["action_count"]) == ("in_progress", None, 2)
    ended = {
        "episode_id": name,
        "outcome_score": 0.45,
        "lessons_learned": ["lower the TTL first"],
        "failure_modes": ["DNS"],
    }
    report = ask(memory, "episode.complete", ended)
    assert (report["completed"], report["value_score"], report["episodes_pruned"]) == (True, 0.8, 0)
    (found,) = similar(memory, "TTL of the blog")
    assert (found["episode_id"], found["task"], found["status"]) == (
        name,
        "Move the blog to the new server",
        "completed",
    )
    assert (found["outcome_score"], found["value_score"], found["agent"]) == (0.45, 0.8, "mover")
    assert (found["lessons_learned"], found["failure_modes"]) == (("lower the TTL first",), ("DNS",))
    assert found["similarity_score"] == 1.0
    said = ask(memory, "transcript.replay", {"conversation": found["conversation"], "view": "host_ui"})["turns"]
    assert [len(each["messages"]) for each in said] == [3, 2, 1, 3]
    assert ask(memory, "memory.recall", {"query": "no route rsync"})["hits"][0]["conversation"] == found["conversation"]


def test_what_has_ended_or_never_began_takes_no_more(memory: MemoryRuntime) -> None:
    name = begun(memory, "Paint the shed")
    ask(memory, "episode.complete", {"episode_id": name, "failed": True})
    assert similar(memory, "shed")[0]["status"] == "failed"
    more = {"episode_id": name, "action": {"action_type": "paint"}}
    assert refused(memory, "episode.record", more) == "conflict"
    assert refused(memory, "episode.complete", {"episode_id": name}) == "conflict"
    assert refused(memory, "episode.record", {**more, "episode_id": "episode-0"}) == "not_found"
    ask(
        memory,
        "transcript.commit",
        {**talk(turn("t1", "no episode")), "conversation": {"channel_id": "episode", "conversation_id": "e1"}},
    )
    assert refused(memory, "episode.complete", {"episode_id": "e1"}) == "not_found"


def test_the_best_match_comes_first_and_few_words_are_left_out(memory: MemoryRuntime) -> None:
    names = [begun(memory, task) for task in ("Graft the plum tree", "Water the plum tree and the pear tree daily")]
    found = similar(memory, "graft a plum tree")
    assert found[0]["episode_id"] == names[0]
    assert [each["episode_id"] for each in similar(memory, "graft a plum tree", min_score=0.9)] == names[:1]
    assert len(similar(memory, "plum", limit=1)) == 1
    assert similar(memory, "submarine") == ()


def test_a_masked_task_is_neither_shown_nor_found_and_another_owner_finds_nothing(memory: MemoryRuntime) -> None:
    name = begun(memory, f"Fetch the {CANARY}")
    ask(memory, "episode.complete", {"episode_id": name, "lessons_learned": ["bring a lamp"]})
    step = {"conversation": {"channel_id": "episode", "conversation_id": name}, "action": "mask", "reason": "a test"}
    ask(memory, "transcript.lifecycle", {**step, "turn_ids": ["task"]})
    assert similar(memory, CANARY) == ()
    (left,) = similar(memory, "lamp")
    assert (left["task"], left["lessons_learned"]) == (None, ("bring a lamp",))
    ask(memory, "transcript.lifecycle", {**step, "action": "delete_raw", "turn_ids": ["outcome"]})
    assert similar(memory, "lamp") == ()
    other = {"scope": WireScope(owner_id="owner-b")}
    assert ask(memory, "episode.similar", {"query": "shed"}, **other)["episodes"] == ()
    assert (
        refused(memory, "episode.record", {"episode_id": name, "action": {"action_type": "x"}}, **other) == "not_found"
    )


def test_what_another_door_committed_beside_an_outcome_is_no_number(memory: MemoryRuntime) -> None:
    attr = {"key": "outcome_score", "value": "nan", "target": "turn", "visibility": ["host_ui"]}
    turns = [
        turn("task", message("task", "Trim the hedgerow")),
        {**turn("outcome", message("outcome", "done")), "attrs": [attr]},
    ]
    where = {"channel_id": "episode", "conversation_id": "hedge"}
    ask(memory, "transcript.commit", {"conversation": where, "turns": turns})
    (found,) = similar(memory, "hedgerow")
    assert (found["status"], found["outcome_score"], found["value_score"]) == ("completed", None, None)


def test_agents_are_counted_by_day_and_week(memory: MemoryRuntime) -> None:
    scope = {"scope": WireScope(owner_id="owner-agents")}
    for number, (agent, at) in enumerate(
        [("ant", MONDAY), ("ant", MONDAY + DAY_MS - 1), ("bee", MONDAY + DAY_MS), ("ant", MONDAY - 1), (None, MONDAY)]
    ):
        said = {**event(f"e{number}", at, "hum", f"s{number % 2}"), **({} if agent is None else {"agent": agent})}
        ask(memory, "event.ingest", {"event": said}, **scope)
    listed = ask(memory, "agent.list", {}, **scope)["agents"]
    assert [(each["agent_id"], each["event_count"], each["session_count"]) for each in listed] == [
        ("bee", 1, 1),
        ("ant", 3, 2),
    ]
    assert (listed[1]["first_seen_ms"], listed[1]["last_seen_ms"]) == (MONDAY - 1, MONDAY + DAY_MS - 1)
    whole = {"from_ms": MONDAY - DAY_MS, "to_ms": MONDAY + DAY_MS}

    def buckets(**more: Any) -> list[tuple[int, int, str]]:
        found = ask(memory, "agent.activity", {**whole, **more}, **scope)["buckets"]
        return [((each["start_ms"] - MONDAY) // DAY_MS, each["event_count"], each["agent_id"]) for each in found]

    assert buckets() == [(-1, 1, "ant"), (0, 2, "ant"), (1, 1, "bee")]
    assert buckets(bucket="week") == [(-7, 1, "ant"), (0, 2, "ant"), (0, 1, "bee")]
    assert buckets(agent_id="bee") == [(1, 1, "bee")]
    assert ask(memory, "agent.activity", {**whole, "limit": 1}, **scope)["has_more"]
    assert ask(memory, "agent.activity", {}, **scope)["buckets"] == ()
    where = {"channel_id": "event", "conversation_id": "s0"}
    step = {"conversation": where, "action": "mask", "turn_ids": ["e2"], "reason": "a test"}
    ask(memory, "transcript.lifecycle", step, **scope)
    assert [each["agent_id"] for each in ask(memory, "agent.list", {}, **scope)["agents"]] == ["ant"]


INTENTS = {
    "what were we talking about last week?": ("explore", 0.9),
    "give me an overview of the garden": ("explore", 0.7),
    "why did we choose the blue door?": ("answer", 0.7),
    'where is the line "the key is under the pot"': ("locate", 0.9),
    "find the message about the heating": ("locate", 0.7),
    "plum tree": ("answer", 0.5),
}


@pytest.mark.parametrize("query", INTENTS)
def test_the_intent_of_a_query_follows_from_its_words(memory: MemoryRuntime, query: str) -> None:
    found = ask(memory, "memory.classify", {"query": query})
    assert (found["intent"], found["confidence"]) == INTENTS[query]
    assert all(word.strip('"') in query for word in found["matched_keywords"])


def test_a_query_tells_how_far_back_it_looks_and_a_timeout_makes_it_time_boxed(memory: MemoryRuntime) -> None:
    asked = {"query": "what happened yesterday?", "asked_at": "2026-05-17T12:00:00Z"}
    assert ask(memory, "memory.classify", asked)["lookback_ms"] == 36 * 3_600_000
    boxed = ask(memory, "memory.classify", {**asked, "timeout_ms": 200})
    assert (boxed["intent"], boxed["confidence"]) == ("time_boxed", 1.0)
    assert ask(memory, "memory.classify", {"query": "plum"})["lookback_ms"] is None
