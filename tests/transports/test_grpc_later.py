"""The RPCs that the service got later: search and routing, agents, repetitions, episodes."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from beetle.contracts.common import WireScope
from beetle.memory_client import Event, MemoryClient, RpcFailed
from beetle.open import Embedded
from tests.conformance.doors import embedded_caller
from tests.transports.grpc_serving import Served

T0 = 1738281600000
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("grpc"), "operators") as running:
        yield running


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[MemoryClient]:
    with MemoryClient.connect(f"http://{served.target}") as connected:
        said = (("e1", "s1", 0, "ant"), ("e2", "s1", DAY_MS, "ant"), ("e3", "s2", 0, "bee"))
        for name, session, later, agent in said:
            made = Event(
                event_id=name, session_id=session, timestamp_ms=T0 + later, event_type="user_message",
                text=f"The borrow checker of day {later // DAY_MS} said {name}", agent=agent,
            )  # fmt: skip
            assert connected.ingest(made)[1]
        yield connected


def refused(client: MemoryClient, rpc: str, fields: dict[str, object]) -> grpc.StatusCode:
    with pytest.raises(RpcFailed) as caught:
        client.ask(rpc, fields)
    return caught.value.code


def test_vector_teleport_is_answered_by_recall(client: MemoryClient) -> None:
    found = client.ask("VectorTeleport", {"query": "borrow checker", "top_k": 2, "min_score": 0.5})
    assert len(found["matches"]) == 2
    assert "borrow checker" in found["matches"][0]["text_preview"]
    assert found["index_status"] == client.ask("GetVectorIndexStatus", {})
    within = {"start_ms": T0 + DAY_MS, "end_ms": T0 + DAY_MS + 1}
    (only,) = client.ask("VectorTeleport", {"query": "borrow checker", "time_filter": within})["matches"]
    assert only["timestamp_ms"] == T0 + DAY_MS
    assert refused(client, "VectorTeleport", {"query": " "}) is grpc.StatusCode.INVALID_ARGUMENT


def test_routing_tells_what_recall_has_and_why_it_answered_so(client: MemoryClient) -> None:
    layers = client.ask("GetRetrievalCapabilities", {})
    assert layers["tier"] == "keyword"
    states = {name: layers[f"{name}_status"].get("enabled", False) for name in ("bm25", "vector", "topics", "agentic")}
    assert states == {"bm25": True, "vector": False, "topics": False, "agentic": True}
    asked = {"query": "borrow checker", "limit": 1, "intent_override": "locate", "stop_conditions": {"max_depth": 2}}
    found = client.ask("RouteQuery", asked)
    why = found["explanation"]
    assert (why["intent"], why["tier"], why["winner"], why["mode"]) == ("locate", "keyword", "bm25", "sequential")
    assert "lexical" in why["why_winner"]
    assert len(found["results"]) == 1


def test_the_intent_of_a_query(client: MemoryClient) -> None:
    found = client.ask("ClassifyQueryIntent", {"query": "give me an overview of last week"})
    assert found["intent"] == "explore"
    assert found["matched_keywords"] == ["overview", "last week"]
    assert found["lookback_ms"] > 6 * DAY_MS
    assert client.ask("ClassifyQueryIntent", {"query": "rust", "timeout_ms": 50})["intent"] == "time_boxed"
    assert refused(client, "ClassifyQueryIntent", {"query": ""}) is grpc.StatusCode.INVALID_ARGUMENT


def test_agents_and_their_activity(client: MemoryClient) -> None:
    agents = client.ask("ListAgents", {})["agents"]
    seen = [(each["agent_id"], each["event_count"], each["session_count"], each["last_seen_ms"]) for each in agents]
    assert seen == [("ant", 2, 1, T0 + DAY_MS), ("bee", 1, 1, T0)]
    whole = {"bucket": "day", "from_ms": T0, "to_ms": T0 + DAY_MS}
    buckets = client.ask("GetAgentActivity", whole)["buckets"]
    assert [(each["start_ms"], each["event_count"], each["agent_id"]) for each in buckets] == [
        (T0, 1, "ant"), (T0, 1, "bee"), (T0 + DAY_MS, 1, "ant")
    ]  # fmt: skip
    assert all(each["end_ms"] == each["start_ms"] + DAY_MS for each in buckets)
    assert len(client.ask("GetAgentActivity", {**whole, "bucket": "week", "agent_id": "ant"})["buckets"]) == 1
    for bucket in ("", "month"):
        assert refused(client, "GetAgentActivity", {"bucket": bucket}) is grpc.StatusCode.INVALID_ARGUMENT


def test_repetitions_are_counted(served: Served, client: MemoryClient) -> None:
    local = Embedded(served.opened, embedded_caller("owner-default"), WireScope())
    captured = {"host_session_id": "h1", "host_turn_index": 0, "role": "user", "content": "once"}
    for _ in range(3):
        local.call("turn.capture", captured, None, None, None)
    found = client.ask("GetDedupStatus", {})
    assert (found["enabled"], found["events_checked"], found["events_deduplicated"]) == (True, 3, 2)
    assert found["threshold"] == 1.0


def test_an_episode_from_its_start_to_its_use(client: MemoryClient) -> None:
    begun = client.ask("StartEpisode", {"task": "Prune the apple tree", "plan": ["saw", "seal"], "agent": "ant"})
    name = begun["episode_id"]
    assert begun["created"]
    action = {"action_type": "saw", "input": "the dead branch", "result_status": "success", "result_detail": "off"}
    assert client.ask("RecordAction", {"episode_id": name, "action": action}) == {"recorded": True, "action_count": 1}
    pending = {"episode_id": name, "action": {"action_type": "seal", "timestamp_ms": T0}}
    assert client.ask("RecordAction", pending)["action_count"] == 2
    ended = {"episode_id": name, "outcome_score": 0.9, "lessons_learned": ["cut in winter"], "failure_modes": ["rain"]}
    done = client.ask("CompleteEpisode", ended)
    assert done["completed"] and done["value_score"] == pytest.approx(0.75)
    (found,) = client.ask("GetSimilarEpisodes", {"query": "pruning an apple tree in winter", "min_score": 0.2})[
        "episodes"
    ]
    assert (found["episode_id"], found["status"], found["agent"]) == (name, "completed", "ant")
    assert (found["lessons_learned"], found["failure_modes"], found["action_count"]) == (["cut in winter"], ["rain"], 2)
    assert found["outcome_score"] == pytest.approx(0.9)


def test_an_episode_is_refused_what_it_cannot_take(client: MemoryClient) -> None:
    invalid, ended, unknown = (
        grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND
    )  # fmt: skip
    assert refused(client, "StartEpisode", {"task": ""}) is invalid
    name = client.ask("StartEpisode", {"task": "Sharpen the saw"})["episode_id"]
    assert refused(client, "RecordAction", {"episode_id": name}) is invalid
    assert refused(client, "CompleteEpisode", {"episode_id": name, "outcome_score": 1.5}) is invalid
    assert refused(client, "RecordAction", {"episode_id": "none", "action": {"action_type": "x"}}) is unknown
    assert client.ask("CompleteEpisode", {"episode_id": name, "failed": True})["completed"]
    assert refused(client, "CompleteEpisode", {"episode_id": name}) is ended
    assert client.ask("GetSimilarEpisodes", {"query": "sharpen a saw"})["episodes"][0]["status"] == "failed"
    assert refused(client, "GetSimilarEpisodes", {"query": ""}) is invalid
