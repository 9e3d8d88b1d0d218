"""The client: threads that share it, closing it, and its subscriptions."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from pathlib import Path

import pytest

from beetle.client import Client, ClientClosed, NoDaemon
from beetle.contracts import errors
from beetle.contracts.common import WireScope
from beetle.contracts.envelope import DeviceAuth
from tests.transports.conftest import commit, turn
from tests.transports.serving import Served, until
from tests.transports.standin import Far, Scripted, serve_well

STANDALONE = "profile-linux-device-standalone-memory"


def test_threads_that_share_a_client_get_each_its_own_answers(served: Served) -> None:
    failures: list[BaseException] = []

    def run(client: Client, name: str) -> None:
        try:
            for number in range(40):
                key = f"{name}-{number}"
                where = {"conversation": {"conversation_id": name}, "turns": [turn(number, f"{name} says {number}")]}
                report = client.call("transcript.commit", where, idempotency_key=key)
                assert report.turns[0].turn_id == f"t{number}"  # type: ignore[attr-defined]
                assert not client.repeated
                client.call("transcript.commit", where, idempotency_key=key)
                assert client.repeated
                page = client.replay_transcript(conversation={"conversation_id": name}, view="host_ui", limit=1)
                assert page.turns[0].messages[0].content == f"{name} says 0"
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    with Client(served.path) as client:
        threads = [threading.Thread(target=run, args=(client, f"thread-{n}")) for n in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not failures


def test_a_thread_that_waits_too_long_for_its_turn_times_out(folder: Path) -> None:
    end = threading.Event()

    def slow(far: Far) -> None:
        request = far.request()
        end.wait()
        far.answer(request)

    with Scripted(str(folder / "s"), slow) as daemon, Client(daemon.path) as client:
        first = threading.Thread(target=client.list_runtime_skills)
        first.start()
        until(lambda: daemon.requests, "the first request")
        client._timeout = 0.05
        with pytest.raises(TimeoutError):
            client.hello()
        end.set()
        first.join()


@pytest.mark.parametrize("state", ["waiting for an answer", "waiting to try again"])
def test_close_ends_the_call_of_another_thread(folder: Path, state: str) -> None:
    def never(far: Far) -> None:
        while True:
            request = far.request()
            if state == "waiting to try again":
                far.refuse(request, "overloaded", retryable=True, retry_after_ms=20_000)

    caught: list[type[BaseException]] = []

    def run() -> None:
        try:
            client.list_runtime_skills()
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            caught.append(type(error))

    with Scripted(str(folder / "s"), never) as daemon:
        client = Client(daemon.path)
        waiting = threading.Thread(target=run)
        waiting.start()
        until(lambda: daemon.requests, "the request")
        client.close()
        waiting.join()
        assert caught == [ClientClosed]
        assert daemon.connections == 1


def test_nothing_is_left_open_whatever_happens(folder: Path, served: Served) -> None:
    def dying(far: Far) -> None:
        far.request()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gc.collect()  # what other tests left is not counted
        before = len(os.listdir("/proc/self/fd"))
        for path in (folder / "missing", folder / ("n" * 200)):
            with pytest.raises(NoDaemon):
                Client(str(path))
        with Scripted(str(folder / "s"), dying) as daemon, Client(daemon.path, timeout=0.1) as client:
            # It tries again until its time is over: that may be before a connection or while it waits on one.
            with pytest.raises((ConnectionError, TimeoutError)):
                client.hello()
            with pytest.raises((ConnectionError, TimeoutError)):
                client.subscribe(["skill"])
        with Scripted(str(folder / "t"), dying) as daemon, Client(daemon.path, retry=False) as client:
            with pytest.raises(ConnectionError):
                client.hello()
            with pytest.raises(ConnectionError):
                client.subscribe(["skill"])
        with Client(served.path) as client:
            with pytest.raises(errors.InvalidRequest):
                client.subscribe(["weather"])
            client.subscribe(["skill"])
            for _ in (
                client.subscribe(["transcript"]) if client.commit_transcript(**commit(1, "open")).unchanged else ()
            ):
                break
            events = client.subscribe(["transcript"])
            client.commit_transcript(**commit(2, "open"))
            for _ in events:
                break
            del events
        gc.collect()
        until(lambda: served.server.connections == 0, "the end of every connection")
        assert len(os.listdir("/proc/self/fd")) == before
    assert [str(each.message) for each in found] == []


# Subscriptions


def test_a_subscription_is_an_iterator_of_events_that_closing_ends(served: Served) -> None:
    with Client(served.path, scope=WireScope(owner_id="events")) as client:
        with client.subscribe(["transcript"]) as events:
            seqs = [client.commit_transcript(**commit(n)).lifecycle.event_id for n in range(3)]  # type: ignore[union-attr]
            heard = [next(events) for _ in range(3)]
            assert [event.seq for event in heard] == seqs
            assert {event.topic for event in heard} == {"transcript"}
        assert list(events) == []
        elsewhere = client.subscribe(["transcript"], scope=WireScope(owner_id="events-2"))
        client.commit_transcript(**commit(9))
        client.call("transcript.commit", commit(1), scope=WireScope(owner_id="events-2"))
        assert next(elsewhere).seq == next(iter(seqs[2:])) + 2  # type: ignore[operator]
        elsewhere.close()


def test_closing_a_subscription_wakes_the_thread_that_follows_it(served: Served) -> None:
    with Client(served.path) as client:
        events = client.subscribe(["skill"])
        ended: list[int] = []
        following = threading.Thread(target=lambda: ended.append(len(list(events))))
        following.start()
        events.close()
        following.join()
        assert ended == [0]


def test_a_subscription_outlives_its_client_and_tells_when_the_daemon_ends(folder: Path) -> None:
    with Served(folder) as served:
        with Client(served.path) as client:
            events = client.subscribe(["transcript"])
        with Client(served.path) as client:
            client.commit_transcript(**commit(1))
        assert next(events).topic == "transcript"
        served.stop()
        with pytest.raises(ConnectionError):
            next(events)
        assert list(events) == []


def test_a_closed_client_begins_no_subscription(folder: Path) -> None:
    with Scripted(str(folder / "s"), serve_well) as daemon:
        client = Client(daemon.path)
        client.close()
        with pytest.raises(ClientClosed):
            client.subscribe(["skill"])


def test_a_subscription_that_is_refused_is_a_typed_error(served: Served) -> None:
    with Client(served.path) as client:
        with pytest.raises(errors.InvalidRequest) as caught:
            client.subscribe(["weather"])
        assert caught.value.details["path"] == "$.args.topics[0]"
    with Client(served.path, auth=DeviceAuth(device_id="d", app_key="k")) as client, pytest.raises(errors.Unauthorized):
        client.subscribe(["skill"])
