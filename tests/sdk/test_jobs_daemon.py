"""A real daemon with a model: turns finalised over its socket, its job loop, its end while the model thinks."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.client import Client
from tests.forked import Daemon
from tests.sdk.answering import CONVERSATION, Answer, Asked, ModelServer, item, noted, turn

PROFILE = "profile-linux-device-standalone-memory"
PORTO = item("The user lives in Porto.", "t1.0")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bj-") as made:
        yield Path(made)


def daemon(folder: Path, server: ModelServer | None, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    config = folder / "beetle.toml"
    model = f'[model]\nkind = "openai"\nname = "small"\nurl = "{server.url}"\ntimeout_s = 600\n' if server else ""
    config.write_text(model)
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    return Daemon(profile=PROFILE, folder=str(folder))


def finalize(client: Client, turn_id: str = "t1") -> str | None:
    report = client.finalize_turn_and_maintain(conversation=CONVERSATION, turn=turn(turn_id, "I live in Porto."))
    return report.deferred_job_id


def wait_for_state(client: Client, state: str) -> None:
    """Until the daemon's own thread has done what it does; nothing tells of it to a client without a subscription."""
    end = time.monotonic() + 30
    pause = threading.Event()
    while [each.state for each in client.governance_report().deferred.jobs] != [state]:
        assert time.monotonic() < end, client.governance_report()
        pause.wait(0.02)


def test_a_turn_that_is_finalised_over_the_socket_is_maintained(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = noted(PORTO)
    with daemon(folder, server, monkeypatch) as running, running.client() as client:
        report = client.finalize_turn_and_maintain(conversation=CONVERSATION, turn=turn("t1", "I live in Porto."))
        assert report.maintained == "done" and report.maintenance is not None
        assert [each.outcome for each in report.maintenance.outcomes] == ["accepted"]
        assert client.list_long_term().records[0].content == "The user lives in Porto."


def test_a_job_that_was_left_without_a_model_is_done_when_one_is_there_and_its_events_can_be_followed(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon(folder, None, monkeypatch) as running, running.client() as client:
        events = client.subscribe(["job"])
        job_id = finalize(client)
        told = next(events)
        assert (told.topic, told.event["event"], told.event["job_id"]) == ("job", "job_left", job_id)
        events.close()
    server.answer = noted(PORTO)
    with daemon(folder, server, monkeypatch) as running, running.client() as client:
        wait_for_state(client, "done")
        assert client.list_long_term().total == 1


def test_a_daemon_ends_at_once_while_its_model_thinks_and_the_turn_and_the_job_are_there(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, release = threading.Event(), threading.Event()

    def answer(asked: Asked) -> Answer:
        del asked
        begun.set()
        release.wait(60)
        return noted(PORTO)

    server.answer = answer
    running = daemon(folder, server, monkeypatch)
    running.start()
    client = running.client(timeout=600, retry=False)
    asking = threading.Thread(target=lambda: finalize(client))
    asking.start()
    assert begun.wait(30)
    running.stop()
    assert running.process is not None and running.process.returncode == 0
    assert not release.is_set()
    asking.join(30)
    client.close()
    release.set()
    with daemon(folder, None, monkeypatch) as again, again.client() as client:
        (left,) = client.governance_report().deferred.open_jobs
        assert (left.state, left.reason, left.attempts) == ("waiting", "closing", 0)
        assert client.list_conversations().conversations[0].turns == 1


def test_after_kill_9_while_its_model_thinks_the_job_is_taken_up_again_when_its_lease_has_ended(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, release = threading.Event(), threading.Event()

    def answer(asked: Asked) -> Answer:
        del asked
        if not begun.is_set():
            begun.set()
            release.wait(60)
        return noted(PORTO)

    server.answer = answer
    running = daemon(folder, server, monkeypatch)
    running.start()
    failed: list[Exception] = []

    def ask(client: Client) -> None:
        try:
            finalize(client)
        except ConnectionError as error:
            failed.append(error)

    client = running.client(timeout=600, retry=False)
    asking = threading.Thread(target=ask, args=(client,))
    asking.start()
    assert begun.wait(30)
    running.kill()
    asking.join(30)
    assert len(failed) == 1
    client.close()
    release.set()
    store = apsw.Connection(running.store)
    assert store.execute("SELECT state FROM job").get == "leased"
    assert store.execute("SELECT count(*) FROM turn").get == 1
    store.execute("UPDATE job SET lease_until = 1")
    store.close()
    with daemon(folder, server, monkeypatch) as again, again.client() as client:
        wait_for_state(client, "done")
        assert client.list_long_term().total == 1
