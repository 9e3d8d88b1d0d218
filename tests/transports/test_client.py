"""The client: typed reports and errors, lost connections, retries, timeouts."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.async_client import AsyncClient
from beetle.client import Client, ClientClosed, NoDaemon
from beetle.contracts import errors
from beetle.contracts.codec import Raw
from beetle.contracts.common import Conversation, Report, WireScope
from beetle.contracts.control import BatchItem, BatchRequest, HelloReport
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.skills import RuntimeSkillListReport
from beetle.contracts.transcript import MemoryTranscriptCommitRequest
from beetle.contracts.turns import CanonicalTurnDelta, MessageDelta
from tests.forked import Daemon
from tests.transports.conftest import commit, turn
from tests.transports.serving import Served
from tests.transports.standin import DEEP, LISTED, Far, LosingProxy, Scripted, serve_well

NAN = float("nan")
STANDALONE = "profile-linux-device-standalone-memory"


def skill(name: str, content: str = "boil water") -> dict[str, Any]:
    one = {"name": name, "topic": "tea", "title": "Tea", "summary": "how to", "content": content}
    return {"kind": "procedural", "source": "manual", "writes": [one]}


# Reports and errors


def test_a_client_is_a_context_manager_and_answers_with_typed_reports(served: Served) -> None:
    with Client(served.path) as client:
        hello = client.hello()
        assert isinstance(hello, HelloReport)
        assert hello.principal == "operator"
        assert client.commit_transcript(**commit(1, "typed")).turns[0].outcome == "committed"
        assert client.call("skill.list").lifecycle.operation == "skill.list"  # type: ignore[union-attr]
    with pytest.raises(ClientClosed):
        client.hello()
    client.close()


def test_a_scope_of_the_client_or_of_the_call_is_where_it_works(served: Served) -> None:
    with Client(served.path, scope=WireScope(owner_id="ada")) as client:
        client.commit_transcript(**commit(1, "adas"))
        assert [each.conversation_id for each in client.list_conversations().conversations] == ["adas"]
        elsewhere = client.call("transcript.conversations", scope=WireScope(owner_id="eve"))
        assert elsewhere.conversations == ()  # type: ignore[attr-defined]


def test_an_error_keeps_its_class_key_message_hint_and_details(served: Served) -> None:
    with Client(served.path) as client:
        with pytest.raises(errors.InvalidRequest) as caught:
            client.recall(query="x", limit=0)
        error = caught.value
        assert error.key == "invalid_request" and error.details["path"] == "$.args.limit"
        assert error.message in str(error) and str(error).startswith("invalid_request: ")
        assert error.hint and error.exit_code == 2
        with pytest.raises(errors.UnknownOperation) as unknown:
            client.call("memory.recal")
        assert "memory.recall" in unknown.value.hint
    with Client(served.path, auth=DeviceAuth(device_id="d", app_key="k")) as client, pytest.raises(errors.Unauthorized):
        client.hello()


def test_an_error_that_a_newer_daemon_made_up_keeps_its_words(folder: Path) -> None:
    def newer(far: Far) -> None:
        far.refuse(far.request(), "moon_phase", phase="full")

    with Scripted(str(folder / "s"), newer) as daemon, Client(daemon.path) as client:
        with pytest.raises(errors.BeetleError) as caught:
            client.list_runtime_skills()
        error = caught.value
        assert (error.key, error.message, error.hint) == ("moon_phase", "the moon_phase", "a hint")
        assert error.details == {"phase": "full"} and error.exit_code == 1


def test_fields_of_a_newer_daemon_are_read_past(folder: Path) -> None:
    lifecycle = {"operation": "skill.list", "changed": False, "at": "2026-01-01T00:00:00Z", "mood": "fine"}

    def newer(far: Far) -> None:
        far.answer(far.request(), {**LISTED, "total": 7, "stars": [1, 2], "lifecycle": lifecycle}, weather={"wind": 3})
        far.answer(far.request(), {"anything": 1})

    with Scripted(str(folder / "s"), newer) as daemon, Client(daemon.path) as client:
        report = client.list_runtime_skills()
        assert isinstance(report, RuntimeSkillListReport)
        assert report.total == 7
        assert type(client.call("moon.phase")) is Report, "an operation that this client does not know"
        assert daemon.requests[1]["idempotency_key"], "which may be a write"


def test_an_answer_larger_than_one_read_arrives_whole(served: Served) -> None:
    text = "tea 茶 " * 6000
    with Client(served.path) as client:
        for number in range(8):
            client.commit_transcript(conversation={"conversation_id": "big"}, turns=[turn(number, text)])
        page = client.replay_transcript(conversation={"conversation_id": "big"}, view="host_ui", limit=20)
        assert [each.messages[0].content for each in page.turns] == [text] * 8


def test_a_typed_request_is_the_same_as_its_fields(served: Served) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    said = MessageDelta(message_id="m1", role="user", content="the kettle is on")
    where = Conversation(conversation_id="struct")
    delta = CanonicalTurnDelta(turn_id="t1", at=at, messages=(said,))
    with Client(served.path) as client:
        request = MemoryTranscriptCommitRequest(conversation=where, turns=(delta,))
        assert client.commit_transcript(request).committed == 1
        assert client.commit_transcript(**commit(1, "struct")).unchanged == 1
        assert client.recall(query="kettle", since=at).hits
        item = BatchItem(op="transcript.commit", args=Raw(msgpack.packb(commit(1, "struct"))))
        report = client.batch(BatchRequest(requests=(item,)))
        assert report.reports is not None and report.reports[0]["unchanged"] == 1


def test_arguments_that_no_frame_can_hold_are_an_invalid_request_with_their_path(served: Served) -> None:
    with Client(served.path) as client:
        for args, path in (
            ({"query": "\ud800"}, "$.args.query"),
            ({"query": "x", "limit": 2**70}, "$.args.limit"),
            ({"query": object()}, "$.args"),
        ):
            with pytest.raises(errors.InvalidRequest) as caught:
                client.recall(**args)
            assert caught.value.details["path"] == path
        assert client.hello().principal == "operator"


@pytest.mark.parametrize(
    "said",
    [b"\xc1", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x01", b"\x81\x01\x01", b"\x81\xa2id\xa1\xff", b"\x80", DEEP],
)
def test_whoever_answers_something_else_is_a_typed_error(folder: Path, said: bytes) -> None:
    def foreign(far: Far) -> None:
        far.request()
        far.socket.sendall(said)
        far.request()

    with (
        Scripted(str(folder / "s"), foreign) as daemon,
        Client(daemon.path) as client,
    ):
        with pytest.raises(errors.InvalidFrame):
            client.hello()
        with pytest.raises(errors.InvalidFrame):
            client.subscribe(["lifecycle"])


def asked(kind: type[Client | AsyncClient], path: str, operation: str, *given: Any, **options: Any) -> Any:
    """What one call of either client answers; `options` are of the client, but for those of the call."""
    own = {name: options.pop(name) for name in ("deadline_ms", "idempotency_key") if name in options}
    if kind is Client:
        with Client(path, **options) as client:
            return client.call(operation, *given, **own)

    async def work() -> Any:
        async with AsyncClient(path, **options) as client:
            return await client.call(operation, *given, **own)

    return asyncio.run(work())


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_times_that_are_none_are_refused_and_long_ones_are_taken(served: Served, kind: type[Client]) -> None:
    for name, value in (
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", NAN),
        ("timeout", "1"),
        ("away", -1),
        ("away", NAN),
    ):
        with pytest.raises(errors.InvalidRequest, match=f"{name} is no number"):
            asked(kind, served.path, "hello", **{name: value})
    for long in (float("inf"), 1e300, 10**400, 2**62):
        assert asked(kind, served.path, "hello", timeout=long, away=long).principal == "operator"
    for deadline in (0, -1, 2**63, 2**70, "x", True, 1.5, 86_400_001):
        with pytest.raises(errors.InvalidRequest) as caught:
            asked(kind, served.path, "hello", deadline_ms=deadline)
        assert caught.value.details["path"] == "$.deadline_ms", deadline
    assert asked(kind, served.path, "hello", deadline_ms=86_400_000, away=0).principal == "operator"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_timeout_names_the_key_of_a_write(folder: Path, kind: type[Client]) -> None:
    def deaf(far: Far) -> None:
        far.request()
        far.request()

    with Scripted(str(folder / "s"), deaf) as daemon:
        with pytest.raises(TimeoutError, match=r"may have been done: repeat it with the idempotency key k1$") as caught:
            asked(kind, daemon.path, "transcript.commit", commit(1, "late"), idempotency_key="k1", timeout=0.1)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        with pytest.raises(TimeoutError, match=r"did not answer in time$"):
            asked(kind, daemon.path, "skill.list", timeout=0.1)


def test_a_report_of_another_shape_is_a_typed_error_and_the_connection_goes_on(folder: Path) -> None:
    def odd(far: Far) -> None:
        far.answer(far.request(), {"total": "many"})
        serve_well(far)

    with Scripted(str(folder / "s"), odd) as daemon, Client(daemon.path) as client:
        with pytest.raises(errors.InvalidFrame):
            client.list_runtime_skills()
        assert client.list_runtime_skills().total == 0
        assert daemon.connections == 1


# Lost connections


def test_a_client_reconnects_when_the_daemon_was_killed_and_started_again(folder: Path) -> None:
    daemon = Daemon(profile=STANDALONE, folder=str(folder))
    daemon.start()
    try:
        with daemon.client() as client:
            client.commit_transcript(**commit(1))
            daemon.kill()
            with pytest.raises(NoDaemon):
                client.hello()
            daemon.start()
            assert client.commit_transcript(**commit(2)).committed == 1
            daemon.kill()
            daemon.start()
            assert client.hello().pid == daemon.pid, "without anybody having noticed"
            page = client.replay_transcript(conversation={"conversation_id": "c"}, view="host_ui")
            assert [each.turn_id for each in page.turns] == ["t1", "t2"]
    finally:
        daemon.stop()


def test_a_write_whose_answer_was_lost_is_not_made_twice(served: Served, folder: Path) -> None:
    answers: list[dict[str, Any]] = []

    def lose(answer: dict[str, Any]) -> bool:
        answers.append(answer)
        return len(answers) == 1

    with LosingProxy(str(folder / "p"), served.path, lose) as proxy, Client(proxy.path) as client:
        report = client.write(**skill("lost-answer"))
        assert client.repeated
        assert (report.writes[0].outcome, report.writes[0].revision) == ("created", 1)
        assert [answer["ok"] for answer in answers] == [True, True]
        assert answers[0]["report"] == answers[1]["report"]
        keys = [request["idempotency_key"] for request in proxy.requests]
        assert len(keys) == 2 and len(set(keys)) == 1
        client.write(**skill("lost-answer", "boil more water"))
        assert not client.repeated
        assert proxy.requests[2]["idempotency_key"] != keys[0], "another call is another request"


def test_a_write_whose_answer_was_lost_with_its_daemon_is_not_made_twice(folder: Path) -> None:
    daemon = Daemon(profile=STANDALONE, folder=str(folder))
    daemon.start()
    lost: list[dict[str, Any]] = []

    def lose(answer: dict[str, Any]) -> bool:
        if lost:
            return False
        lost.append(answer)
        daemon.kill()
        daemon.start()
        return True

    try:
        with LosingProxy(str(folder / "p"), daemon.socket, lose) as proxy, Client(proxy.path) as client:
            report = client.write(**skill("killed"))
            assert client.repeated
            assert report.writes[0].outcome == "created"
            assert report.lifecycle is not None
            assert report.lifecycle.event_id == lost[0]["report"]["lifecycle"]["event_id"]
            detail = client.get_runtime_skill(name="killed")
            assert detail.revision == 1
            assert client.verify_store().clean
    finally:
        daemon.stop()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_daemon_that_dies_in_the_middle_of_an_answer_is_asked_again(folder: Path, share: float) -> None:
    def dying(far: Far) -> None:
        request = far.request()
        frame = msgpack.packb({"v": 1, "id": request["id"], "ok": True, "report": {**LISTED, "total": 3}})
        far.socket.sendall(frame[: int(len(frame) * share)])

    with Scripted(str(folder / "s"), dying, serve_well) as daemon, Client(daemon.path) as client:
        assert client.list_runtime_skills().total == 0
        assert [request["id"] for request in daemon.requests] == [1, 1]
    os.unlink(daemon.path)
    with (
        Scripted(daemon.path, dying) as daemon,
        Client(daemon.path, retry=False) as client,
        pytest.raises(ConnectionError),
    ):
        client.list_runtime_skills()


def test_an_answer_to_another_request_is_not_taken_for_this_ones(folder: Path) -> None:
    def confused(far: Far) -> None:
        request = far.request()
        for other in (request["id"] + 1000, "x", -1):
            far.answer({"id": other}, {**LISTED, "total": 9})
        far.answer(request)

    with Scripted(str(folder / "s"), confused) as daemon, Client(daemon.path) as client:
        assert client.list_runtime_skills().total == 0


def test_a_call_that_was_interrupted_leaves_nothing_for_the_next_one(folder: Path) -> None:
    main = threading.get_ident()

    def late(far: Far) -> None:
        request = far.request()
        signal.pthread_kill(main, signal.SIGUSR1)
        far.request()
        far.answer(request, {**LISTED, "total": 9})

    def interrupt(*_: object) -> None:
        raise InterruptedError("by the user")

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with Scripted(str(folder / "s"), late, serve_well) as daemon, Client(daemon.path) as client:
            with pytest.raises(InterruptedError):
                client.list_runtime_skills()
            assert client.list_runtime_skills().total == 0
            assert daemon.connections == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


# Retries and timeouts

PATIENCE_S = 0.05


def test_a_retryable_error_is_tried_again_with_the_same_key(folder: Path) -> None:
    def busy(far: Far) -> None:
        for _ in range(2):
            far.refuse(far.request(), "overloaded", retryable=True, retry_after_ms=1)
        far.answer(far.request(), {"committed": 1, "unchanged": 0, "turns": []})

    with Scripted(str(folder / "s"), busy) as daemon, Client(daemon.path) as client:
        assert client.commit_transcript(**commit(1)).committed == 1
        assert len(daemon.requests) == 3
        assert len({request["idempotency_key"] for request in daemon.requests}) == 1
        assert daemon.connections == 1


def test_an_error_that_is_not_retryable_is_raised_at_once(folder: Path) -> None:
    def refusing(far: Far) -> None:
        while True:
            far.refuse(far.request(), "conflict")

    with Scripted(str(folder / "s"), refusing) as daemon, Client(daemon.path) as client:
        with pytest.raises(errors.Conflict):
            client.commit_transcript(**commit(1))
        assert len(daemon.requests) == 1


def test_without_retry_the_first_error_is_raised(folder: Path) -> None:
    def busy(far: Far) -> None:
        far.refuse(far.request(), "overloaded", retryable=True, retry_after_ms=1)

    with Scripted(str(folder / "s"), busy) as daemon, Client(daemon.path, retry=False) as client:
        with pytest.raises(errors.Overloaded):
            client.hello()
        assert len(daemon.requests) == 1


def test_retries_end_with_the_last_error_when_the_timeout_is_reached(folder: Path) -> None:
    def busy(far: Far) -> None:
        while True:
            far.refuse(far.request(), "overloaded", retryable=True, retry_after_ms=5)

    with Scripted(str(folder / "s"), busy) as daemon, Client(daemon.path, timeout=0.2) as client:
        with pytest.raises(errors.Overloaded):
            client.hello()
        assert len(daemon.requests) > 1


def test_a_client_that_was_turned_away_comes_in_when_there_is_room(folder: Path) -> None:
    with Served(folder, connections=1) as served, served.peer() as first:
        assert first.ask("hello")["ok"]
        with Client(served.path, retry=False) as impatient, pytest.raises(errors.Overloaded):
            impatient.hello()
        with Client(served.path) as patient:
            found: list[str] = []
            waiting = threading.Thread(target=lambda: found.append(patient.hello().principal))
            waiting.start()
            first.close()
            waiting.join()
            assert found == ["operator"]


def test_a_daemon_that_does_not_answer_is_a_timeout_and_its_late_answer_is_lost(folder: Path) -> None:
    timed_out = threading.Event()

    def late(far: Far) -> None:
        request = far.request()
        timed_out.wait()
        far.answer(request, {**LISTED, "total": 9})

    with Scripted(str(folder / "s"), late, serve_well) as daemon, Client(daemon.path, timeout=0.1) as client:
        with pytest.raises(TimeoutError):
            client.list_runtime_skills()
        timed_out.set()
        assert client.list_runtime_skills().total == 0


def test_what_may_take_long_is_waited_for_until_its_own_deadline(folder: Path) -> None:
    def late(far: Far) -> None:
        request = far.request()
        assert not threading.Event().wait(PATIENCE_S * 3)
        far.answer(request, LISTED)

    with Scripted(str(folder / "s"), late) as daemon, Client(daemon.path, timeout=PATIENCE_S) as client:
        assert client.call("skill.list", deadline_ms=60_000)
    assert len(daemon.requests) == 1


def test_a_daemon_that_does_not_read_is_a_timeout(folder: Path) -> None:
    end = threading.Event()

    def deaf(_far: Far) -> None:
        end.wait()

    with Scripted(str(folder / "s"), deaf) as daemon, Client(daemon.path, timeout=0.1) as client:
        with pytest.raises(TimeoutError):
            client.recall(query="x" * 5_000_000)
        end.set()


def test_a_daemon_that_accepts_nobody_is_a_timeout(folder: Path) -> None:
    path = str(folder / "s")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        with pytest.raises(TimeoutError):
            Client(path, timeout=0.1)


def test_nobody_at_the_socket_is_no_daemon(folder: Path) -> None:
    stale, file = folder / "stale", folder / "file"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stale))
    file.write_text("")
    for path in (folder / "missing", stale, file, folder / ("n" * 200)):
        with pytest.raises(NoDaemon) as caught:
            Client(str(path))
        told = caught.value
        assert told.path == str(path) and str(path) in str(told)
        assert isinstance(told, errors.BeetleError) and isinstance(told, ConnectionError)
        assert (told.key, told.exit_code) == ("daemon_unavailable", 7) and told.hint


def test_what_a_client_raises_can_be_pickled(folder: Path) -> None:
    for told in (NoDaemon("/nowhere/b.sock", "No such file"), ClientClosed("/nowhere/b.sock")):
        again = pickle.loads(pickle.dumps(told))
        assert type(again) is type(told) and str(again) == str(told) and again.path == told.path
