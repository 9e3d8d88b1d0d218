"""What a subscriber hears of facts, policies and candidates: under the topic `lifecycle`, which needs `inspect`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.runtime.host.config import Principal
from tests.transports.conftest import Peer
from tests.transports.serving import Served, needs_root, peer_as

WATCHER, OWN_AGENT, POOR = 40_001, 40_002, 40_003
ADA = {"owner_id": "ada"}
PRINCIPALS = {
    "watcher": Principal(uid=WATCHER, owner_id="ada", capabilities=("inspect",)),
    "own-agent": Principal(uid=OWN_AGENT, owner_id="ada", agent_id="agent-main", capabilities=("inspect",)),
    "poor": Principal(uid=POOR, owner_id="ada", capabilities=("transcript", "event_log")),
}


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        yield running


def follow(peer: Peer, *topics: str, **more: Any) -> None:
    answer = peer.ask("subscribe", {"topics": list(topics)}, **more)
    assert answer["ok"], answer


def report(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["ok"], answer
    return answer["report"]


def learn(peer: Peer, content: str, target: str = "long_term", privacy: str = "shared_with_subject") -> dict[str, Any]:
    """Have a candidate judged; what became of it."""
    wanted = {"candidate_id": "c", "target": target, "privacy": privacy, "authority": "user_asserted",
              "topic": "tea", "content": content}  # fmt: skip
    asked = {"kind": "candidates", "candidates": [wanted]}
    return report(peer.ask("memory.write", asked, scope=ADA))["outcomes"][0]


def change(peer: Peer, **asked: Any) -> dict[str, Any]:
    return report(peer.ask("long_term.mutate", asked, scope=ADA))


def pause(peer: Peer) -> None:
    report(peer.ask("long_term.policy", {"action": "pause", "topic": "secret tea"}, scope=ADA))


def heard(peer: Peer, count: int) -> list[str]:
    """The names of the next events; each is under `lifecycle`."""
    frames = [peer.answer() for _ in range(count)]
    assert {frame["topic"] for frame in frames} == {"lifecycle"}
    assert "kettle" not in str(frames) and "secret" not in str(frames)
    return [frame["event"]["event"] for frame in frames]


def test_who_follows_lifecycle_hears_what_becomes_of_facts_and_policies(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        follow(follower, "lifecycle", scope=ADA)
        ref = learn(writer, "the kettle is on")["ref"]
        change(writer, action="correct", ref=ref, content="the kettle is off", reason="a secret look")
        pause(writer)
        change(writer, action="delete", ref=ref)
        told = heard(follower, 5)
        assert told == ["fact_created", "candidate_accepted", "fact_corrected", "policy_pause", "fact_deleted"]


def test_an_event_of_memory_has_the_number_of_its_row_whose_topic_in_the_log_is_memory(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        follow(follower, "lifecycle", scope=ADA)
        pause(writer)
        frame = follower.answer()
        (row,) = report(writer.ask("event_log.read", {"topics": ["memory"]}, scope=ADA))["rows"]
        assert (row["seq"], row["topic"], row["event"]) == (frame["seq"], "memory", "policy_pause")
        assert frame["event"] == {"event": "policy_pause", "operation": "long_term.policy", **row["subject"]}
        assert report(writer.ask("event_log.read", {"topics": ["lifecycle"]}, scope=ADA))["rows"] == []


def test_memory_is_no_topic_that_can_be_asked_for_and_other_topics_do_not_tell_of_it(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        assert follower.ask("subscribe", {"topics": ["memory"]})["error"]["key"] == "invalid_request"
        follow(follower, "transcript", "skill", "job", "device", "replication", scope=ADA)
        pause(writer)
        one = {"name": "tea", "topic": "tea", "title": "Tea", "summary": "how to", "content": "boil"}
        asked = {"kind": "procedural", "source": "manual", "writes": [one]}
        seq = report(writer.ask("memory.write", asked, scope=ADA))["lifecycle"]["event_id"]
        assert follower.answer()["seq"] == seq


def test_what_becomes_of_another_space_s_memory_is_not_heard(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        follow(follower, "lifecycle", scope={"owner_id": "bob"})
        learn(writer, "the kettle is on")
        pause(writer)
        asked = {"action": "pause", "topic": "rye"}
        report(writer.ask("long_term.policy", asked, scope={"owner_id": "bob"}))
        assert heard(follower, 1) == ["policy_pause"]


@needs_root
def test_it_takes_the_capability_inspect_whoever_may_read_the_log(served: Served) -> None:
    with peer_as(served.path, POOR, POOR) as poor:
        error = poor.ask("subscribe", {"topics": ["lifecycle"]})["error"]
        assert (error["key"], error["details"]["capability"]) == ("forbidden", "inspect")
        assert not served.dispatcher.hub.count


@needs_root
def test_of_a_private_fact_only_who_may_see_private_facts_hears(served: Served) -> None:
    with (
        peer_as(served.path, WATCHER, WATCHER) as watcher,
        peer_as(served.path, OWN_AGENT, OWN_AGENT) as agent,
        served.peer() as writer,
    ):
        for peer in (watcher, agent):
            follow(peer, "lifecycle")
        learn(writer, "the secret kettle", privacy="subject_private")
        learn(writer, "the most secret kettle", "private_garden", "subject_private")
        pause(writer)
        assert heard(agent, 3) == ["fact_created", "candidate_accepted", "policy_pause"], "of what is sealed, nothing"
        assert heard(watcher, 1) == ["policy_pause"]


@needs_root
def test_a_fact_that_becomes_private_is_told_to_who_knew_it(served: Served) -> None:
    with peer_as(served.path, WATCHER, WATCHER) as watcher, served.peer() as writer:
        follow(watcher, "lifecycle")
        ref = learn(writer, "the kettle is on")["ref"]
        change(writer, action="change_scope", ref=ref, privacy="subject_private", reason="asked for")
        assert heard(watcher, 3) == ["fact_created", "candidate_accepted", "fact_scope_changed"]
