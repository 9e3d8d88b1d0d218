"""Subscriptions: who hears what, in which order, when they end, and what a slow reader gets."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.runtime.host.config import Principal
from beetle.runtime.pipeline.subscriptions import TOPIC_CAPABILITIES, Subscription
from beetle.store.event_log import Event
from beetle.transports.socket_connection import SUBSCRIPTIONS
from tests.transports.conftest import Peer, commit
from tests.transports.serving import Served, needs_root, peer_as, until

AGENT = 40_001
POOR = 40_002
STRANGER = 54_321
TOPICS = list(TOPIC_CAPABILITIES)

PRINCIPALS = {
    "agent": Principal(uid=AGENT, owner_id="ada", capabilities=("transcript", "inspect")),
    "poor": Principal(uid=POOR, owner_id="ada", capabilities=("recall",)),
}


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        yield running


def follow(peer: Peer, *topics: str, **more: Any) -> str:
    answer = peer.ask("subscribe", {"topics": list(topics)}, **more)
    assert answer["ok"], answer
    assert answer["report"]["topics"] == list(topics)
    return answer["report"]["sub"]


def write(peer: Peer, number: int, conversation: str = "c", **more: Any) -> int:
    """Commit a turn; the number of its event."""
    answer = peer.ask("transcript.commit", commit(number, conversation), **more)
    assert answer["ok"], answer
    return answer["report"]["lifecycle"]["event_id"]


def skill(name: str) -> dict[str, Any]:
    one = {"name": name, "topic": "tea", "title": "Tea", "summary": "how to", "content": "boil water"}
    return {"kind": "procedural", "source": "manual", "writes": [one]}


def test_a_subscriber_hears_what_was_committed_with_ids_and_kinds_alone(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        sub = follow(follower, "transcript")
        seq = write(writer, 1)
        event = follower.answer()
        assert (event["v"], event["sub"], event["topic"], event["seq"]) == (1, sub, "transcript", seq)
        assert event["event"]["operation"] == "transcript.commit"
        assert "id" not in event and "ok" not in event
        assert "kettle" not in str(event)


def test_only_the_topics_that_were_asked_for_are_delivered(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        follow(follower, "skill")
        write(writer, 1)
        answer = writer.ask("memory.write", skill("tea"))
        assert answer["ok"], answer
        event = follower.answer()
        assert (event["topic"], event["seq"]) == ("skill", answer["report"]["lifecycle"]["event_id"])


def followed(served: Served, sub: str) -> Subscription:
    """The one subscription of that id."""
    (found,) = (each for each in served.dispatcher.hub._subscriptions if each.sub == sub)
    return found


def test_a_subscriber_hears_of_its_own_space_alone(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        follow(follower, "transcript", scope={"owner_id": "ada"})
        write(writer, 1, scope={"owner_id": "bob"})
        write(writer, 1)
        seq = write(writer, 1, scope={"owner_id": "ada"})
        assert follower.answer()["seq"] == seq


@needs_root
def test_a_principal_hears_nothing_of_another_owner_nor_of_the_daemon(served: Served) -> None:
    with peer_as(served.path, AGENT, AGENT) as agent, served.peer() as operator:
        follow(agent, "lifecycle", "transcript")
        follow(operator, "lifecycle")
        with peer_as(served.path, STRANGER, STRANGER) as stranger:
            assert stranger.ask("hello")["error"]["key"] == "unauthorized"
        refused = operator.answer()
        assert (refused["topic"], refused["event"]["event"]) == ("lifecycle", "refused")
        assert refused["event"]["error"] == "unauthorized"
        write(operator, 1, scope={"owner_id": "bob"})
        seq = write(operator, 1, scope={"owner_id": "ada"})
        assert (agent.answer()["seq"], seq) == (1, 3), "neither the refusal nor another owner's turn"


@needs_root
def test_a_topic_without_its_capability_is_forbidden_and_leaves_no_subscription(served: Served) -> None:
    with peer_as(served.path, POOR, POOR) as poor, peer_as(served.path, AGENT, AGENT) as agent:
        for topic, needed in TOPIC_CAPABILITIES.items():
            error = poor.ask("subscribe", {"topics": [topic]})["error"]
            assert (error["key"], error["details"]["capability"]) == ("forbidden", needed)
        assert agent.ask("subscribe", {"topics": ["transcript", "device"]})["error"]["key"] == "forbidden"
        assert not served.dispatcher.hub._subscriptions


@pytest.mark.parametrize(
    "args", [{}, {"topics": []}, {"topics": ["weather"]}, {"topics": "skill"}, {"topics": TOPICS * 2}]
)
def test_wrong_topics_are_an_invalid_request(served: Served, args: dict[str, Any]) -> None:
    with served.peer() as peer:
        assert peer.ask("subscribe", args)["error"]["key"] == "invalid_request"
        assert peer.ask("hello")["ok"]
        assert not served.dispatcher.hub._subscriptions


def test_subscribe_and_unsubscribe_cannot_stand_in_a_batch(served: Served) -> None:
    with served.peer() as peer:
        for op in ("subscribe", "unsubscribe"):
            error = peer.ask("batch", {"requests": [{"op": op, "args": {}}]})["error"]
            assert (error["key"], error["details"]["index"]) == ("invalid_request", 0)


def test_events_come_after_their_commit_and_a_write_that_fails_has_none(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer, served.peer() as reader:
        write(writer, 1, "first")
        follow(follower, "transcript")
        for number in range(20):
            other = writer.ask("transcript.commit", commit(1, "first", text="another text"))
            assert other["error"]["key"] == "conflict"
            assert writer.ask("transcript.commit", commit(1, "first"))["report"]["unchanged"] == 1
            writer.send(
                msgpack.packb({"v": 1, "id": 1, "op": "transcript.commit", "args": commit(number, f"c{number}")})
            )
            event = follower.answer()
            listed = reader.ask("transcript.conversations", {"limit": 100})["report"]["conversations"]
            assert f"c{number}" in [each["conversation_id"] for each in listed], "what is told of can be read"
            assert writer.answer()["report"]["lifecycle"]["event_id"] == event["seq"]


def test_events_of_many_writers_come_in_the_order_of_the_log(served: Served) -> None:
    writers, each = 4, 25

    def run(name: str) -> None:
        with served.peer() as peer:
            for number in range(each):
                write(peer, number, name)

    with served.peer() as follower:
        follow(follower, "transcript")
        threads = [threading.Thread(target=run, args=(f"w{n}",)) for n in range(writers)]
        for thread in threads:
            thread.start()
        seqs = [follower.answer()["seq"] for _ in range(writers * each)]
        for thread in threads:
            thread.join()
        assert seqs == sorted(set(seqs))


def test_answers_and_events_share_a_connection_and_every_frame_stays_whole(served: Served) -> None:
    count = 200
    with served.peer() as both, served.peer() as writer:
        sub = follow(both, "transcript")
        asked = b"".join(msgpack.packb({"v": 1, "id": n, "op": "hello"}) for n in range(count))
        asking = threading.Thread(target=both.send, args=(asked,))
        writing = threading.Thread(target=lambda: [write(writer, n) for n in range(count // 2)])
        asking.start()
        writing.start()
        answers, events = [], []
        while len(answers) < count or len(events) < count // 2:
            frame = both.answer()
            (events if frame.get("sub") == sub else answers).append(frame)
        asking.join()
        writing.join()
        assert [each["id"] for each in answers] == list(range(count))
        assert [each["seq"] for each in events] == sorted(each["seq"] for each in events)


def test_a_connection_hears_of_its_own_writes(served: Served) -> None:
    with served.peer() as peer:
        sub = follow(peer, "transcript")
        peer.send(msgpack.packb({"v": 1, "id": 9, "op": "transcript.commit", "args": commit(1)}))
        frames = [peer.answer(), peer.answer()]
        assert {frame.get("id") for frame in frames} == {9, None}
        assert {frame.get("sub") for frame in frames} == {sub, None}


def test_unsubscribe_stops_the_events_and_nothing_follows_its_answer(served: Served) -> None:
    with served.peer() as follower, served.peer() as writer:
        for number in range(20):
            sub = follow(follower, "transcript")
            racing = threading.Thread(target=write, args=(writer, number, "race"))
            racing.start()
            follower.send(msgpack.packb({"v": 1, "id": "end", "op": "unsubscribe", "args": {"sub": sub}}))
            while (frame := follower.answer()).get("id") != "end":
                assert frame["sub"] == sub
            assert frame["ok"] and frame["report"]["sub"] == sub
            racing.join()
            assert follower.ask("hello")["id"] == 1, "the next frame is the next answer"
        assert not served.dispatcher.hub._subscriptions


def test_a_subscription_can_be_ended_once_and_by_its_own_connection_alone(served: Served) -> None:
    with served.peer() as mine, served.peer() as other, served.peer() as writer:
        sub = follow(mine, "transcript")
        for peer, args in ((other, {"sub": sub}), (mine, {"sub": "sub-0"})):
            assert peer.ask("unsubscribe", args)["error"]["key"] == "not_found"
        for args in ({}, {"sub": 1}, {"sub": sub, "more": 1}):
            assert mine.ask("unsubscribe", args)["error"]["key"] == "invalid_request"
        seq = write(writer, 1)
        assert mine.answer()["seq"] == seq
        assert mine.ask("unsubscribe", {"sub": sub})["ok"]
        assert mine.ask("unsubscribe", {"sub": sub})["error"]["key"] == "not_found"


def test_two_subscriptions_of_a_connection_are_told_apart(served: Served) -> None:
    with served.peer() as peer, served.peer() as writer:
        first, second = follow(peer, "transcript"), follow(peer, "transcript", "skill")
        assert first != second
        seq = write(writer, 1)
        frames = [peer.answer(), peer.answer()]
        assert {frame["sub"] for frame in frames} == {first, second}
        assert {frame["seq"] for frame in frames} == {seq}
        assert peer.ask("unsubscribe", {"sub": first})["ok"]
        write(writer, 2)
        assert peer.answer()["sub"] == second


def test_a_connection_has_a_bounded_number_of_subscriptions(served: Served) -> None:
    with served.peer() as peer:
        subs = [follow(peer, "skill") for _ in range(SUBSCRIPTIONS)]
        error = peer.ask("subscribe", {"topics": ["skill"]})["error"]
        assert (error["key"], error["retryable"]) == ("overloaded", True)
        assert len(served.dispatcher.hub._subscriptions) == SUBSCRIPTIONS
        assert peer.ask("unsubscribe", {"sub": subs[0]})["ok"]
        until(lambda: peer.ask("subscribe", {"topics": ["skill"]})["ok"], "room for another subscription")


def test_subscriptions_of_two_principals_on_one_connection_are_told_apart_and_all_end_with_it(served: Served) -> None:
    with served.peer() as peer, served.peer() as writer:
        mine = [follow(peer, "transcript", scope={"owner_id": "ada"}) for _ in range(2)]
        agents = [follow(peer, "transcript", auth={"principal": "agent"}) for _ in range(2)]
        assert len({*mine, *agents}) == served.dispatcher.hub.count == 4
        write(writer, 1, scope={"owner_id": "ada"})
        assert {peer.answer()["sub"] for _ in range(4)} == {*mine, *agents}
        assert peer.ask("unsubscribe", {"sub": mine[0]})["ok"]
        write(writer, 2, scope={"owner_id": "ada"})
        assert {peer.answer()["sub"] for _ in range(3)} == {mine[1], *agents}
    until(lambda: not served.dispatcher.hub.count, "the end of the subscriptions")


def test_the_subscriptions_of_a_connection_are_served_by_one_thread(served: Served) -> None:
    with served.peer() as peer, served.peer() as writer:
        subs = {follow(peer, "transcript") for _ in range(SUBSCRIPTIONS)}
        assert [each.name for each in threading.enumerate()].count("beetle-events") == 1
        seqs = [write(writer, number) for number in range(5)]
        heard: dict[str, list[int]] = {sub: [] for sub in subs}
        for _ in range(SUBSCRIPTIONS * len(seqs)):
            frame = peer.answer()
            heard[frame["sub"]].append(frame["seq"])
        assert heard == dict.fromkeys(subs, seqs)


def test_no_event_comes_before_the_answer_that_names_its_subscription(served: Served) -> None:
    enough = threading.Event()

    def go_on_writing() -> None:
        with served.peer() as writer:
            number = 0
            while not enough.is_set():
                write(writer, number := number + 1)

    other = threading.Thread(target=go_on_writing)
    other.start()
    try:
        with served.peer() as peer:
            named: set[str] = set()
            for number in range(SUBSCRIPTIONS):
                peer.send(msgpack.packb({"v": 1, "id": number, "op": "subscribe", "args": {"topics": ["transcript"]}}))
                while "id" not in (frame := peer.answer()):
                    assert frame["sub"] in named
                named.add(frame["report"]["sub"])
            assert peer.answer()["sub"] in named
    finally:
        enough.set()
        other.join()


def test_the_end_of_a_connection_ends_its_subscriptions(served: Served) -> None:
    hub = served.dispatcher.hub
    gc.collect()  # what other tests left is not counted
    threads = threading.active_count()
    peers = [served.peer() for _ in range(5)]
    for peer in peers:
        follow(peer, "transcript")
        follow(peer, "skill")
    assert len(hub._subscriptions) == 10
    for peer in peers:
        peer.close()
    until(lambda: not hub._subscriptions, "the end of the subscriptions")
    until(lambda: threading.active_count() <= threads, "the end of their threads")


@needs_root
def test_other_rights_end_a_subscription_before_the_next_event(served: Served) -> None:
    with peer_as(served.path, AGENT, AGENT) as agent, served.peer() as operator:
        follow(agent, "transcript")
        served.principals.replace({"poor": PRINCIPALS["poor"]})
        write(operator, 1, scope={"owner_id": "ada"})
        assert agent.closed()
        served.principals.replace(PRINCIPALS)
    with peer_as(served.path, AGENT, AGENT) as agent, served.peer() as operator:
        follow(agent, "transcript")
        served.principals.replace(dict(PRINCIPALS))
        seq = write(operator, 2, scope={"owner_id": "ada"})
        assert agent.answer()["seq"] == seq, "a reload that leaves its rights leaves its subscriptions"


@needs_root
def test_while_others_ask_the_subscriptions_of_one_principal_take_turns(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beetle.runtime.pipeline.crowd.STUCK_S", 3600.0)  # no turn ends by the clock
    crowd = served.dispatcher.crowd
    with peer_as(served.path, AGENT, AGENT) as agent, served.peer() as operator:
        follow(agent, "transcript")
        crowd.begin("another")
        try:
            with crowd.asking("agent") as other, other.going_on():
                seq = write(operator, 1, scope={"owner_id": "ada"})
                until(lambda: crowd.waiting == 1, "the subscription that waits for its principal's other work")
            assert agent.answer()["seq"] == seq
        finally:
            crowd.end("another")


def test_a_slow_reader_holds_up_nobody_and_is_told_once_how_much_it_lost(folder: Path) -> None:
    with Served(folder, subscription_events=4) as served, served.peer() as slow, served.peer() as quick:
        sub = follow(slow, "lifecycle", "transcript")
        subscription = followed(served, sub)
        told = _tell_until_one_is_lost(served, subscription)
        for _ in range(50):
            _tell(served, told := told + 1)
        assert quick.ask("transcript.commit", commit(1))["ok"], "a write is acknowledged meanwhile"
        told += 1
        heard: list[dict[str, Any]] = []
        while "dropped" not in (frame := slow.answer())["event"]:
            heard.append(frame)
        assert "topic" not in frame and "seq" not in frame
        assert frame["event"] == {"dropped": told - len(heard)}
        assert [each["seq"] for each in heard] == sorted(each["seq"] for each in heard)
        assert [each["event"]["number"] for each in heard] == list(range(1, len(heard) + 1))
        _tell(served, 0)
        assert slow.answer()["event"]["number"] == 0, "and then it goes on"


def test_a_reader_that_has_stopped_may_read_its_answers_later(folder: Path) -> None:
    with Served(folder, subscription_events=4) as served, served.peer() as slow:
        subscription = followed(served, follow(slow, "lifecycle"))
        _tell_until_one_is_lost(served, subscription)
        slow.send(msgpack.packb({"v": 1, "id": "late", "op": "hello"}))
        while (frame := slow.answer()).get("id") != "late":
            assert frame["sub"] == subscription.sub
        assert frame["ok"]


def test_a_subscriber_may_stop_reading_for_longer_than_an_answer_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beetle.transports.socket_connection.SEND_SECONDS", 0.02)
    with Served(folder, subscription_events=4) as served, served.peer() as slow:
        subscription = followed(served, follow(slow, "lifecycle"))
        _tell_until_one_is_lost(served, subscription)
        passed = time.monotonic() + 0.1
        until(lambda: time.monotonic() > passed, "several times that long")
        while "dropped" not in (frame := slow.answer())["event"]:
            assert len(frame["event"]["long"]) == 4000
        assert slow.ask("hello")["ok"]


@needs_root
def test_who_may_follow_no_more_is_sent_nothing_although_it_had_stopped_reading(folder: Path) -> None:
    with Served(folder, subscription_events=4, principals=PRINCIPALS) as served:
        os.chmod(served.path, 0o666)
        with peer_as(served.path, AGENT, AGENT) as slow:
            subscription = followed(served, follow(slow, "lifecycle"))
            told = _tell_until_one_is_lost(served, subscription, "space:ada")
            sent = told - len(subscription._queue) - subscription._dropped
            served.principals.replace({"poor": PRINCIPALS["poor"]})
            served.dispatcher.hub.nudge()
            until(lambda: not served.dispatcher.hub.count, "the end of its subscription")
            heard = 0
            with contextlib.suppress(EOFError, OSError):
                while slow.answer():
                    heard += 1
            assert heard <= sent, "of what was queued behind it nothing is sent any more"


def _tell(served: Served, number: int, space: str | None = None) -> None:
    event = Event("lifecycle", "tested", "test", "daemon", space, {"number": number, "long": "x" * 4000})
    served.store.write(lambda tx: tx.log(event), grows=False)


def _tell_until_one_is_lost(served: Served, subscription: Subscription, space: str | None = None) -> int:
    """Fill the socket's buffer, then the queue, until an event finds no place; how many were told.

    Each event is waited for until it is on its way or the buffer is full: one that is lost because its sender was late
    would be told of at once, before the reader has stopped.
    """
    connection = next(each for each in served.server._open.values() if subscription.sub in each._subscriptions)
    pump = connection._pump
    assert pump is not None
    told = 0
    while not subscription._dropped:
        _tell(served, told := told + 1, space)
        until(lambda: not subscription._queue or not pump._has_room(0), "an event on its way, or a full buffer")
    return told
